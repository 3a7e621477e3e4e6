"""The baseline's pool: the seeds that every candidate is measured against, trained once and measured once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rlx.compare.noise import noise
from rlx.errors import EvidenceInvalid, JobFailed
from rlx.figures import counted
from rlx.launch import door
from rlx.launch import launch as plain
from rlx.launch.door import Order
from rlx.launch.reconcile import reconcile
from rlx.loop import notes, proceed, scores
from rlx.loop.scores import Measured, Say
from rlx.runs.run import Run
from rlx.study import points, remedy
from rlx.study.afford import claim_effect
from rlx.study.candidate import BASELINE
from rlx.study.contract import Contract
from rlx.study.state import State
from rlx.study.study import Study

ROUNDS = 3
"""How often seeds that failed are replaced before it is left to a person."""


def fill(study: Study, *, say: Say, follow: Any = plain.wait) -> dict[str, Any]:
    """Train what the pool lacks, measure it, and return how noisy the baseline is."""
    contract = study.contract()
    wanted = door.pool_seeds(contract)
    state = scores.measure(study, [BASELINE], "baseline", say=say)
    for _ in range(ROUNDS):
        if not state.lacks(BASELINE, "baseline", wanted):
            break
        state = _round(study, say=say, follow=follow)
    found = [one for one in scores.measured(state, BASELINE, "baseline") if one.score is not None]
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
        "warnings": [*notes.flat(state, contract), *_warnings(study, found)],
        "command": proceed.next_step(study).command,
    }


def _finds(contract: Contract, sd: float) -> dict[str, float]:
    """Return the smallest difference that the contract's claim finds 4 times in 5, by its seeds a side."""
    metric = contract.metric
    return {str(metric.seeds): claim_effect(metric) * sd} if metric is not None else {}


def _warnings(study: Study, found: Sequence[Measured]) -> list[str]:
    """Say that figures are guarded which nobody reports."""
    contract = study.contract()
    figures = {name for one in found for name in scores.figures(study, one)} if contract.guardrails else ()
    told = [f"{says} ({command})" if command else says for says, command in unguarded(contract, figures)]
    return [f"{one}; until that is mended no claim can be confirmed" for one in told]


def unguarded(contract: Contract, figures: Iterable[str]) -> list[tuple[str, str]]:
    """Return what is wrong with guardrails beside the figures that were seen to be reported, and what mends it."""
    found = [(guard, *one) for guard in contract.guardrails for one in points.misread(guard, sorted(figures))]
    return [(says, remedy.guardrail(contract, guard, meant) if meant else "") for guard, says, meant in found]


def _round(study: Study, *, say: Say, follow: Any) -> State:
    """Train and measure what the pool lacks; where no seed of it has a score, that is all: a person must look."""
    launched = door.launch(study, Order(BASELINE, "baseline"))
    say(f"{launched.run}: {counted(len(launched.seeds), 'seed')} of the baseline")
    follow(Run(study.root / "runs" / str(launched.run)))
    reconcile(study)
    state = scores.measure(study, [BASELINE], "baseline", say=say)
    if state.escalation is None:
        return state
    if state.jobs[launched.job].outcome == "completed":
        raise EvidenceInvalid(state.escalation, hint="rlx next")
    raise JobFailed(state.escalation, hint=f"rlx logs {launched.run}")
