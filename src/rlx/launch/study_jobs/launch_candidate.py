"""Check a candidate, and launch its job exactly as it was checked; the ledger gets the intent first.

While it holds the ledger, rlx judges a launch again right before it writes the intent. Then it creates the run and
starts the supervisor, which records the start. If the launcher dies in between, `reconcile` closes the intent.
Not covered: processes that somebody starts without rlx.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from rlx import files
from rlx.command import Command, rlx
from rlx.errors import EvidenceInvalid, Refused, RlxError, UsageError
from rlx.evaluate.stored_code import refuse_foreign_program
from rlx.launch import launch as runs
from rlx.launch.executors import remote_job
from rlx.launch.git import worktree
from rlx.launch.resources import Slots
from rlx.launch.study_jobs import study_job
from rlx.launch.study_jobs.candidate_check import CheckedCandidate, check_on_disk
from rlx.launch.study_jobs.launch_facts import candidate_facts, launch_facts
from rlx.launch.study_jobs.reconcile import START_SECONDS, abandon, reconcile
from rlx.runs import process
from rlx.runs.job_folder import LOCAL
from rlx.runs.run import Run
from rlx.study import moves
from rlx.study.budget import Amount
from rlx.study.candidate import candidate_experiment
from rlx.study.contract import contract as contracts
from rlx.study.contract.contract import Contract
from rlx.study.ledger.ledger import Held
from rlx.study.ledger.lifecycle import DRAWN_PHASES, Phase
from rlx.study.ledger.state import State, draw_seeds, replay
from rlx.study.moves import Move
from rlx.study.refusal import Refusal
from rlx.study.situation import Facts, Situation
from rlx.study.study_folder import UNCHANGED, Study

START_POLL_SECONDS = 0.1
MOST_REASONS = 40
MOST_SAID = 2000


@dataclass(frozen=True)
class LaunchOrder:
    """A requested launch; without a count the phase decides, without a job the next free name is used."""

    candidate: str
    phase: Phase
    plan: str | None = None
    count: int | None = None
    job: str | None = None
    is_unattended: bool = False
    smoke_share: float = candidate_experiment.SMOKE_SHARE
    """The share of a training that a rehearsal takes."""

    def __post_init__(self) -> None:
        if self.count is not None and self.count < 1:
            raise UsageError(f"--seeds {self.count}: a job trains at least one seed", hint="leave --seeds out")

    @property
    def command(self) -> Command:
        """The command that requests it."""
        command = rlx("launch", self.candidate, "--phase", self.phase)
        if self.plan:
            command = command.plus("--plan", self.plan)
        if self.count:
            command = command.plus("--seeds", str(self.count))
        return command


@dataclass(frozen=True)
class LaunchedJob:
    """A job that was accepted; without a run, rlx only judged the order."""

    order: LaunchOrder
    job: str
    seeds: tuple[int, ...]
    reserve: Amount
    run: str | None
    slots: tuple[str | None, ...] = ()  # the places of its seeds that train at the same time
    is_known: bool = False

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data, with the next command."""
        following = rlx("wait", self.run, "--timeout", "300") if self.run else self.order.command
        return {
            "candidate": self.order.candidate,
            "phase": self.order.phase,
            "job": self.job,
            "seeds": list(self.seeds),
            "reserve": self.reserve.document(),
            "slots": list(self.slots),
            "run": self.run,
            "is_known": self.is_known,
            "next": str(following),
        }


def check(study: Study, identity: str, *, is_dry: bool = False) -> CheckedCandidate:
    """Check a candidate and record the result: validated with its plan, or one refusal with every reason."""
    checked = check_on_disk(study, identity)
    with study.ledger.held() as held:
        state = replay(held.events)
        facts = Facts(time.time(), "", candidates=candidate_facts(study, checked))
        refusals = moves.refusals(state, study.contract(), facts, Move("check", identity))
        if refusals:
            refuse(held, "check", identity, refusals, is_dry=is_dry)
        standing = state.candidates.get(identity)
        if is_dry or standing is None or standing.state not in ("debug", "draft", "validated"):
            return checked
        patch = worktree.patch_text(checked.changes)
        files.write_atomic(study.patch_path(identity), patch)  # before its row
        if standing.state == "validated" and standing.plan == checked.plan:
            return checked
        reasons = {"debug": "mended", "validated": "edited after it was checked"}
        if standing.state in reasons:
            why = reasons[standing.state]
            held.append("moved", candidate=identity, before=standing.state, after="draft", why=why)
        held.append(
            "moved", candidate=identity, before="draft", after="validated", why="checked", plan=checked.plan,
            content=checked.content, patch=files.sha256(patch),
        )  # fmt: skip
    return checked


