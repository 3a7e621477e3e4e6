"""The one door of a study: a candidate is checked, and launched only as it was checked, with the intent written first.

Every gate is judged again while the ledger is held, immediately before the intent is written; then the run is made, its
supervisor started, and that is written too. Whoever dies on the way leaves an intent that `reconcile` closes.
What is not covered: processes that somebody starts without rlx.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rlx import files
from rlx.errors import EvidenceInvalid, Refused, RlxError, UsageError
from rlx.launch import carried, governed, worktree
from rlx.launch import launch as plain
from rlx.launch.examined import Examined, changes_code, examine
from rlx.launch.executor import LOCAL
from rlx.launch.facts import facts_of
from rlx.launch.reconcile import START_SECONDS, abandon, reconcile
from rlx.launch.resources import Slots
from rlx.runs import process
from rlx.runs.run import Run
from rlx.study import contract as contracts
from rlx.study import gates, recipe
from rlx.study.budget import Amount
from rlx.study.contract import Contract
from rlx.study.gates import Facts, Request
from rlx.study.ledger import Held
from rlx.study.lifecycle import Phase, Purpose
from rlx.study.reason import Reason
from rlx.study.standing import Job
from rlx.study.state import State, next_seeds, replay
from rlx.study.study import NULL, Study
from rlx.study.task import Task

SMOKE_SECONDS = contracts.REHEARSAL_SECONDS
ANEW = (
    "propose another: rlx next. Where the machine was at fault (nobody can tell that from a job that ends itself), "
    "the same anew, with a value more than 1 % away"
)
"""What is left of a candidate of config keys that failed: there is nothing of it to mend."""
START_POLL_SECONDS = 0.1
RACE_SEEDS, LAST_SEEDS, HEAD_SEEDS = 3, 6, 6
"""What the race's first and last look take of a candidate, and what a new head is trained on."""


@dataclass(frozen=True)
class Order:
    """What is asked of the door; without a count a phase has its own, without a job's name it gets the next one."""

    candidate: str
    phase: Phase
    plan: str | None = None
    count: int | None = None
    job: str | None = None
    is_unattended: bool = False

    def __post_init__(self) -> None:
        if self.count is not None and self.count < 1:
            raise UsageError(f"--seeds {self.count}: a job trains at least one seed", hint="leave --seeds out")

    @property
    def command(self) -> str:
        """What is typed to ask for it."""
        plan = f" --plan {self.plan}" if self.plan else ""
        seeds = f" --seeds {self.count}" if self.count else ""
        return f"rlx launch {self.candidate} --phase {self.phase}{plan}{seeds}"


@dataclass(frozen=True)
class Launched:
    """A job that was let through; without a run it was a rehearsal of the gates alone."""

    order: Order
    job: str
    seeds: tuple[int, ...]
    reserve: Amount
    run: str | None
    slots: tuple[str | None, ...] = ()
    """The places its seeds have side by side; none before it was let through."""
    is_known: bool = False

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data, with what to type next."""
        following = f"rlx wait {self.run} --timeout 300" if self.run else self.order.command
        return {
            "candidate": self.order.candidate,
            "phase": self.order.phase,
            "job": self.job,
            "seeds": list(self.seeds),
            "reserve": self.reserve.document(),
            "slots": list(self.slots),
            "run": self.run,
            "is_known": self.is_known,
            "next": following,
        }


def check(study: Study, identity: str, *, is_dry: bool = False) -> Examined:
    """Examine a candidate and write what came of it: validated with its plan, or one refusal with every reason."""
    examined = examine(study, identity)
    with study.ledger.held() as held:
        state = replay(held.events)
        standing = state.candidates.get(identity)
        reasons = (*examined.reasons(), *_unchanged(study, state, examined))
        if reasons and is_dry:
            raise refusal(f"{identity} would be refused", reasons)
        if reasons:
            refuse(held, "check", identity, reasons)
        if is_dry:
            return examined
        if standing is not None and standing.state == "debug":
            _move(held, identity, "debug", "draft", "mended")
            state = replay(held.events)
            standing = state.candidates[identity]
        if standing is not None and standing.state in ("draft", "validated"):
            files.write_atomic(study.patch_path(identity), worktree.patch_text(examined.changes))  # before its row
            _validate(held, examined, standing.state, standing.plan)
    return examined


def _unchanged(study: Study, state: State, examined: Examined) -> Iterator[Reason]:
    """Refuse what would only fail again: the same content, after a trial that failed by its own fault."""
    identity = examined.candidate.id
    failed = state.failed_trial(identity, examined.content)
    if failed is not None:
        says = f"nothing changed since {identity} failed ({failed.told})"
        is_mendable = changes_code(study, identity)
        way = "mend its worktree, or propose another: rlx next" if is_mendable else ANEW
        hint = f"see why: {look_at(failed)}; then {way}"
        yield Reason("UNCHANGED", says, hint)


def look_at(failed: Job) -> str:
    """Return the command that shows why a trial came to nothing: what it printed, or what was said of its policies."""
    return f"rlx verdict {failed.candidate}" if failed.outcome == "completed" else f"rlx logs {failed.run}"


def _validate(held: Held, examined: Examined, state: str, plan: str | None) -> None:
    identity = examined.candidate.id
    if state == "validated" and plan == examined.plan:
        return
    if state == "validated":
        _move(held, identity, "validated", "draft", "edited after it was checked")
    held.append(
        "moved", candidate=identity, before="draft", after="validated", why="checked", plan=examined.plan,
        content=examined.content, patch=files.sha256(worktree.patch_text(examined.changes)),
    )  # fmt: skip


def _move(held: Held, identity: str, before: str, after: str, why: str) -> None:
    held.append("moved", candidate=identity, before=before, after=after, why=why)


def refuse(held: Held, action: str, identity: str, reasons: Sequence[Reason]) -> None:
    """Write one refusal with every reason, and raise it."""
    held.append(
        "refused", action=action, candidate=identity,
        reasons=[{"code": one.code, "says": one.says} for one in reasons],
    )  # fmt: skip
    raise refusal(f"{identity} is refused", reasons)


def refusal(what: str, reasons: Sequence[Reason]) -> Refused:
    """Return the error that tells every reason, with the first one's hint."""
    lines = "\n".join(f"  {one.code}: {one.says}" for one in reasons)
    hint = next((one.hint for one in reasons if one.hint), None)
    return Refused(f"{what}:\n{lines}", hint=hint, reasons=[one.document() for one in reasons])


