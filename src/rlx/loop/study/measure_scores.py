"""Measure the policies of a study: record their weights, draw episodes, evaluate, and write the scores.

rlx trusts only a job's final checkpoint, by its hash. The episodes of a claim are drawn only after the weights of both
sides are in the ledger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlx import files
from rlx.errors import EvidenceInvalid
from rlx.evaluate.checkpoint_evaluation import CHANGED
from rlx.evaluate.protocol import Purpose, draw_first_episode
from rlx.launch.study_jobs import checkpoint_hashes
from rlx.loop.study.evaluator import StudyEvaluator
from rlx.loop.study.evidence_checks import require_measurable
from rlx.number_format import counted
from rlx.runs.run import Run
from rlx.runs.status import COMPLETED
from rlx.study.ledger.lifecycle import BASELINE, Phase
from rlx.study.ledger.records import Draw
from rlx.study.ledger.state import State, replay
from rlx.study.study_folder import Study

Say = Callable[[str], None]
MOST_SAID = 300


@dataclass(frozen=True)
class Measured:
    """A training seed and its score; a seed that failed has none."""

    seed: int
    run: str
    score: float | None
    level: str = ""
    file: str = ""
    sha256: str = ""


def purpose_of(phase: Phase) -> Purpose:
    """Return the purpose of the episodes that a phase's policies are measured on."""
    return "confirm" if phase == "confirmation" else "search"


def measured(state: State, candidate: str, phase: Phase) -> list[Measured]:
    """Return the seeds of a candidate's ended jobs of a phase, as far as they are measured.

    A trial's seeds are in the order trained. Others are sorted: retraining one must not change which seeds count.
    """
    scores = state.evaluations.get((candidate, phase), {})
    found = []
    for job in state.ended_jobs(candidate, phase):
        for seed in job.counted_seeds:
            score = scores.get(seed)
            if score is not None:
                value = None if math.isnan(score.value) else score.value
                found.append(Measured(seed, str(job.run), value, score.level, score.file, score.sha256))
            elif job.seed_states.get(seed) != COMPLETED:
                found.append(Measured(seed, str(job.run), None))
    return found if phase == "trial" else sorted(found, key=lambda one: one.seed)


def document_of(study: Study, one: Measured) -> Mapping[str, Any]:
    """Return the evaluator's document of a seed; raise if the file was replaced."""
    try:
        content = (study.folder / one.file).read_bytes()
    except FileNotFoundError:
        content = b""
    if files.sha256(content) != one.sha256:
        problem = "is not the file that was recorded" if content else "is gone"
        hint = f"restore it; to list every such file: rlx study verify {study.name}"
        raise EvidenceInvalid(f"{one.file} {problem}", hint=hint)
    document: Mapping[str, Any] = files.decode(content)
    return document


def figures(study: Study, one: Measured) -> dict[str, float]:
    """Return the figures of a seed by name; none if it has no score."""
    if one.score is None:
        return {}
    found = document_of(study, one)["figures"]
    return {name: files.number(value) for name, value in found.items() if files.is_number(value)}


def unmeasured(state: State, candidate: str, phase: Phase) -> dict[str, list[int]]:
    """Return the completed seeds without a score, by run."""
    scores = state.evaluations.get((candidate, phase), {})
    found: dict[str, list[int]] = {}
    for job in state.ended_jobs(candidate, phase):
        for seed in job.counted_seeds:
            if job.seed_states.get(seed) == COMPLETED and seed not in scores:
                found.setdefault(str(job.run), []).append(seed)
    return found


def failures(state: State, candidate: str, phase: Phase) -> list[str]:
    """Return why seeds of a candidate have no score, each reason once."""
    known = state.evaluations.get((candidate, phase), {}).values()
    told = (*(job.says for job in state.ended_jobs(candidate, phase)), *(score.failure for score in known))
    return list(dict.fromkeys(filter(None, told)))


def measure(study: Study, candidates: Sequence[str], phase: Phase, *, say: Say) -> State:
    """Measure the trained seeds of some candidates on the same episodes; return the state after that.

    Only one process measures at a time. Another one waits and then finds the scores.
    """
    if _waiting(study.state(), candidates, phase):
        with files.locked(study.evidence):
            _measure_all(study, candidates, phase, say=say)
    return study.state()


