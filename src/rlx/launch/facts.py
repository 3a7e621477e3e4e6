"""What the gates judge beside the ledger: contract, task, candidate, approval, sandbox and machine, as they are now."""

from __future__ import annotations

import math
import shutil
import time

from rlx import sandbox
from rlx.launch.examined import Examined
from rlx.launch.executor import LOCAL
from rlx.launch.resources import core_places, gpu_places, memory_places
from rlx.study import approval, gates, points
from rlx.study import contract as contracts
from rlx.study import task as tasks
from rlx.study.contract import Contract, Hardware
from rlx.study.gates import Facts
from rlx.study.reason import Reason
from rlx.study.state import State
from rlx.study.study import Study
from rlx.study.task import Task


def facts_of(study: Study, contract: Contract, task: Task, examined: Examined) -> Facts:
    """Look at everything outside the ledger that the gates judge."""
    state = study.state()
    disk = shutil.disk_usage(study.root).free / 2**30
    hardware, is_local = contract.hardware or Hardware(), task.adapter.launcher.executor == LOCAL
    return Facts(
        now=time.time(),
        contract_sha256=contracts.sha256(study.contract_path),
        contract_problems=tuple(str(one) for one in points.problems(contract, task, root=study.root)),
        task_problems=tasks.problems(task, study.root),
        plan=examined.plan,
        content=examined.content,
        candidate_problems=examined.problems,
        breaches=examined.breaches,
        approval_problems=approval_problems(study, state),
        sandbox_problems=_sandbox_problems(contract),
        core_places=core_places(hardware.cores) if is_local else math.inf,  # an engine knows its own machines
        gpu_places=len(gpu_places(hardware.gpus)) if is_local else math.inf,
        memory_places=memory_places(hardware.memory_gb) if is_local else math.inf,
        free_disk_gb=disk,
    )


def approval_problems(study: Study, state: State) -> tuple[str, ...]:
    """Return what the approval that the ledger has cannot show, verified anew; the gates say if it is void or over."""
    if state.approval is None:
        return ()
    event, own = state.approval.event, f"{study.task_name}/{study.name}"
    is_own = event.get("study") == own
    says = f"the approval is for {event.get('study')}, and this is {own}: a copied or renamed study has none"
    return (*(() if is_own else (says,)), *approval.unproven(event, root=study.root))


def unapproved(study: Study, state: State, contract: Contract) -> tuple[Reason, ...]:
    """Return every reason why no approval of the contract stands now; empty: it is approved."""
    facts = Facts(time.time(), contracts.sha256(study.contract_path), approval_problems=approval_problems(study, state))
    return gates.unapproved(state, contract, facts)


def _sandbox_problems(contract: Contract) -> tuple[str, ...]:
    if contract.automation is None or contract.automation.sandbox != "required":
        return ()
    found = sandbox.probe()
    return () if found.is_enforced else ("the kernel enforces no sandbox here, and the contract requires one",)
