"""The queue of a study: jobs that wait in the ledger, and workers that claim them, one at a time each, with a lease.

A claim names its process: one whose process is gone, or whose time is over, is free again. What is claimed goes
through the door like anything else; budget is reserved there, and settled by the job's own end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rlx.compare.race import RULE
from rlx.errors import Refused, RlxError
from rlx.launch import door
from rlx.launch import launch as plain
from rlx.launch.door import Launched, Order
from rlx.launch.reconcile import reconcile
from rlx.loop import judgement, proceed, scores
from rlx.loop.scores import Say
from rlx.runs import process
from rlx.runs.run import Run
from rlx.study import gates
from rlx.study.contract import Contract
from rlx.study.ledger import Event, Held
from rlx.study.lifecycle import LAUNCHES, NULL_LAUNCHES, Phase
from rlx.study.reason import OF_THE_JOB
from rlx.study.standing import Queued
from rlx.study.state import State, replay
from rlx.study.study import Study

LEASE_SECONDS = 120.0
WAITS = "waits"
FOLLOWS: dict[str, tuple[Phase, int]] = {"more": ("trial", RULE.last - RULE.first), "advance": ("promotion", RULE.head)}
"""What the race's answer leads to, and the seeds that it takes."""
CRITERIA: dict[Phase, str] = {
    "smoke": "it runs and leaves a checkpoint",
    "trial": f"p < {RULE.go_on:g} at {RULE.first} seeds, p ≤ {RULE.move:g} at {RULE.last}",
    "promotion": f"{RULE.head} fresh seeds of the head",
    "confirmation": "the head against the original baseline on fresh seeds, guardrails passed",
    "baseline": "the pool is full",
}


@dataclass(frozen=True)
class Ticket:
    """A job that waits."""

    job: str
    candidate: str
    phase: Phase
    plan: str | None
    criteria: str
    worker: str

    def document(self) -> dict[str, Any]:
        return vars(self)


@dataclass(frozen=True)
class Worked:
    """What came of a job: its outcome, or the decision that followed; `why` where it is not as one hopes."""

    job: str
    candidate: str
    phase: Phase
    outcome: str
    why: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n  ".join((f"{self.candidate} ({self.phase}): {self.outcome}", *self.why))

    def document(self) -> dict[str, Any]:
        return {**vars(self), "why": list(self.why)}


def add(study: Study, identities: Sequence[str], phase: Phase) -> list[Ticket]:
    """Put jobs of checked candidates into the queue, all or none of them; the same one is not queued twice."""
    for identity in identities:
        study.candidate(identity)
    with study.ledger.held() as held:
        state = replay(held.events)
        for identity in identities:
            _refuse_unready(study, state, identity, phase)
        return [_added(study, held, identity, phase) for identity in identities]


def _refuse_unready(study: Study, state: State, identity: str, phase: Phase) -> None:
    standing = state.candidates.get(identity)
    is_queued = any((one.candidate, one.phase) == (identity, phase) for one in _tickets(state))
    if standing is None and phase not in NULL_LAUNCHES.get(identity, ()):
        raise Refused(f"{identity} has no {phase} jobs", hint="rlx next")
    if standing is not None and standing.state not in LAUNCHES[phase] and not is_queued:
        hint = f"rlx check candidate {identity}{study.option}" if standing.state == "draft" else "rlx next"
        raise Refused(f"{identity} is {standing.state}: it cannot be queued for a {phase}", hint=hint)


def _added(study: Study, held: Held, identity: str, phase: Phase) -> Ticket:
    state = replay(held.events)
    for ticket in _tickets(state):
        if (ticket.candidate, ticket.phase) == (identity, phase):
            return ticket
    standing = state.candidates.get(identity)
    name = f"q{1 + sum(event.kind == 'queued' for event in held.events):03d}"
    held.append(
        "queued", job=name, candidate=identity, phase=phase, plan=standing.plan if standing else None,
        criteria=CRITERIA[phase], worktree=study.worktree(identity).relative_to(study.root).as_posix(),
        expects="checkpoint",
    )  # fmt: skip
    return _ticket(replay(held.events).queue[name])


def tickets(study: Study) -> list[Ticket]:
    """Return what waits, in order."""
    return _tickets(study.state())


def _tickets(state: State) -> list[Ticket]:
    return [_ticket(one) for one in state.queue.values()]