def _measure_all(study: Study, candidates: Sequence[str], phase: Phase, *, say: Say) -> None:
    waiting = _waiting(study.state(), candidates, phase)
    if not waiting:
        return
    require_measurable(study, "measure", candidates[-1])
    for name, run, seeds in waiting:
        view = Run(study.root / "runs" / run)
        checkpoint_hashes.record(study.ledger, name, view, [view.seed(seed) for seed in seeds])
    episodes = drawn(study, candidates, phase)
    evaluator = StudyEvaluator(study)
    for name, run, seeds in waiting:
        say(f"measuring {counted(len(seeds), 'seed')} of {name} ({phase}, {run})")
        _measure(study, evaluator, name, run, seeds, phase, episodes)


def _waiting(state: State, candidates: Sequence[str], phase: Phase) -> list[tuple[str, str, list[int]]]:
    """Return the candidates, runs and seeds that need measuring."""
    return [(name, run, seeds) for name in candidates for run, seeds in unmeasured(state, name, phase).items()]


def drawn(study: Study, candidates: Sequence[str], phase: Phase) -> Draw:
    """Return the episodes for these candidates; rlx draws them when they are first needed.

    The whole search uses the same episodes, so that all its scores are comparable. A claim has its own.
    """
    contract = study.contract()
    assert contract.evaluation is not None
    purpose = purpose_of(phase)
    with study.ledger.held() as held:
        known = _known(replay(held.events), purpose, candidates)
        if known is None:
            is_claim = purpose == "confirm"
            episodes = contract.evaluation.confirm_episodes if is_claim else contract.evaluation.episodes
            first = draw_first_episode(purpose, episodes)
            held.append("drawn", purpose=purpose, first=first, episodes=episodes, candidates=list(candidates))
            known = _known(replay(held.events), purpose, candidates)
    if known is None:
        raise EvidenceInvalid(
            "no episodes could be drawn: a side has open jobs, or checkpoints that are not recorded",
            hint="rlx study audit",
        )
    return known


def _known(state: State, purpose: Purpose, candidates: Sequence[str]) -> Draw | None:
    for one in reversed(state.draws):
        is_for_them = purpose == "search" or set(one.candidates) == set(candidates)
        if one.purpose == purpose and is_for_them:
            return one
    return None


def _measure(
    study: Study, evaluator: StudyEvaluator, candidate: str, run: str, seeds: Sequence[int], phase: Phase, draw: Draw
) -> None:
    """Measure a run's seeds and write each score into the ledger; a policy that failed scores NaN."""
    known = study.state().weights.get(candidate, {})
    expected = {seed: known[seed].sha256 for seed in seeds}
    for one in evaluator.measure(candidate, run, expected, draw, study.evidence / phase):
        _refuse_changed(one.document, is_yardstick=candidate == BASELINE or phase == "promotion")
        name = one.file.relative_to(study.folder).as_posix()
        study.ledger.append(
            "evaluated", key=f"{candidate}:{phase}:{one.seed}:{draw.row}", candidate=candidate, phase=phase,
            seed=one.seed, level=one.document["level"], file=name, sha256=files.sha256(one.file.read_bytes()),
            score=score_of(study, one.document), parameters=one.document.get("parameters"),
            **_failure(one.document),
        )  # fmt: skip


def _refuse_changed(document: Mapping[str, Any], *, is_yardstick: bool) -> None:
    """Raise if a checkpoint of the baseline or head was replaced: as a failed seed it would get a substitute."""
    failure = document.get("failure") or {}
    if is_yardstick and failure.get("code") == CHANGED:
        raise EvidenceInvalid(str(failure["says"]), hint="it was changed after it was recorded: restore it")


def _failure(document: Mapping[str, Any]) -> dict[str, str]:
    """Return why a policy has no score, shortened for the row."""
    says = (document.get("failure") or {}).get("says", "")
    return {"failure": " ".join(says.split())[:MOST_SAID]} if says else {}


def score_of(study: Study, document: Mapping[str, Any]) -> float:
    """Return the contract's metric from an evaluator's document; NaN for a policy that failed."""
    metric = study.contract().metric
    if metric is None:
        raise EvidenceInvalid("the contract names no metric", hint=f"rlx study show {study.name}")
    if document.get("failure"):
        return math.nan
    figures = document["figures"]
    if metric.name not in figures:
        known = ", ".join(sorted(figures)) or "no figures"
        raise EvidenceInvalid(
            f"the evaluator reports no `{metric.name}`; it reports {known}",
            hint="rlx study amend -s metric.name=NAME, then have it approved",
        )
    return files.number(figures[metric.name])
