"""The gates: every reason why a job may not start now; pure, so that it is asked again right before the process starts.

One launch needs no approval: the rehearsal. A smoke run of a candidate that changes nothing (`rehearsal` or
`baseline`) may be tried on a contract that is settled and not approved yet, for at most ten minutes, and an hour for
all of them together. Every other gate holds for it as for any job.

What is not covered: what the facts say is only as true as whoever gathered them; a budget is kept by what jobs reserve,
so a job whose supervisor does not end it in time overspends by as much; clocks are believed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from rlx.figures import counted
from rlx.study import remedy, stops
from rlx.study.budget import Amount
from rlx.study.lifecycle import BASELINE, LAUNCHES, NULL_LAUNCHES, CandidateState, Phase, seeds_for
from rlx.study.reason import Reason
from rlx.study.state import State
from rlx.study.terms import APPROVAL_LEVELS, POINTS, Contract

REHEARSAL_SECONDS = 600.0
REHEARSALS_SECONDS = 3600.0
"""What one rehearsal, and all of them before an approval, may reserve and use."""
CLOCKS_SECONDS = 300.0
"""So far the clocks of two machines may differ."""
POOL = 3
"""The scores that the head must have before a candidate is raced against it (fewer where the contract's claim has)."""
SEARCHES: frozenset[Phase] = frozenset({"trial", "promotion"})
"""The phases that a stop rule ends; the claim of what was found may still be made."""


@dataclass(frozen=True)
class Request:
    """What is to be launched; `plan` is the hash that `check` returned."""

    candidate: str
    phase: Phase
    seeds: tuple[int, ...]
    reserve: Amount
    plan: str | None = None
    is_unattended: bool = False


@dataclass(frozen=True)
class Facts:
    """What is true outside the ledger now, gathered by whoever asks; `content` is the plan without the contract."""

    now: float
    contract_sha256: str
    contract_problems: tuple[str, ...] = ()
    task_problems: tuple[str, ...] = ()
    plan: str | None = None
    content: str | None = None
    candidate_problems: tuple[str, ...] = ()
    breaches: tuple[str, ...] = ()
    approval_problems: tuple[str, ...] = ()
    sandbox_problems: tuple[str, ...] = ()
    core_places: float = 1
    gpu_places: float = 0
    memory_places: float = math.inf
    """For how many seeds of the contract's hardware there are cores, GPUs and memory in all."""
    free_disk_gb: float = 0.0


def check(state: State, contract: Contract, request: Request, facts: Facts) -> tuple[Reason, ...]:
    """Return every reason against a launch, in the order of `CODES`; empty: it may start."""
    case = _Case(state, contract, request, facts)
    return tuple(reason for gate in _GATES for reason in gate(case))


@dataclass(frozen=True)
class _Case:
    state: State
    contract: Contract
    request: Request
    facts: Facts

    @property
    def is_null(self) -> bool:
        return self.request.candidate in NULL_LAUNCHES

    @property
    def is_rehearsal(self) -> bool:
        return self.is_null and self.request.phase == "smoke"

    @property
    def check_command(self) -> str:
        return f"rlx check candidate {self.request.candidate}"


Reasons = Iterator[Reason]


def _ledger(case: _Case) -> Reasons:
    found = case.state.violations
    if found:
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        yield Reason("LEDGER", f"the ledger is not what rlx wrote: {found[0]}{more}", "see every row: rlx study audit")


def _stopped(case: _Case) -> Reasons:
    hint = f"a person lets it go on: {remedy.approved(case.contract, goes_on=True)}"
    if case.state.stop is not None:
        yield Reason("STOPPED", f"the study has stopped: {case.state.stop}", hint)
    if case.state.escalation is not None:
        yield Reason("ESCALATED", f"the study waits for a person: {case.state.escalation}", hint)
    rule = stops.holding(case.state, case.contract) if case.request.phase in SEARCHES else ""
    if rule:
        says = f"the search is over, its stop rule holds: {rule}"
        yield Reason("STOPPED", says, hint if "_in_a_row" in rule else "claim what there is: rlx next")


def _blocked(case: _Case) -> Reasons:
    hint = "settle the point in contract.yaml: rlx study show"
    for says in case.facts.contract_problems:
        yield Reason("BLOCKED", says, hint)
    for point, title in POINTS.items():
        is_settled = point in case.contract.confirmed and getattr(case.contract, point, None) is not None
        if not is_settled and not any(says.startswith(title) for says in case.facts.contract_problems):
            yield Reason("BLOCKED", f"{title}: not confirmed", hint)


def _approval(case: _Case) -> Reasons:
    reasons = unapproved(case.state, case.contract, case.facts)
    if not (reasons and case.is_rehearsal):
        yield from reasons
        return
    used = sum(
        (job.reserve if job.spent is None else job.spent).seconds for job in case.state.jobs.values()
        if job.candidate in NULL_LAUNCHES and job.phase == "smoke"
    )  # fmt: skip
    asked = case.request.reserve.seconds
    if not (asked <= REHEARSAL_SECONDS and used + asked <= REHEARSALS_SECONDS):
        yield from reasons
        yield Reason(
            "REHEARSAL",
            f"before an approval a rehearsal may take {REHEARSAL_SECONDS:.0f} s and all together "
            f"{REHEARSALS_SECONDS:.0f} s; this one reserves {asked:.0f} s after {used:.0f} s",
            f"approve the contract first: {remedy.approved(case.contract)}",
        )


def unapproved(state: State, contract: Contract, facts: Facts) -> tuple[Reason, ...]:
    """Return every reason why no approval of this contract stands now; empty: it is approved."""
    return tuple(_unapproved(state, contract, facts))


def _unapproved(state: State, contract: Contract, facts: Facts) -> Reasons:
    approval, automation, hint = state.approval, contract.automation, remedy.approved(contract)
    if approval is None:
        yield Reason("NOT_APPROVED", "nobody approved the contract", hint)
        return
    if not approval.contract == facts.contract_sha256 == state.contract:
        yield Reason("APPROVAL_VOID", f"the contract changed after {approval.by} approved it", hint)
    if approval.event.time > facts.now + CLOCKS_SECONDS:
        says = f"the approval is dated {_moment(approval.event.time)}, which is still to come: a clock was wrong"
        yield Reason("APPROVAL", says, hint)
    if not facts.now < approval.expires:
        yield Reason("APPROVAL_EXPIRED", f"the approval was good until {_moment(approval.expires)}", hint)
    wanted = automation.approval if automation else APPROVAL_LEVELS[0]
    if APPROVAL_LEVELS.index(approval.level) < APPROVAL_LEVELS.index(wanted):
        yield Reason("APPROVAL_LEVEL", f"the approval is {approval.level}, the contract asks for {wanted}", hint)
    for says in facts.approval_problems:
        yield Reason("APPROVAL", says, hint)


def _moment(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds).isoformat(" ", "minutes")
    except (ValueError, OverflowError, OSError):
        return f"{seconds} s"


def _unattended(case: _Case) -> Reasons:
    automation = case.contract.automation
    if case.request.is_unattended and not (automation and automation.unattended):
        amend = remedy.amend(case.contract, "automation.unattended", True)
        hint = f"a person allows it: {amend}, then {remedy.approved(case.contract)}"
        yield Reason("UNATTENDED", "the contract does not let jobs start without a person", hint)


def _task(case: _Case) -> Reasons:
    for says in case.facts.task_problems:
        yield Reason("TASK_STALE", says, "put the file back as it was; it is named by: rlx task show")


def _candidate(case: _Case) -> Reasons:
    name = case.request.candidate
    if not case.is_null and name not in case.state.candidates:
        yield Reason("CANDIDATE", f"there is no candidate {name}", "propose it first: rlx propose")
    for says in case.facts.candidate_problems:
        pinned = "commit its mend and pin that: once approved, in another study: rlx study new NAME"
        yield Reason("CANDIDATE", says, pinned if case.is_null else f"mend it, then: {case.check_command}")


def _scope(case: _Case) -> Reasons:
    for says in case.facts.breaches:
        yield Reason("SCOPE", says, f"take it back in the worktree, then: {case.check_command}")


def _plan(case: _Case) -> Reasons:
    asked, now, standing = case.request.plan, case.facts.plan, case.state.candidates.get(case.request.candidate)
    hint = f"check it and launch with the hash that it prints: {case.check_command}"
    if case.is_null:
        if asked is not None and asked != now:
            yield Reason("PLAN", f"what would run now is {now}, not {asked}", hint)
        return
    if asked is None:
        yield Reason("PLAN", "the launch names no plan", hint)
    elif asked != now:
        yield Reason("PLAN", f"what would run now is {now}, not {asked}", hint)
    if standing is None or standing.plan is None:
        return
    is_same = standing.contract == case.state.contract
    if is_same and asked is not None and asked != standing.plan:
        yield Reason("PLAN", f"what was checked is {standing.plan}, not {asked}", hint)
    elif not is_same and standing.state == "validated":
        yield Reason("PLAN", "the candidate was checked under another contract", hint)
    if standing.content is not None and case.facts.content != standing.content:
        yield Reason("PLAN", "the candidate changed since it was checked", "propose the change anew: rlx propose")


def _state(case: _Case) -> Reasons:
    standing, phase = case.state.candidates.get(case.request.candidate), case.request.phase
    if standing is None or standing.state in LAUNCHES[phase] or phase == "baseline":
        return
    says = f"{standing.id} {_STATES[standing.state]}: no {phase} of it is launched now"
    yield Reason("STATE", says, _next_step(standing.id, standing.state))


_STATES: dict[CandidateState, str] = {
    "draft": "is not checked",
    "validated": "is checked and was not tried",
    "launched": "is being tried",
    "completed": "is trained and not decided",
    "advanced": "has advanced",
    "rejected": "was rejected",
    "inconclusive": "is undecided",
    "debug": "failed",
    "confirmed": "is confirmed",
    "reverted": "was taken back",
}


def _next_step(name: str, state: CandidateState) -> str:
    steps: dict[CandidateState, str] = {
        "draft": f"rlx check candidate {name}",
        "validated": "trial it first: rlx next",
        "launched": "wait for its jobs: rlx status",
        "completed": f"rlx decide {name}",
        "debug": f"mend it, then: rlx check candidate {name}",
    }
    return steps.get(state, "see what can be done: rlx next")


def _phase(case: _Case) -> Reasons:
    name, phase, head = case.request.candidate, case.request.phase, case.state.head
    if case.is_null and phase not in NULL_LAUNCHES[name]:
        yield Reason("PHASE", f"the {name} has no {phase} jobs", "see what can be done: rlx next")
    elif not case.is_null and phase == "baseline":
        yield Reason("PHASE", f"{name} is not the baseline", "rlx study baseline")
    elif phase in ("promotion", "confirmation") and not case.is_null and name != head:
        yield Reason("PHASE", f"only the head is launched for {phase}, and that is {head}", "rlx next")
    elif phase == "confirmation" and head == BASELINE:
        yield Reason("PHASE", "there is nothing to confirm: the head is the baseline", "rlx next")
    elif phase == "confirmation" and _is_claimed(case.state):
        yield Reason("PHASE", f"the claim of {head} was made: its episodes are drawn", f"rlx verdict {head}")
    elif phase == "trial":
        yield from _pool(case)


def _is_claimed(state: State) -> bool:
    return any(draw.purpose == "confirm" and state.head in draw.candidates for draw in state.draws)


def _pool(case: _Case) -> Reasons:
    """A candidate is raced against scores that the head did not win with: the baseline's pool, or its promotion."""
    head, (have, need) = case.state.head, fresh_scores(case.state, case.contract)
    if have < need:
        hint = "rlx study baseline" if head == BASELINE else "promote it first: rlx next"
        yield Reason("PHASE", f"the head {head} has {have} fresh scores to race against and needs {need}", hint)


def fresh_scores(state: State, contract: Contract) -> tuple[int, int]:
    """Return how many scores the head has that candidates can be raced against, and how many that takes."""
    have = len(state.usable(state.head, "baseline" if state.head == BASELINE else "promotion"))
    return have, min(POOL, contract.metric.seeds) if contract.metric else POOL


def _claims(case: _Case) -> Reasons:
    metric, state = case.contract.metric, case.state
    if case.request.phase != "confirmation" or metric is None or state.head in state.claimed:
        return
    if state.claims >= metric.claims:
        says = f"{state.claims} of {counted(metric.claims, 'claim')} were made ({', '.join(sorted(state.claimed))})"
        yield Reason("CLAIMS", says, "a new study makes new claims: rlx study new NAME")


def _seeds(case: _Case) -> Reasons:
    name, phase, seeds, allowed = (
        case.request.candidate,
        case.request.phase,
        case.request.seeds,
        seeds_for(case.request.phase),
    )
    hint = "leave --seeds out: fresh ones are taken"
    wrong = [str(seed) for seed in seeds if type(seed) is not int or seed not in allowed]
    if wrong or not seeds or len(set(seeds)) != len(seeds):
        says = f"{phase} takes distinct seeds from {allowed.start} to {allowed.stop - 1}"
        yield Reason("SEEDS_RANGE", f"{says}, not {', '.join(wrong) or list(seeds)}", hint)
    used = sorted(set(seeds) & case.state.used_seeds(name)) if phase != "smoke" else []
    if used:
        yield Reason("SEEDS_USED", f"{name} has used the seeds {', '.join(map(str, used))}", hint)


def _budget(case: _Case) -> Reasons:
    budget, reserve, state = case.contract.budget, case.request.reserve, case.state
    needed = 0 if case.request.phase == "smoke" else len(case.request.seeds)
    if not reserve.is_sane or reserve.seeds < needed or reserve.seconds == 0:
        says = f"{needed} seeds need more than {reserve.seeds} seeds and {reserve.seconds:g} s reserved"
        yield Reason("RESERVE", says, "see what can be done: rlx next")
    if budget is None:
        return
    used = state.spent + state.reserved
    seeds = 0 if case.request.phase == "smoke" else reserve.seeds
    if used.seeds + seeds > budget.seeds:
        says = f"{seeds} seeds after {used.seeds} of {budget.seeds} are too many"
        yield Reason("BUDGET_SEEDS", says, remedy.raised(case.contract, "seeds"))
    if not used.seconds + reserve.seconds <= budget.hours * 3600:
        says = f"{reserve.seconds / 3600:.2f} h after {used.seconds / 3600:.2f} of {budget.hours:g} h are too many"
        yield Reason("BUDGET_HOURS", says, remedy.raised(case.contract, "hours"))
    if case.request.phase == "trial":
        yield from candidates_spent(state, case.contract, case.request.candidate)


def candidates_spent(state: State, contract: Contract, candidate: str) -> Reasons:
    """Refuse a candidate where as many others were launched as the contract allows."""
    budget, others = contract.budget, len(state.launched - {candidate})
    if budget is not None and others >= budget.candidates:
        says = f"{others} of {counted(budget.candidates, 'candidate')} were launched"
        yield Reason("BUDGET_CANDIDATES", says, remedy.raised(contract, "candidates"))


def _deadline(case: _Case) -> Reasons:
    until = stops.passed(case.state, case.contract, now=case.facts.now)
    if until:
        yield Reason("DEADLINE", f"no job starts after {until}", remedy.raised(case.contract, "until"))


def _room(case: _Case) -> Reasons:
    hardware, facts, taken = case.contract.hardware, case.facts, len(case.state.slots)
    if hardware is None:
        return
    hint = "wait for a job: rlx status" if taken else "see what this machine has: rlx doctor; or hand jobs to an engine"
    if taken >= hardware.parallel:
        yield Reason("PARALLEL", f"{taken} of {counted(hardware.parallel, 'place')} for seeds are taken", hint)
    needs = {
        "CORES": (facts.core_places, counted(hardware.cores, "core")),
        "GPUS": (facts.gpu_places if hardware.gpus else math.inf, f"{hardware.gpus:g} GPUs"),
        "MEMORY": (facts.memory_places, f"{hardware.memory_gb or 0:g} GB of memory"),
    }
    for code, (places, need) in needs.items():
        if not taken < places:
            yield Reason(code, f"a seed needs {need}: there is room for {places:g}, and {taken} train", hint)
    if not facts.free_disk_gb >= hardware.disk_gb:
        says = f"{facts.free_disk_gb:.1f} GB are free, the contract asks for {hardware.disk_gb:g} GB"
        yield Reason("DISK", says, "make room, for example: rlx ls, then rlx rm RUN")


def _sandbox(case: _Case) -> Reasons:
    automation = case.contract.automation
    if automation is None or automation.sandbox == "required":
        for says in case.facts.sandbox_problems:
            yield Reason("SANDBOX", says, "see what this machine enforces: rlx doctor")


_GATES: tuple[Callable[[_Case], Reasons], ...] = (
    _ledger,
    _stopped,
    _blocked,
    _approval,
    _unattended,
    _task,
    _candidate,
    _scope,
    _plan,
    _state,
    _phase,
    _claims,
    _seeds,
    _budget,
    _deadline,
    _room,
    _sandbox,
)