def refuse(
    held: Held,
    action: str,
    identity: str,
    refusals: Sequence[Refusal],
    *,
    is_dry: bool = False,
    details: Mapping[str, Any] | None = None,
) -> NoReturn:
    """Write one row with every refusal and further details, unless it is only a trial, and raise the error."""
    if is_dry:
        raise refused_error(f"{identity} would be refused", refusals)
    reasons = [{"code": refusal.code, "says": refusal.message[:MOST_SAID]} for refusal in refusals[:MOST_REASONS]]
    if len(refusals) > MOST_REASONS:
        reasons.append({"code": refusals[-1].code, "says": f"and {len(refusals) - MOST_REASONS} more reasons"})
    held.append("refused", action=action, candidate=identity, reasons=reasons, **(details or {}))
    raise refused_error(f"{identity} is refused", refusals)


def refused_error(what: str, refusals: Sequence[Refusal]) -> Refused:
    """Return the error that lists every refusal, with the first fix as its hint."""
    lines = "\n".join(f"  {refusal.code}: {refusal.message[:MOST_SAID]}" for refusal in refusals[:MOST_REASONS])
    if len(refusals) > MOST_REASONS:
        lines += f"\n  and {len(refusals) - MOST_REASONS} more"
    fix = next((refusal.fix for refusal in refusals if refusal.fix), None)
    reasons = [refusal.document() for refusal in refusals]
    return Refused(f"{what}:\n{lines}", hint=str(fix or "") or None, reasons=reasons, fix=fix)


def launch(study: Study, order: LaunchOrder, *, is_dry: bool = False) -> LaunchedJob:
    """Launch a candidate's job if the rulebook allows it; an open job for the same order is returned as it is."""
    if order.phase == "smoke":  # it needs no approval, and only an approval would show that the folder is known
        refuse_foreign_program(
            f"the training of the task {study.task_name}", root=study.root, item=study.folder,
            hint="look at its contract; if you trust it: rlx study approve",
        )  # fmt: skip
    reconcile(study)
    checked = check_on_disk(study, order.candidate)
    facts = launch_facts(study, study.state(), study.contract(), checked)
    with study.ledger.held() as held:
        job = _open_job(replay(held.events), order, checked)
        if job is None:
            job = _accept(study, held, order, checked, facts, is_dry=is_dry)
    if is_dry:
        return job
    if not job.is_known:
        _start(study, job)
    elif remote_job.launcher_of(study.task(), study.root).executor == LOCAL:
        _wait_for_start(study, job)
    return job


def _open_job(state: State, order: LaunchOrder, checked: CheckedCandidate) -> LaunchedJob | None:
    """Return the open job for this order, if there is one."""
    for job in state.open_jobs:
        if (job.candidate, job.phase, job.plan) == (order.candidate, order.phase, checked.plan):
            return LaunchedJob(order, job.id, job.seeds, job.reserve, job.run, job.slots, is_known=True)
    return None


def _wait_for_start(study: Study, known: LaunchedJob) -> None:
    """Wait until a job that another process launched has its supervisor, or is given up."""
    until = time.monotonic() + START_SECONDS
    while (job := study.state().jobs[known.job]).is_open and job.process is None and time.monotonic() < until:
        reconcile(study)
        time.sleep(START_POLL_SECONDS)


def _accept(
    study: Study, held: Held, order: LaunchOrder, checked: CheckedCandidate, facts: Facts, *, is_dry: bool
) -> LaunchedJob:
    """Judge an order while the ledger is held, create the run and write the intent; a dry order is only judged."""
    state = replay(held.events)
    contract = study.contract()
    at = Situation(state, contract, facts)
    plan = order.plan
    if plan is None and order.candidate in UNCHANGED:
        plan = checked.plan  # a candidate that changes nothing has only one plan
    move = moves.launch_move(
        at, order.candidate, order.phase, plan=plan, count=order.count, is_unattended=order.is_unattended
    )
    if order.phase in DRAWN_PHASES:
        count = len(move.seeds)
        seeds = draw_seeds(state, order.candidate, order.phase, count, random_below=secrets.randbelow)
        move = replace(move, seeds=seeds)
    refusals = moves.judge(at, move)
    if refusals:
        refuse(held, "launch", order.candidate, refusals, is_dry=is_dry)
    if is_dry:
        shown = () if order.phase in DRAWN_PHASES else move.seeds
        return LaunchedJob(order, "", shown, move.reserve, None)
    name = order.job or f"j{len(state.jobs) + 1:03d}"
    slots = _slots(study, contract, checked, taken=state.slots)[: len(move.seeds)]
    job = LaunchedJob(order, name, move.seeds, move.reserve, None, slots)
    assert checked.experiment is not None  # otherwise there were refusals
    experiment = candidate_experiment.job_experiment(
        checked.experiment, contract, name=f"{study.name}_{order.candidate}", phase=order.phase, seeds=job.seeds,
        smoke_share=order.smoke_share,
    )  # fmt: skip
    # A run without an intent cannot train, so it does no harm if we die between the two.
    run = runs.create(experiment, root=study.root, lineage=_lineage(study, contract, job, checked))
    held.append(
        "intent", key=name, job=name, candidate=order.candidate, phase=order.phase, seeds=list(job.seeds),
        plan=checked.plan, run=run.name, config=run.metadata["config_hash"],
        identity=study_job.identity_of(run), reserve=job.reserve.document(), slots=list(slots),
        process=process.current().document(),
    )  # fmt: skip
    return replace(job, run=run.name)


