"""The evaluator's scores of what a study trained: weights into the ledger first, then episodes, then the measuring.

Nothing that a job wrote is believed but its final checkpoint, by its hash. Episodes of a claim are drawn only after the
weights of both sides are in the ledger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlx import files
from rlx.errors import EvidenceInvalid
from rlx.evaluate.protocol import Purpose, draw
from rlx.evaluate.seal import CHANGED
from rlx.figures import counted
from rlx.launch import weights
from rlx.loop import warrant
from rlx.loop.evaluator import Evaluator
from rlx.runs.run import Run
from rlx.runs.status import COMPLETED
from rlx.study.lifecycle import BASELINE, Phase
from rlx.study.standing import Draw, Job
from rlx.study.state import State, replay
from rlx.study.study import Study

Say = Callable[[str], None]
MOST_SAID = 300


@dataclass(frozen=True)
class Measured:
    """A training seed and what the evaluator found; a seed that failed has no score."""

    seed: int
    run: str
    score: float | None
    level: str = ""
    file: str = ""
    sha256: str = ""


def purpose_of(phase: Phase) -> Purpose:
    """Return the episodes that a phase's policies are measured on."""
    return "confirm" if phase == "confirmation" else "search"


def measured(state: State, candidate: str, phase: Phase) -> list[Measured]:
    """Return the seeds of a candidate's ended jobs of a phase, in the order trained, as far as they are measured.

    But for a trial's they are in their own order: which of them was trained again must not choose those that count.
    """
    scores = state.evaluations.get((candidate, phase), {})
    found = []
    for job in ended(state, candidate, phase):
        for seed in job.counted_seeds:
            score = scores.get(seed)
            if score is not None:
                value = None if math.isnan(score.value) else score.value
                found.append(Measured(seed, str(job.run), value, score.level, score.file, score.sha256))
            elif job.seed_states.get(seed) != COMPLETED:
                found.append(Measured(seed, str(job.run), None))
    return found if phase == "trial" else sorted(found, key=lambda one: one.seed)


def document_of(study: Study, one: Measured) -> Mapping[str, Any]:
    """Return what the evaluator wrote of a seed; another file in its place is no evidence."""
    try:
        content = (study.folder / one.file).read_bytes()
    except FileNotFoundError:
        content = b""
    if files.sha256(content) != one.sha256:
        says = f"{one.file} is {'not the file that was recorded' if content else 'gone'}"
        raise EvidenceInvalid(says, hint=f"put it back; every such file is named by: rlx study verify {study.name}")
    found: Mapping[str, Any] = files.decode(content)
    return found


def figures(study: Study, one: Measured) -> dict[str, float]:
    """Return what the evaluator found of a seed, by name; nothing where it has no score."""
    if one.score is None:
        return {}
    found = document_of(study, one)["figures"]
    return {name: files.number(value) for name, value in found.items() if files.is_number(value)}


def ended(state: State, candidate: str, phase: Phase) -> list[Job]:
    """Return the jobs of a phase that ran, are over, and are evidence."""
    return [job for job in state.jobs_of(candidate, phase) if not job.is_open and job.counted_seeds]


def unmeasured(state: State, candidate: str, phase: Phase) -> dict[str, list[int]]:
    """Return the completed seeds without a score, by run."""
    scores = state.evaluations.get((candidate, phase), {})
    found: dict[str, list[int]] = {}
    for job in ended(state, candidate, phase):
        for seed in job.counted_seeds:
            if job.seed_states.get(seed) == COMPLETED and seed not in scores:
                found.setdefault(str(job.run), []).append(seed)
    return found


def failures(state: State, candidate: str, phase: Phase) -> list[str]:
    """Return why seeds of a candidate have no score, each reason once."""
    known = state.evaluations.get((candidate, phase), {}).values()
    told = (*(job.says for job in ended(state, candidate, phase)), *(score.failure for score in known))
    return list(dict.fromkeys(filter(None, told)))


def measure(study: Study, candidates: Sequence[str], phase: Phase, *, say: Say) -> State:
    """Measure what is trained and not measured of some candidates, on the same episodes; return the state then.

    One measures at a time: whoever asks meanwhile waits, and finds the scores there.
    """
    if _waiting(study.state(), candidates, phase):
        with files.locked(study.evidence):
            _measure_all(study, candidates, phase, say=say)
    return study.state()


def _measure_all(study: Study, candidates: Sequence[str], phase: Phase, *, say: Say) -> None:
    waiting = _waiting(study.state(), candidates, phase)
    if not waiting:
        return
    warrant.require(study, "measure", candidates[-1])
    for name, run, seeds in waiting:
        view = Run(study.root / "runs" / run)
        weights.record(study.ledger, name, view, [view.seed(seed) for seed in seeds])
    episodes = drawn(study, candidates, phase)
    evaluator = Evaluator(study)
    for name, run, seeds in waiting:
        say(f"measuring {counted(len(seeds), 'seed')} of {name} ({phase}, {run})")
        _measure(study, evaluator, name, run, seeds, phase, episodes)


def _waiting(state: State, candidates: Sequence[str], phase: Phase) -> list[tuple[str, str, list[int]]]:
    """Return what is to be measured: a candidate, a run of it, and its seeds."""
    return [(name, run, seeds) for name in candidates for run, seeds in unmeasured(state, name, phase).items()]


def drawn(study: Study, candidates: Sequence[str], phase: Phase) -> Draw:
    """Return the episodes these candidates are measured on; they come into being when they are first needed.

    Those of the search serve the whole study, so that every score compares with every other; a claim has its own.
    """
    contract = study.contract()
    assert contract.evaluation is not None
    purpose = purpose_of(phase)
    with study.ledger.held() as held:
        known = _known(replay(held.events), purpose, candidates)
        if known is None:
            is_claim = purpose == "confirm"
            episodes = contract.evaluation.confirm_episodes if is_claim else contract.evaluation.episodes
            first = draw(purpose, episodes)
            held.append("drawn", purpose=purpose, first=first, episodes=episodes, candidates=list(candidates))
            known = _known(replay(held.events), purpose, candidates)
    if known is None:
        raise EvidenceInvalid(
            "no episodes could be drawn: a side has jobs under way or checkpoints that are not recorded",
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
    study: Study, evaluator: Evaluator, candidate: str, run: str, seeds: Sequence[int], phase: Phase, draw: Draw
) -> None:
    """Measure one run's seeds and write each score into the ledger; a policy that failed scores NaN there."""
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
    """Raise where what others are compared with is not what was trained: as a failure another would take its place."""
    failure = document.get("failure") or {}
    if is_yardstick and failure.get("code") == CHANGED:
        raise EvidenceInvalid(str(failure["says"]), hint="it was changed after it was recorded: put it back as it was")


def _failure(document: Mapping[str, Any]) -> dict[str, str]:
    """Return why a policy has no score, as a row has it; the whole of it is in the document."""
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
            hint="rlx study amend -s metric.name=NAME, and have it approved",
        )
    return files.number(figures[metric.name])