def launch(study: Study, order: Order, *, is_dry: bool = False) -> Launched:
    """Let a candidate's job through the gates and start it; one that is under way is returned, not started again."""
    reconcile(study)
    contract, task = study.contract(), study.task()
    examined = examine(study, order.candidate)
    facts = facts_of(study, contract, task, examined)
    with study.ledger.held() as held:
        state = replay(held.events)
        known = _known(state, order, examined)
        if known is None:
            job = _admitted(study, held, order, examined, facts, is_dry=is_dry)
    if known is not None:
        return known if is_dry or task.adapter.launcher.executor != LOCAL else _begun(study, known)
    if not is_dry:
        _start(study, job)
    return job


def _begun(study: Study, known: Launched) -> Launched:
    """Return a job that somebody else has launched when its supervisor is there, or nobody starts it any more."""
    until = time.monotonic() + START_SECONDS
    while (job := study.state().jobs[known.job]).is_open and job.process is None and time.monotonic() < until:
        reconcile(study)
        time.sleep(START_POLL_SECONDS)
    return known


def _admitted(study: Study, held: Held, order: Order, examined: Examined, facts: Facts, *, is_dry: bool) -> Launched:
    """Judge an order while the ledger is held, and write its intent; a dry one is only judged."""
    state, contract = replay(held.events), study.contract()
    seeds = next_seeds(
        state, order.candidate, _purpose(order.phase), order.count or usual_count(state, contract, order)
    )
    reserve = reserve_of(contract, order.phase, len(seeds))
    plan = order.plan or _own_plan(order, examined)
    request = Request(order.candidate, order.phase, seeds, reserve, plan, order.is_unattended)
    reasons = gates.check(state, contract, request, facts)
    if reasons and is_dry:
        raise refusal(f"{order.candidate} would be refused", reasons)
    if reasons:
        refuse(held, "launch", order.candidate, reasons)
    if is_dry:
        return Launched(order, "", seeds, reserve, None)
    slots = _slots(contract, study.task(), examined, taken=state.slots)[: len(seeds)]
    return _intend(study, held, Launched(order, order.job or _job_name(state), seeds, reserve, None, slots), examined)


def _start(study: Study, job: Launched) -> None:
    """Start the supervisor, or have the task's engine do so; one that does not start leaves an abandoned job."""
    run = Run(study.root / "runs" / str(job.run))
    launcher = study.task().adapter.launcher
    try:
        if launcher.executor == LOCAL:
            plain.start(run, job.seeds)
        else:
            carried.carry(run, job.seeds, launcher)
    except (RlxError, OSError) as error:
        if study.state().jobs[job.job].process is None:
            abandon(study, job.job, error.message if isinstance(error, RlxError) else str(error))
        raise


def _intend(study: Study, held: Held, job: Launched, examined: Examined) -> Launched:
    """Make the run and write the intent, which names it: a folder without an intent is nothing that can train."""
    contract, task = study.contract(), study.task()
    assert examined.experiment is not None  # else there were reasons
    order = job.order
    experiment = recipe.job_experiment(
        examined.experiment, contract, name=f"{study.name}_{order.candidate}", phase=order.phase, seeds=job.seeds
    )
    run = plain.create(experiment, root=study.root, lineage=_lineage(study, contract, task, job, examined))
    held.append(
        "intent", key=job.job, job=job.job, candidate=order.candidate, phase=order.phase, seeds=list(job.seeds),
        plan=examined.plan, run=run.name, config=run.metadata["config_hash"],
        identity=governed.identity_of(run), reserve=job.reserve.document(), slots=list(job.slots),
        process=process.current().document(),
    )  # fmt: skip
    return replace(job, run=run.name)