def _start(study: Study, job: LaunchedJob) -> None:
    """Start the supervisor, or submit the run to the task's executor; a job that does not start is abandoned."""
    run = Run(study.root / "runs" / str(job.run))
    launcher = remote_job.launcher_of(study.task(), study.root)
    try:
        if launcher.executor == LOCAL:
            runs.start(run, job.seeds)
        else:
            remote_job.submit_run(run, job.seeds, launcher)
    except (RlxError, OSError) as error:
        if study.state().jobs[job.job].process is None:
            abandon(study, job.job, getattr(error, "message", str(error)))
        raise


def _lineage(study: Study, contract: Contract, job: LaunchedJob, checked: CheckedCandidate) -> dict[str, Any]:
    assert contract.hardware
    assert contract.budget
    assert contract.automation
    assert contract.baseline
    memory_gb = contract.hardware.memory_gb
    disk_bytes = int(contract.hardware.disk_gb * 2**30)
    seconds = contract.budget.per_seed_minutes * 60
    if job.order.phase == "smoke":
        seconds = contracts.REHEARSAL_SECONDS
    diff_sha256 = worktree.diff_sha256(checked.changes)
    return {
        "task": study.task_name,
        "study": study.name,
        "candidate": job.order.candidate,
        "phase": job.order.phase,
        "job": job.job,
        "worktree": _frozen_tree(study, contract.baseline.commit, checked, diff_sha256),
        "commit": contract.baseline.commit,
        "diff_sha256": diff_sha256,
        "limits": {
            "seed_seconds": seconds,
            "memory_bytes": memory_gb and int(memory_gb * 2**30),
            "file_bytes": disk_bytes,
            "disk_bytes": disk_bytes,
            "processes": 64 + 16 * contract.hardware.cores,
        },
        "network": contract.automation.network,
        "local_sockets": study.task().adapter.local_sockets,
        "sandbox": contract.automation.sandbox,
        "reads": list(contract.hardware.reads),
        "executor": remote_job.launcher_of(study.task(), study.root).executor,
        "slots": list(job.slots),
    }


def _slots(
    study: Study, contract: Contract, checked: CheckedCandidate, *, taken: tuple[str | None, ...]
) -> tuple[str | None, ...]:
    """Return the places that the study's open jobs leave free; another executor assigns its own GPUs."""
    assert checked.experiment is not None  # otherwise there were refusals
    assert contract.hardware
    free = contract.hardware.parallel - len(taken)
    if remote_job.launcher_of(study.task(), study.root).executor != LOCAL:
        return (None,) * free
    resources = candidate_experiment.resources_of(checked.experiment, contract.hardware).model_dump()
    machine = Slots.of({"device": checked.experiment.device, "resources": resources})
    return machine.without(taken).places[:free]


def _frozen_tree(study: Study, commit: str, checked: CheckedCandidate, diff_sha256: str) -> str:
    """Copy the checked code into the folder that jobs run, so that the worktree can be edited; return its path."""
    folder = study.tree(commit, diff_sha256)
    path = folder.relative_to(study.root).as_posix()
    if not folder.exists():
        worktree.write_tree(study.root, commit, folder, patch=worktree.patch_text(checked.changes) or None)
    if worktree.diff_sha256(worktree.diff(folder, commit, root=study.root)) != diff_sha256:
        raise EvidenceInvalid(f"{path} differs from the checked code", hint=f"rlx makes it again after: rm -r {path}")
    return path
