"""The queue of a study: jobs that wait in the ledger, and workers that claim them, one at a time, with a lease.

A claim names its process. If that process is gone or its lease is over, the job is free again. A claimed job goes
through the launch gate like any other; it reserves its budget there, and its end settles it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rlx.compare.race_thresholds import RULE
from rlx.errors import Refused, RlxError
from rlx.launch import launch as plain
from rlx.launch.study_jobs import launch_candidate
from rlx.launch.study_jobs.launch_candidate import LaunchOrder
from rlx.launch.study_jobs.reconcile import reconcile
from rlx.loop.study import decide, measure_scores
from rlx.loop.study.measure_scores import Say
from rlx.loop.study.step_commands import situation_of
from rlx.runs import process
from rlx.runs.run import Run
from rlx.study.ledger.ledger import Event, Held
from rlx.study.ledger.lifecycle import LAUNCHES, NULL_LAUNCHES, Phase
from rlx.study.ledger.records import Queued
from rlx.study.ledger.state import State, replay
from rlx.study.refusal import FINAL_CODES
from rlx.study.situation import head_phase
from rlx.study.study_folder import Study

LEASE_SECONDS = 120.0
WAITS = "waits"
FOLLOWS: dict[str, tuple[Phase, int]] = {"more": ("trial", RULE.last - RULE.first), "advance": ("promotion", RULE.head)}
"""The phase that follows an answer of the race, and its seeds."""
CRITERIA: dict[Phase, str] = {
    "smoke": "it runs and leaves a checkpoint",
    "trial": f"p < {RULE.go_on:g} at {RULE.first} seeds, p ≤ {RULE.move:g} at {RULE.last}",
    "promotion": f"{RULE.head} fresh seeds of the head",
    "confirmation": "the head against the original baseline on fresh seeds, guardrails passed",
    "baseline": "the pool is full",
}
Follow = Callable[[Run], object]


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
        """Return this as JSON-able data."""
        return vars(self)


@dataclass(frozen=True)
class Worked:
    """The outcome of a job, or the decision that followed, and the reasons for it."""

    job: str
    candidate: str
    phase: Phase
    outcome: str
    why: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n  ".join((f"{self.candidate} ({self.phase}): {self.outcome}", *self.why))

    def document(self) -> dict[str, Any]:
        """Return this as JSON-able data."""
        return {**vars(self), "why": list(self.why)}


def add(study: Study, candidates: Sequence[str], phase: Phase) -> list[Ticket]:
    """Queue jobs of checked candidates, all or none of them; a queued job is not queued twice."""
    for name in candidates:
        study.candidate(name)  # raises an error that names the known ones
    with study.ledger.held() as held:
        state = replay(held.events)
        for name in candidates:
            _refuse_unready(study, state, name, phase)
        return [_add(study, held, name, phase) for name in candidates]


def _refuse_unready(study: Study, state: State, name: str, phase: Phase) -> None:
    standing = state.candidates.get(name)
    if standing is None and phase not in NULL_LAUNCHES.get(name, ()):
        raise Refused(f"{name} has no {phase} jobs", hint="rlx next")
    if standing is None or standing.state in LAUNCHES[phase] or _queued(state, name, phase):
        return
    hint = "rlx next"
    if standing.state == "draft":
        hint = f"rlx check candidate {name}{study.option}"
    raise Refused(f"{name} is {standing.state}: it cannot be queued for a {phase}", hint=hint)


def _queued(state: State, name: str, phase: Phase) -> Queued | None:
    jobs = state.queue.values()
    return next((job for job in jobs if (job.event["candidate"], job.event["phase"]) == (name, phase)), None)


def _add(study: Study, held: Held, name: str, phase: Phase) -> Ticket:
    state = replay(held.events)
    queued = _queued(state, name, phase)
    if queued is None:
        standing = state.candidates.get(name)
        job = f"q{1 + sum(event.kind == 'queued' for event in held.events):03d}"
        held.append(
            "queued", job=job, candidate=name, phase=phase, plan=standing.plan if standing else None,
            criteria=CRITERIA[phase], worktree=study.worktree(name).relative_to(study.root).as_posix(),
            expects="checkpoint",
        )  # fmt: skip
        queued = replay(held.events).queue[job]
    return _ticket(queued)


def tickets(study: Study) -> list[Ticket]:
    """Return the waiting jobs, in order."""
    return [_ticket(queued) for queued in study.state().queue.values()]


def _ticket(queued: Queued) -> Ticket:
    event, worker = queued.event, ""
    if queued.claim and not _is_free(queued.claim):
        holder = process.from_document(queued.claim["process"])
        worker = f"pid {holder.pid}" if holder else ""
    return Ticket(queued.id, event["candidate"], event["phase"], event.get("plan"), event.get("criteria", ""), worker)


def claim(study: Study) -> Ticket | None:
    """Claim the first free job that can start; None if there is none."""
    with study.ledger.held() as held:
        queued = next(_ready(replay(held.events)), None)
        if queued is None:
            return None
        worker = process.current().document()
        held.append("claimed", job=queued.id, process=worker, until=time.time() + LEASE_SECONDS)
        return _ticket(replay(held.events).queue[queued.id])


def is_ready(study: Study) -> bool:
    """Whether a job waits that a worker could claim now."""
    return next(_ready(study.state()), None) is not None


def _ready(state: State) -> Iterator[Queued]:
    """Yield the free jobs: fresh seeds of the head first, trials once the head has its scores."""
    free = [queued for queued in state.queue.values() if queued.claim is None or _is_free(queued.claim)]
    later = {"promotion"}
    if len(state.usable(state.head, head_phase(state.head))) < RULE.head:
        later.add("trial")
    yield from (queued for queued in free if queued.event["phase"] == "promotion")
    yield from (queued for queued in free if queued.event["phase"] not in later)


def _is_free(event: Event) -> bool:
    """Whether a claim has ended: its process is gone, or on another machine its lease is over."""
    holder = process.from_document(event.get("process"))
    is_alive = process.is_alive(holder) if holder else False
    if is_alive is None:
        return float(event["until"]) < time.time()
    return not is_alive


def work(study: Study, *, say: Say, most: int | None = None, follow: Follow = plain.wait) -> list[Worked]:
    """Work on waiting jobs until there are none: launch each, wait for it, and decide.

    A job that is refused for good leaves the queue. A job that only cannot start now stays, and ends the work.
    """
    done: list[Worked] = []
    while (most is None or len(done) < most) and (ticket := claim(study)):
        try:
            outcome, why = _work_on(study, ticket, say=say, follow=follow)
        except RlxError as error:
            outcome, why = _put_back(study, ticket, error), _reasons(error)
        done.append(Worked(ticket.job, ticket.candidate, ticket.phase, outcome, tuple(why)))
        say(str(done[-1]))
        if outcome == WAITS:
            break
    return done


def _reasons(error: RlxError) -> list[str]:
    """Return every reason of a refusal, else the error itself."""
    reasons = error.reasons if isinstance(error, Refused) else ()
    return [f"{reason['code']}: {reason['says']}" for reason in reasons] or error.message.splitlines()


def _work_on(study: Study, ticket: Ticket, *, say: Say, follow: Follow) -> tuple[str, list[str]]:
    """Launch a job, wait for it and decide; return its outcome and the reasons."""
    order = LaunchOrder(ticket.candidate, ticket.phase, plan=ticket.plan, job=ticket.job)
    launched = launch_candidate.launch(study, order)
    follow(Run(study.root / "runs" / str(launched.run)))
    reconcile(study)
    job = study.state().jobs[launched.job]
    if ticket.phase == "promotion":
        measure_scores.measure(study, [ticket.candidate], "promotion", say=say)
    if ticket.phase != "trial" or job.outcome != "completed":
        return str(job.outcome), list(filter(None, [job.says]))
    answer = decide.decide(study, ticket.candidate, say=say)
    phase, seeds = FOLLOWS.get(answer["answer"], (None, 0))
    if phase and situation_of(study).spare_seeds >= seeds:
        add(study, [ticket.candidate], phase)
    return answer["decision"], [answer["words"]]


def _put_back(study: Study, ticket: Ticket, error: RlxError) -> str:
    """Keep a job that cannot start now in the queue, and drop one that is refused for good; return its outcome."""
    codes = {reason["code"] for reason in error.reasons} if isinstance(error, Refused) else set()
    with study.ledger.held() as held:
        if ticket.job in replay(held.events).queue:
            if codes and codes.isdisjoint(FINAL_CODES):
                held.append("released", job=ticket.job)
                return WAITS
            held.append("dropped", job=ticket.job, says=error.message[:500])
    return "refused" if isinstance(error, Refused) else "failed"