def _ticket(one: Queued) -> Ticket:
    event = one.event
    worker = process.from_document(one.claim["process"]) if one.claim else None
    return Ticket(
        one.id, event["candidate"], event["phase"], event.get("plan"), event.get("criteria", ""),
        f"pid {worker.pid}" if worker and one.claim and not _is_free(one.claim) else "",
    )  # fmt: skip


def claim(study: Study) -> Ticket | None:
    """Take the first job that nobody works on and that can begin; None where there is none."""
    with study.ledger.held() as held:
        one = next(_ready(replay(held.events), study.contract()), None)
        if one is None:
            return None
        own = process.current().document()
        held.append("claimed", job=one.id, process=own, until=time.time() + LEASE_SECONDS)
        return _ticket(replay(held.events).queue[one.id])


def is_ready(study: Study) -> bool:
    """Say whether something waits that a worker could take now."""
    return next(_ready(study.state(), study.contract()), None) is not None


def _ready(state: State, contract: Contract) -> Iterator[Queued]:
    """Yield the jobs that nobody works on: fresh seeds of the head first, and trials when it has their scores."""
    have, need = gates.fresh_scores(state, contract)
    free = [one for one in state.queue.values() if one.claim is None or _is_free(one.claim)]
    yield from (one for one in free if one.event["phase"] == "promotion")
    yield from (one for one in free if one.event["phase"] not in ("promotion", "trial" if have < need else ""))


def _is_free(event: Event) -> bool:
    holder = process.from_document(event.get("process"))
    is_alive = process.is_alive(holder) if holder else False
    return is_alive is False or (is_alive is None and float(event["until"]) < time.time())


def work(
    study: Study, *, say: Say, most: int | None = None, follow: Callable[[Run], object] = plain.wait
) -> list[Worked]:
    """Work on waiting jobs until there are none: launch, stay, judge.

    One that is refused for good leaves the queue; one that only cannot start now stays, and ends the work.
    """
    done: list[Worked] = []
    while (most is None or len(done) < most) and (ticket := claim(study)):
        try:
            outcome, why = _worked(study, ticket, say=say, follow=follow)
        except RlxError as error:
            outcome, why = _put_back(study, ticket, error), _reasons(error)
        done.append(Worked(ticket.job, ticket.candidate, ticket.phase, outcome, tuple(why)))
        say(str(done[-1]))
        if outcome == WAITS:
            break
    return done


def _reasons(error: RlxError) -> list[str]:
    """Return every reason of a refusal, else the error itself."""
    reasons = error.reasons if isinstance(error, Refused) else []
    return [f"{one['code']}: {one['says']}" for one in reasons] or error.message.splitlines()


def _worked(study: Study, ticket: Ticket, *, say: Say, follow: Callable[[Run], object]) -> tuple[str, list[str]]:
    """Launch a job, stay with it and judge it; return what came of it and why."""
    launched = _launched(study, ticket)
    follow(Run(study.root / "runs" / str(launched.run)))
    reconcile(study)
    job = study.state().jobs[launched.job]
    if ticket.phase == "promotion":
        scores.measure(study, [ticket.candidate], "promotion", say=say)
    if ticket.phase != "trial" or job.outcome != "completed":
        return str(job.outcome), [job.says] if job.says else []
    decided = judgement.decide(study, ticket.candidate, say=say)
    following = FOLLOWS.get(decided["answer"])
    if following and proceed.position(study).spare_seeds >= following[1]:
        add(study, [ticket.candidate], following[0])
    return decided["decision"], [decided["reason"], *decided["objections"]]


def _launched(study: Study, ticket: Ticket) -> Launched:
    order = Order(ticket.candidate, ticket.phase, plan=ticket.plan, job=ticket.job)
    return door.launch(study, order)


def _put_back(study: Study, ticket: Ticket, error: RlxError) -> str:
    """Take a job that cannot be launched out of the queue, or leave it where that may pass; return what it is then."""
    codes = {one["code"] for one in error.reasons} if isinstance(error, Refused) else set()
    may_pass = bool(codes) and codes.isdisjoint(OF_THE_JOB)
    with study.ledger.held() as held:
        if ticket.job in replay(held.events).queue and may_pass:
            held.append("released", job=ticket.job)
            return WAITS
        if ticket.job in replay(held.events).queue:
            held.append("dropped", job=ticket.job, says=error.message[:500])
    return "refused" if isinstance(error, Refused) else "failed"
