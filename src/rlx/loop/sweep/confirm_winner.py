"""Confirm the winner of a sweep against its base config on fresh seeds, by the same verdict as `rlx settle`."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import fmean
from typing import Any

from rlx.compare.code_version import CurrentCode
from rlx.compare.question import ComparisonQuestion
from rlx.compare.stored_scores import scores_for
from rlx.errors import EvidenceInvalid, RlxError
from rlx.launch import launch
from rlx.loop.settle.plan import cap
from rlx.loop.settle.run_or_config import readable_runs
from rlx.loop.settle.settle import Contest, Limits, Settlement
from rlx.loop.settle.train_seeds import Report
from rlx.loop.sweep.sweep_log import SweepLog, SweepState
from rlx.loop.sweep.trial_runs import LINEAGE, refuse_full_disk
from rlx.runs.run import Run
from rlx.search.space import Values

FIRST_FRESH_SEED = 1000
"""Search and race use seeds far below; see docs/guides/sweeps.md."""
START_SEEDS = {"base": 10, "winner": 3}


def confirm_winner(
    log: SweepLog, state: SweepState, values: Values, *, root: Path, ground: CurrentCode, report: Report
) -> dict[str, Any]:
    """Train base and winner on fresh seeds until it is decided, and return what the log records."""
    base = _open(log, state, "base", {}, root=root)
    new = _open(log, state, "winner", values, root=root)
    limits = Limits(cap(state.plan.confirm), question=state.plan.question)
    try:
        refuse_full_disk(log.name, root=root)
        settlement = Contest(base, new, ground=ground, limits=limits, report=report).settle()
        refuse_full_disk(log.name, root=root)  # seeds that ended so are missing, and the next session trains them
    except EvidenceInvalid as error:
        return {"is_confirmed": False, "line": error.message, "why": "invalid", "runs": [base.name, new.name]}
    except RlxError:
        refuse_full_disk(log.name, root=root)  # the cause, if it is full
        raise
    return _answer(settlement, new, state.plan.question)


def _answer(settlement: Settlement, new: Run, question: ComparisonQuestion) -> dict[str, Any]:
    verdict = settlement.candidate.verdict
    effect = ""
    if not math.isnan(verdict.leaning):
        effect = verdict.effect()
    return {
        "is_confirmed": verdict.verdict == "better",
        "effect": effect,
        "line": settlement.candidate.line,
        "why": settlement.why,
        "runs": [settlement.base.name, new.name],
        "score": _mean(settlement, new, question),
        "seeds": dict(settlement.seeds),
        **verdict.document(),
    }


def _mean(settlement: Settlement, new: Run, question: ComparisonQuestion) -> float | None:
    """Return the winner's mean score on the fresh seeds; None if none has a score."""
    fingerprint = settlement.candidate.fingerprint
    for known, by_seed in scores_for(Run(new.path), question).items():
        if fingerprint in (None, known) and by_seed:
            return fmean(score.score for score in by_seed.values())
    return None


def _open(log: SweepLog, state: SweepState, role: str, values: Values, *, root: Path) -> Run:
    """Return the fresh run of one side, or create it."""
    name = state.confirm_runs.get(role) or _orphan(log, role, root=root)
    if name is not None:
        log.append("confirm_run", key=role, role=role, run=name)
        return Run(root / "runs" / name)
    experiment = launch.check(state.plan.experiment(values), root=root).experiment
    seeds = tuple(range(FIRST_FRESH_SEED, FIRST_FRESH_SEED + START_SEEDS[role]))
    lineage = {LINEAGE: log.name, "confirms": role}
    run = launch.create(experiment.model_copy(update={"seeds": seeds}), root=root, lineage=lineage)
    log.append("confirm_run", key=role, role=role, run=run.name)
    state.confirm_runs[role] = run.name
    return run


def _orphan(log: SweepLog, role: str, *, root: Path) -> str | None:
    """Return a run that was created for this side just before the sweep was killed."""
    for run in readable_runs(root):
        lineage = run.metadata.get("lineage") or {}
        if lineage.get(LINEAGE) == log.name and lineage.get("confirms") == role:
            return run.name
    return None
