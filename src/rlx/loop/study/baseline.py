"""The baseline's pool: the seeds that every candidate is compared with, trained and measured once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rlx.command import Command
from rlx.compare.seed_noise import noise
from rlx.errors import EvidenceInvalid, JobFailed
from rlx.launch import launch as plain
from rlx.launch.study_jobs import launch_candidate
from rlx.launch.study_jobs.launch_candidate import LaunchOrder
from rlx.launch.study_jobs.reconcile import reconcile
from rlx.loop.study import measure_scores, verdict_notes
from rlx.loop.study.measure_scores import Measured, Say
from rlx.loop.study.step_commands import next_step
from rlx.number_format import counted
from rlx.runs.run import Run
from rlx.study.candidate.candidate import BASELINE
from rlx.study.contract import contract_checks, fixes
from rlx.study.contract.budget_power import claim_effect
from rlx.study.contract.contract import Contract
from rlx.study.ledger.state import State
from rlx.study.situation import pool_size
from rlx.study.study_folder import Study

ROUNDS = 3
"""How often failed seeds are replaced before a person must look."""


def fill(study: Study, *, say: Say, follow: Any = plain.wait) -> dict[str, Any]:
    """Train and measure the missing seeds of the pool; return how noisy the baseline is."""
    contract = study.contract()
    wanted = pool_size(contract)
    state = measure_scores.measure(study, [BASELINE], "baseline", say=say)
    for _ in range(ROUNDS):
        if not state.lacks(BASELINE, "baseline", wanted):
            break
        state = _round(study, say=say, follow=follow)
    found = [one for one in measure_scores.measured(state, BASELINE, "baseline") if one.score is not None]
    if state.lacks(BASELINE, "baseline", wanted):
        raise EvidenceInvalid(
            f"{len(found)} of {wanted} seeds of the baseline could be trained and measured in {ROUNDS} rounds",
            hint=f"rlx logs {state.jobs_of(BASELINE, 'baseline')[-1].run}",
        )
    described = noise([one.score for one in found if one.score is not None])
    return {
        "study": study.name,
        "metric": contract.metric.name if contract.metric else "",
        "seeds": {str(one.seed): one.score for one in found},
        "level": found[0].level,
        **described.document(),
        "finds": _finds(contract, described.sd),
        "warnings": [*verdict_notes.flat(state, contract), *_warnings(study, found)],
        "command": str(next_step(study).command),
    }


def _finds(contract: Contract, sd: float) -> dict[str, float]:
    """Return the smallest difference that the contract's claim finds 4 times in 5, by its seeds per side."""
    metric = contract.metric
    return {str(metric.seeds): claim_effect(metric) * sd} if metric is not None else {}


def _warnings(study: Study, found: Sequence[Measured]) -> list[str]:
    """Return warnings about guarded figures that the evaluation does not report."""
    contract = study.contract()
    if not contract.guardrails:
        return []
    figures = {name for seed in found for name in measure_scores.figures(study, seed)}
    warnings = []
    for message, fix in unguarded(contract, figures):
        hint = f" ({fix})" if fix else ""
        warnings.append(f"{message}{hint}; until that is fixed no claim can be confirmed")
    return warnings


def unguarded(contract: Contract, figures: Iterable[str]) -> Iterator[tuple[str, Command | None]]:
    """Yield the problems of guardrails, given the reported figures, each with its fix if known."""
    for guardrail in contract.guardrails:
        for message, meant in contract_checks.misread(guardrail, sorted(figures)):
            yield message, fixes.guardrail(contract, guardrail, meant) if meant else None


def _round(study: Study, *, say: Say, follow: Any) -> State:
    """Train and measure the missing seeds; raise if none of them gets a score, because a person must look."""
    launched = launch_candidate.launch(study, LaunchOrder(BASELINE, "baseline"))
    say(f"{launched.run}: {counted(len(launched.seeds), 'seed')} of the baseline")
    follow(Run(study.root / "runs" / str(launched.run)))
    reconcile(study)
    state = measure_scores.measure(study, [BASELINE], "baseline", say=say)
    if state.escalation is None:
        return state
    if state.jobs[launched.job].outcome == "completed":
        raise EvidenceInvalid(state.escalation, hint="rlx next")
    raise JobFailed(state.escalation, hint=f"rlx logs {launched.run}")
