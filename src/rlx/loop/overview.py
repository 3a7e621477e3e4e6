"""A contract as it stands: its eight points, what the budget affords, what is missing; and who is told of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlx import files
from rlx.figures import deviation
from rlx.loop import handover, proceed
from rlx.study import approval, pinned, points
from rlx.study import contract as contracts
from rlx.study.afford import Cost, affords
from rlx.study.contract import Contract
from rlx.study.hook_view import FILE as HOOK_FILE
from rlx.study.hook_view import hook_view
from rlx.study.screen import Row, screen
from rlx.study.state import State
from rlx.study.study import Study, studies
from rlx.study.task import Task


def noticed(study: Study) -> dict[str, Any]:
    """Write into the ledger that the contract is another now, whoever edited it; return how it stands."""
    now = contracts.sha256(study.contract_path)
    if study.state().contract != now:
        study.ledger.append("amended", contract=now)
    tell_hooks(study)
    return overview(study)


def tell_hooks(study: Study) -> None:
    """Write what the hosts' hooks read."""
    files.write_json(study.folder / HOOK_FILE, hook_view(study.task(), study.contract(), study.state()))


def overview(study: Study) -> dict[str, Any]:
    """Return the contract's eight points as they stand, what the budget affords, and what is missing."""
    (contract, sha256), task, state = study.contract_with_hash(), study.task(), study.state()
    found = proceed.open_points(study, state, contract)
    return {
        "study": study.name,
        "task": study.task_name,
        "status": proceed.status_of(study, state, contract),
        "missing": [str(one) for one in found],
        "notes": [str(one) for one in _notes(study, contract, task)],
        "points": [row.document() for row in _screen(study, contract, task, found)],
        "affords": list(_affords(study, contract)),
        "rehearsal": _rehearsal(study, state),
        "sha256": sha256,
        "file": study.contract_path.relative_to(study.root).as_posix(),
        "command": proceed.next_step(study).command,
    }


def _rehearsal(study: Study, state: State) -> str:
    """Say how the last rehearsal went, and whether it was one of the contract as it is."""
    rehearse = f"rlx study rehearse {study.name}"
    if state.rehearsal is None:
        return f"none yet; to walk the whole path before anything is spent: {rehearse}"
    failed = [one for one in state.rehearsal["checks"] if not one["ok"]]
    went = f"failed: {failed[0]['name']}: {failed[0]['says']}" if failed else "the whole path works"
    is_of_this = state.rehearsal["contract"] == state.contract
    return went if is_of_this else f"none of this contract, which was amended since: {rehearse} (before it {went})"


def _screen(study: Study, contract: Contract, task: Task, problems: Sequence[points.Problem]) -> tuple[Row, ...]:
    level = contract.automation.approval if contract.automation else "asserted"
    return screen(
        contract, task, problems=problems, notes=_notes(study, contract, task), affords=_affords(study, contract),
        forgeable=approval.forgeable(level),
    )  # fmt: skip


def _notes(study: Study, contract: Contract, task: Task) -> tuple[points.Problem, ...]:
    """Return what should be known of a contract, also that its baseline lacks what was confirmed before on its task."""
    others = [one for one in studies(study.root) if one.task_name == study.task_name and one != study]
    lacking = [(one, handover.pending(one, one.state())) for one in others]
    says = [f"what `{one.name}` confirmed is not in it; to begin with that: {how}" for one, how in lacking if how]
    says += pinned.notes(contract, task, study.root)
    return (*points.notes(contract, task), *(points.Problem("baseline", one) for one in says))


def _affords(study: Study, contract: Contract) -> tuple[str, ...]:
    """Say what the budget pays for, with what a seed of the baseline has cost where that is known."""
    if contract.budget is None or contract.metric is None:
        return ()
    state = study.state()
    measured = [job.spent for job in state.jobs_of("baseline", "baseline") if job.spent and job.spent.seeds]
    seconds = sum(one.seconds for one in measured) / sum(one.seeds for one in measured) if measured else None
    cost = Cost.of(contract.budget, seconds, state.rehearsal.get("seed_seconds") if state.rehearsal else None)
    told = affords(contract.budget, contract.metric, cost=cost, baseline_sd=_baseline_sd(study))
    return told.lines(contract.metric.name)


def _baseline_sd(study: Study) -> float | None:
    """Return the spread of the pool, where it is measured."""
    values = [score for score in study.state().scores("baseline", "baseline").values() if score == score]
    return deviation(values) if len(values) > 1 else None
