"""Notes next to a verdict, which decide nothing: a pool without spread, another base, retrained seeds, slow seeds."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rlx.number_format import ROUNDING, counted, deviation, figure
from rlx.runs.run import Run
from rlx.study.candidate.candidate import BASELINE
from rlx.study.candidate.large_literals import large_literals
from rlx.study.contract.contract import Contract
from rlx.study.ledger.lifecycle import Phase
from rlx.study.ledger.state import State
from rlx.study.situation import pool_size
from rlx.study.study_folder import UNCHANGED, Study, list_studies

MOST_SAID = 300
LONGER = 1.5
"""From this ratio of seconds per seed on, rlx prints a note. A busy machine alone can cause smaller ratios.

A candidate that trains longer than its steps say gains at most half as much again without a note.
"""
NO_SPREAD = (
    "the pool has no spread: every seed scores {}. Either the metric is at an end of its range, or the evaluation does "
    "not depend on the training; any other score will look like an effect"
)
NO_GAIN = "every seed of the baseline has {} {}, the best possible value: this metric cannot improve"


def flat(state: State, contract: Contract) -> Iterator[str]:
    """Yield a note if all seeds of a full pool score the same, which makes every comparison worthless."""
    scores, metric = list(state.usable(BASELINE, "baseline").values()), contract.metric
    if metric is None or len(scores) < pool_size(contract) or deviation(scores):
        return
    best = float(metric.direction == "maximize")
    if metric.name.endswith("rate") and math.isclose(scores[0], best, abs_tol=ROUNDING):
        yield NO_GAIN.format(metric.name, figure(best))
    else:
        yield NO_SPREAD.format(figure(scores[0]))


def other_base(study: Study, name: str, against: str) -> str:
    """Return a note if a candidate lacks the change of the head that it is raced against; else an empty text."""
    if against in UNCHANGED or against in (candidate.id for candidate in study.chain(name)):
        return ""
    base = study.candidate(name).builds_on
    return f"{name} builds on {base}: it is raced against the head {against} without the change of {against}"


def retrained(state: State, name: str, phase: Phase) -> Iterator[str]:
    """Yield a note if seeds were cut off and trained again: that is the same only if training is deterministic."""
    cut: dict[str, set[int]] = {"stopped": set(), "lost": set()}
    for job in state.jobs_of(name, phase):
        if not job.is_set_aside:
            how = "stopped" if job.outcome == "cancelled" else "lost"
            cut[how] |= {seed for seed in job.again if job.seed_states.get(seed) != "prepared"}
    for how, seeds in cut.items():
        if seeds:
            yield (
                f"{counted(len(seeds), 'seed')} of {name} {how} midway and trained again: if its training is not "
                "deterministic, that was a second try"
            )


def other_claims(study: Study) -> Iterator[str]:
    """Yield the claims of other studies of the same task: each adds its own chance of a false one."""
    for other in list_studies(study.root):
        if other.task_name != study.task_name or other == study:
            continue
        state = other.state()
        if state.claims:
            confirmed = sum(event["decision"] == "confirmed" for event in state.decisions)
            claims = f"{counted(state.claims, 'claim')} ({confirmed} confirmed)"
            yield f"the study {other.name} of the same task made {claims}: this study's error does not count them"


def unobserved(study: Study, state: State, name: str) -> Iterator[str]:
    """Yield what a claim cannot rule out: learning that rlx did not see, and data in the candidate's code."""
    for job in state.ended_jobs(name, "confirmation"):
        seeds = Run(study.root / "runs" / str(job.run)).seeds
        learners = [attempt.get("learner") or {} for seed in seeds for attempt in seed.attempts]
        apart = [learner for learner in learners if learner.get("is_apart") is False]
        if apart:
            yield str(apart[0].get("says"))[:MOST_SAID]
            break
    task, evaluation = study.task(), study.contract().evaluation
    if evaluation is not None and evaluation.level == "pinned" and not task.adapter.takes_episode_seed:
        yield "the eval command chose the episodes itself (no {episode_seed}): they may be those of the search"
    for data in large_literals(study.patch(name) or b""):
        yield f"its code holds data, which could be weights from elsewhere: {data}"[:MOST_SAID]


def seconds_per_seed(state: State, name: str, phase: Phase) -> float | None:
    """Return how long a candidate's seeds of a phase took on average, by their supervisor; None if unknown."""
    spent = [job.spent for job in state.ended_jobs(name, phase) if job.spent is not None]
    seeds = sum(amount.seeds for amount in spent)
    return sum(amount.seconds for amount in spent) / seeds if seeds else None


def longer(before: float | None, after: float | None, *, against: str) -> Iterator[str]:
    """Yield a note if a candidate's seeds took far longer: only its own code counts its steps."""
    if before and after and after > LONGER * before:
        yield (
            f"its seeds took {after:.3g} s each, {after / before:.2g} times the {before:.3g} s of {against}: "
            "check whether it trains longer than its steps say"
        )