def _lineage(study: Study, contract: Contract, task: Task, job: Launched, examined: Examined) -> dict[str, Any]:
    assert contract.hardware
    assert contract.budget
    assert contract.automation
    assert contract.baseline
    memory, disk = contract.hardware.memory_gb, int(contract.hardware.disk_gb * 2**30)
    seconds = SMOKE_SECONDS if job.order.phase == "smoke" else contract.budget.per_seed_minutes * 60
    return {
        "task": study.task_name,
        "study": study.name,
        "candidate": job.order.candidate,
        "phase": job.order.phase,
        "job": job.job,
        "worktree": _frozen(study, contract.baseline.commit, examined).relative_to(study.root).as_posix(),
        "commit": contract.baseline.commit,
        "diff_sha256": worktree.diff_sha256(examined.changes),
        "limits": {
            "seed_seconds": seconds,
            "memory_bytes": int(memory * 2**30) if memory else None,
            "file_bytes": disk,
            "disk_bytes": disk,
            "processes": 64 + 16 * contract.hardware.cores,
        },
        "network": contract.automation.network,
        "sandbox": contract.automation.sandbox,
        "reads": list(contract.hardware.reads),
        "executor": task.adapter.launcher.executor,
        "slots": list(job.slots),
    }


def _slots(
    contract: Contract, task: Task, examined: Examined, *, taken: tuple[str | None, ...]
) -> tuple[str | None, ...]:
    """Return the places that the study's open jobs leave to another; which GPUs those of an engine have, it says."""
    assert examined.experiment is not None  # else there were reasons
    assert contract.hardware
    left = contract.hardware.parallel - len(taken)
    if task.adapter.launcher.executor != LOCAL:
        return (None,) * left
    wanted = recipe.resources_of(examined.experiment, contract.hardware).model_dump()
    machine = Slots.of({"device": examined.experiment.device, "resources": wanted})
    return machine.without(taken).places[:left]


def _frozen(study: Study, commit: str, examined: Examined) -> Path:
    """Return the tree that jobs run what was checked from, apart from the worktree, where editing may go on."""
    sha256 = worktree.diff_sha256(examined.changes)
    folder = study.tree(commit, sha256)
    if not folder.exists():
        worktree.tree_of(study.root, commit, folder, patch=worktree.patch_text(examined.changes) or None)
    if worktree.diff_sha256(worktree.diff(folder, commit, root=study.root)) != sha256:
        where = folder.relative_to(study.root).as_posix()
        raise EvidenceInvalid(f"{where} is not what was checked", hint=f"it is made anew after: rm -r {where}")
    return folder


def _own_plan(order: Order, examined: Examined) -> str | None:
    """The candidates that change nothing need no plan to be named: there is only one."""
    return examined.plan if order.candidate in NULL else None


def _purpose(phase: Phase) -> Purpose:
    return "confirm" if phase == "confirmation" else "search"


def _job_name(state: State) -> str:
    return f"j{len(state.jobs) + 1:03d}"


def usual_count(state: State, contract: Contract, order: Order) -> int:
    """Return how many seeds a phase trains: what its next look, its pool or its claim lacks."""
    assert contract.metric is not None
    wanted = contract.metric.seeds
    if order.phase == "smoke":
        return 1
    if order.phase == "trial":
        trained = sum(len(job.counted_seeds) for job in state.jobs_of(order.candidate, "trial"))
        return max(1, (RACE_SEEDS if trained < RACE_SEEDS else LAST_SEEDS) - trained)
    if order.phase == "promotion":
        return max(1, state.lacks(order.candidate, order.phase, HEAD_SEEDS))
    if order.phase == "baseline":
        return max(1, state.lacks(order.candidate, order.phase, pool_seeds(contract)))
    return max(1, state.claim_lacks(order.candidate, state.head, wanted))


def pool_seeds(contract: Contract) -> int:
    """Return how many seeds the baseline's pool has: as many as a claim's side, and what the race takes at least."""
    return max(contract.metric.seeds if contract.metric else 0, HEAD_SEEDS)


def reserve_of(contract: Contract, phase: Phase, seeds: int) -> Amount:
    """Return the most that a job can use: it is killed when it has used it. A smoke run costs time, but no seed."""
    assert contract.budget is not None
    if phase == "smoke":
        return Amount(0, SMOKE_SECONDS)
    return Amount(seeds, seeds * contract.budget.per_seed_minutes * 60)


def _known(state: State, order: Order, examined: Examined) -> Launched | None:
    """Return the job that this order is about, where it is under way."""
    for job in state.open_jobs:
        if (job.candidate, job.phase) == (order.candidate, order.phase) and job.plan == examined.plan:
            return Launched(order, job.id, job.seeds, job.reserve, job.run, job.slots, is_known=True)
    return None
