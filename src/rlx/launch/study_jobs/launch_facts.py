"""Gather the facts that decide about a launch: contract, task, candidate, approval, sandbox and machine."""

from __future__ import annotations

import shutil
import time

from rlx import external_programs
from rlx.launch.executors.remote_job import launcher_of
from rlx.launch.resources import core_places, gpu_places, memory_places
from rlx.launch.study_jobs.candidate_check import CheckedCandidate, changes_code
from rlx.runs import project
from rlx.runs.job_folder import LOCAL
from rlx.sandbox.self_test import run_self_test
from rlx.study import moves
from rlx.study.approval import approval
from rlx.study.contract import contract as contracts
from rlx.study.contract import contract_checks
from rlx.study.contract.contract import Contract, Hardware
from rlx.study.ledger.state import State
from rlx.study.refusal import Refusal
from rlx.study.situation import CandidateFacts, Facts, MachineFacts, Situation
from rlx.study.study_folder import Study
from rlx.study.task import task as tasks
from rlx.study.task.task import Task


def launch_facts(study: Study, state: State, contract: Contract, checked: CheckedCandidate) -> Facts:
    """Return everything outside the ledger that decides about a launch."""
    task = study.task()
    return Facts(
        now=time.time(),
        contract_sha256=contracts.sha256(study.contract_path),
        contract_problems=contract_problems(study, contract, task),
        task_problems=_task_problems(study, state, task),
        approval_problems=approval_problems(study, state),
        sandbox_problems=_sandbox_problems(contract),
        machine=_machine(study, contract, task),
        candidates=candidate_facts(study, checked),
    )


def candidate_facts(study: Study, checked: CheckedCandidate) -> dict[str, CandidateFacts]:
    """Return a checked candidate as facts."""
    name = checked.candidate.id
    is_unedited = not checked.keys and not checked.changes
    facts = CandidateFacts(
        checked.plan, checked.content, checked.problems, checked.breaches, changes_code=changes_code(study, name),
        worktree=str(checked.tree) if is_unedited else "",
    )  # fmt: skip
    return {name: facts}


def contract_problems(study: Study, contract: Contract, task: Task) -> tuple[Refusal, ...]:
    """Return why points of the contract are not settled."""
    problems = contract_checks.problems(contract, task, root=study.root)
    return tuple(map(blocked, problems))


def blocked(problem: contract_checks.OpenPoint) -> Refusal:
    """Return an open point of the contract as a refusal."""
    return Refusal("BLOCKED", str(problem), problem.command, problem.point)


def is_applied(study: Study, state: State) -> bool:
    """Return whether the repository's files have the confirmed change, by their content: committed or not."""
    if state.incumbent is None or not study.handover_path.is_file():
        return False
    check = ("apply", "--reverse", "--check", str(study.handover_path))
    return external_programs.git(*check, folder=study.root) is not None


def _task_problems(study: Study, state: State, task: Task) -> tuple[str, ...]:
    """Return how a task's files have changed. The confirmed change is welcome there: jobs run the pinned commit."""
    if is_applied(study, state):
        return ()
    return tasks.problems(task, study.root)


def _machine(study: Study, contract: Contract, task: Task) -> MachineFacts:
    """Return what this machine has room for. An external executor knows its own machines."""
    free_disk_gb = shutil.disk_usage(study.root).free / 2**30
    if launcher_of(task, study.root).executor != LOCAL:
        return MachineFacts(free_disk_gb=free_disk_gb)
    hardware = contract.hardware or Hardware()
    gpus = len(gpu_places(hardware.gpus))
    return MachineFacts(core_places(hardware.cores), gpus, memory_places(hardware.memory_gb), free_disk_gb)


def approval_problems(study: Study, state: State) -> tuple[str, ...]:
    """Return why the approval in the ledger proves nothing; the rulebook says whether it is void or expired."""
    if state.approval is None:
        return ()
    event, name = state.approval.event, f"{study.task_name}/{study.name}"
    problems = list(approval.proof_problems(event, root=study.root))
    if not project.is_identity_of(str(event.get("folder")), study.root):
        problems.insert(0, "the approval is for another folder: a copy of a project needs its own approval")
    if event.get("study") != name:
        message = f"the approval is for {event.get('study')}, and this is {name}: a copied or renamed study has none"
        problems.insert(0, message)
    return tuple(problems)


def unapproved(study: Study, state: State, contract: Contract) -> tuple[Refusal, ...]:
    """Return every reason why no approval of the contract holds now."""
    sha256 = contracts.sha256(study.contract_path)
    facts = Facts(time.time(), sha256, approval_problems=approval_problems(study, state))
    return tuple(moves.unapproved(Situation(state, contract, facts)))


def _sandbox_problems(contract: Contract) -> tuple[str, ...]:
    if contract.automation is None or contract.automation.sandbox != "required" or run_self_test().is_enforced:
        return ()
    return ("the kernel enforces no sandbox here, and the contract requires one",)
