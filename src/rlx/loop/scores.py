"""The evaluator's scores of what a study trained: weights into the ledger first, then episodes, then the measuring.

Nothing that a job wrote is believed but its final checkpoint, by its hash. Episodes of a claim are drawn only after the
weights of both sides are in the ledger.
"""

from __future__ import annotations

import contextlib
import math
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlx import files
from rlx.errors import EvidenceInvalid, FileDamaged
from rlx.evaluate.protocol import EPISODE_SEEDS, Purpose
from rlx.figures import counted
from rlx.loop.evaluator import Evaluator, weights_of
from rlx.runs.run import Run
from rlx.runs.status import COMPLETED
from rlx.study.lifecycle import Phase
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
                found.append(Measured(seed, str(job.run), value, score.level, score.file))
            elif job.seed_states.get(seed) != COMPLETED:
                found.append(Measured(seed, str(job.run), None))
    return found if phase == "trial" else sorted(found, key=lambda one: one.seed)


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
    for name, run, seeds in waiting:
        record_weights(study, name, run, seeds)
    draw = drawn(study, candidates, phase)
    evaluator = Evaluator(study)
    for name, run, seeds in waiting:
        say(f"measuring {counted(len(seeds), 'seed')} of {name} ({phase}, {run})")
        _measure(study, evaluator, name, run, seeds, phase, draw)


def _waiting(state: State, candidates: Sequence[str], phase: Phase) -> list[tuple[str, str, list[int]]]:
    """Return what is to be measured: a candidate, a run of it, and its seeds."""
    return [(name, run, seeds) for name in candidates for run, seeds in unmeasured(state, name, phase).items()]


def record_weights(study: Study, candidate: str, run: str, seeds: Iterable[int]) -> None:
    """Write the hashes of final checkpoints into the ledger; one that is missing has nothing to be measured."""
    folder = Run(study.root / "runs" / run)
    found = {str(seed): weights_of(folder, seed) for seed in seeds}
    missing = [seed for seed, sha256 in found.items() if sha256 is None]
    if missing:
        raise EvidenceInvalid(
            f"{run}: seed {missing[0]} is completed and has no final checkpoint", hint=f"rlx info {run} --traceback"
        )
    key = f"{run}:{','.join(found)}"
    study.ledger.append("weights", key=key, candidate=candidate, run=run, checkpoints=found)


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
            first = secrets.randbelow(len(EPISODE_SEEDS[purpose]) - episodes)
            held.append("drawn", purpose=purpose, first=first, episodes=episodes, candidates=list(candidates))
            known = _known(replay(held.events), purpose, candidates)
    if known is None:
        raise EvidenceInvalid(
            "no episodes could be drawn: a side has jobs under way or checkpoints that are not recorded",
            hint="rlx study audit",
        )
    return known


def _known(state: State, purpose: Purpose, candidates: Sequence[str]) -> Draw | None:
    for draw in reversed(state.draws):
        is_for_them = purpose == "search" or set(draw.candidates) == set(candidates)
        if draw.purpose == purpose and is_for_them:
            return draw
    return None


def _measure(
    study: Study, evaluator: Evaluator, candidate: str, run: str, seeds: Sequence[int], phase: Phase, draw: Draw
) -> None:
    """Measure one run's seeds and write each score into the ledger; a policy that failed scores NaN there."""
    weights = study.state().weights.get(candidate, {})
    expected = {seed: weights[seed].sha256 for seed in seeds}
    for one in evaluator.measure(candidate, run, expected, draw, study.evidence / phase):
        name = one.file.relative_to(study.folder).as_posix()
        study.ledger.append(
            "evaluated", key=f"{candidate}:{phase}:{one.seed}:{draw.row}", candidate=candidate, phase=phase,
            seed=one.seed, level=one.document["level"], file=name, sha256=files.sha256(one.file.read_bytes()),
            score=score_of(study, one.document), parameters=one.document.get("parameters"),
            **_failure(one.document),
        )  # fmt: skip


def _failure(document: Mapping[str, Any]) -> dict[str, str]:
    """Return why a policy has no score, as a row has it; the whole of it is in the document."""
    says = (document.get("failure") or {}).get("says", "")
    return {"failure": " ".join(says.split())[:MOST_SAID]} if says else {}


def unlike(study: Study, *, pin: str) -> str:
    """Say how the scores in the ledger were made otherwise than the contract, whose evaluator is `pin`, says now."""
    metric = study.contract().metric
    for told, value, document in _scored(study):
        figure = (document.get("figures") or {}).get(metric.name) if metric else None
        if figure is None or not math.isclose(files.number(figure), value, rel_tol=1e-9, abs_tol=1e-9):
            wanted = f"which is not its `{metric.name}`" if metric else "and the contract has no metric"
            return f"{told} scored {value:g}, {wanted}: a study keeps the metric of its scores"
        if document.get("pin") not in (None, pin):
            return f"{told} was measured at another commit: a study keeps the baseline of its scores"
    return ""


def _scored(study: Study) -> Iterator[tuple[str, float, Mapping[str, Any]]]:
    """Yield what has a score, the score, and its document; where that is gone, `verify` tells."""
    for (name, phase), found in study.state().evaluations.items():
        for seed, score in found.items():
            with contextlib.suppress(OSError, FileDamaged):
                document = files.read_json(study.folder / score.file)
                if math.isfinite(score.value) and isinstance(document, dict):
                    yield f"seed {seed} of {name} ({phase})", score.value, document


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
