"""What stands beside a judgement and decides nothing: a pool without spread, what a candidate builds on, its time."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rlx.figures import ROUNDING, counted, deviation, figure
from rlx.launch import door
from rlx.loop import scores
from rlx.study.candidate import BASELINE
from rlx.study.contract import Contract
from rlx.study.lifecycle import Phase
from rlx.study.state import State
from rlx.study.study import NULL, Study, studies

LONGER = 1.5
"""So many times the other side's seconds a seed are said: less is what a busy machine does to means over seeds, and
whoever trains in secret gains at most half as much again unnoticed. It is a note: a slower change may be honest."""


NO_SPREAD = (
    "the pool has no spread: every seed scores {}. Either the metric is at an end of its range (none succeeds or all "
    "do), or the evaluation does not depend on what was trained; any other score will look like an effect"
)
NO_GAIN = "every seed of the baseline has {} {}, the best there is: nothing can be gained by this metric"


def flat(state: State, contract: Contract) -> Iterator[str]:
    """Yield that all seeds of a full pool score the same, which makes every later comparison worthless."""
    values, metric = list(state.usable(BASELINE, "baseline").values()), contract.metric
    if metric is None or len(values) < door.pool_seeds(contract) or deviation(values):
        return
    score, best = values[0], 1.0 if metric.direction == "maximize" else 0.0
    is_best = metric.name.endswith("rate") and math.isclose(score, best, abs_tol=ROUNDING)
    yield NO_GAIN.format(metric.name, figure(best)) if is_best else NO_SPREAD.format(figure(score))


def beside(study: Study, identity: str, against: str) -> str:
    """Say that a candidate does not have the change of what it is raced against; empty where it has."""
    if against in NULL or against in (one.id for one in study.chain(identity)):
        return ""
    on = study.candidate(identity).builds_on
    return f"{identity} builds on {on}: it is raced against the head {against} without the change of {against}"


def begun_anew(state: State, candidate: str, phase: Phase) -> Iterator[str]:
    """Yield that seeds were cut off and trained again: the same ones, which is the same only where training repeats."""
    cut: dict[str, set[int]] = {"stopped": set(), "lost": set()}
    for job in state.jobs_of(candidate, phase):
        if not job.is_set_aside:
            begun = {seed for seed in job.again if job.seed_states.get(seed) != "prepared"}
            cut["stopped" if job.outcome == "cancelled" else "lost"] |= begun
    for how, seeds in cut.items():
        if seeds:
            yield (
                f"{counted(len(seeds), 'seed')} of {candidate} {how} under way and trained again: "
                "look whether its training repeats itself, else that was a second try"
            )


def elsewhere(study: Study) -> Iterator[str]:
    """Yield the claims that other studies of the same task made: each has its own chance to be false."""
    for other in studies(study.root):
        if other.task_name != study.task_name or other == study:
            continue
        state = other.state()
        if state.claims:
            shown = sum(one["decision"] == "confirmed" for one in state.decisions)
            made = f"{counted(state.claims, 'claim')} ({shown} confirmed)"
            yield f"the study {other.name} of the same task made {made}: this one's error does not count them"


def seconds_a_seed(state: State, candidate: str, phase: Phase) -> float | None:
    """Return how long a candidate's seeds of a phase took on average, as their supervisor measured; None: not known."""
    spent = [job.spent for job in scores.ended(state, candidate, phase) if job.spent is not None]
    seeds = sum(one.seeds for one in spent)
    return sum(one.seconds for one in spent) / seeds if seeds else None


def longer(ours: float | None, theirs: float | None, *, against: str) -> Iterator[str]:
    """Yield that a candidate's seeds took far longer than the other side's: steps are what its own code counts."""
    if ours and theirs and theirs > LONGER * ours:
        yield (
            f"its seeds took {theirs:.3g} s each, {theirs / ours:.2g} times the {ours:.3g} s of {against}: "
            "look whether it trains longer than its steps say"
        )
