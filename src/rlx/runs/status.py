"""The status of a seed and of a run, derived from events and signs of life; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

PREPARED = "prepared"
QUEUED = "queued"
"""In lists: an executor has it in its queue. The run itself is prepared, or was interrupted."""
RUNNING = "running"
COMPLETED = "completed"
FAILED = "failed"
INTERRUPTED = "interrupted"
LOST = "lost"
STATES = (PREPARED, RUNNING, COMPLETED, FAILED, INTERRUPTED, LOST)
ENDED = (COMPLETED, FAILED, INTERRUPTED, LOST)
HEARTBEAT_STOPPED = "heartbeat stopped"
STOPPED_BY_RULE = "StoppedByRule"
"""The kind of the error that ends a seed when a rule of its config's `stop` section applies."""
HEARTBEAT_SECONDS = 5.0
STALE_SECONDS = 60.0


@dataclass(frozen=True)
class SeedStatus:
    """The state of one seed, the reason for it, the number of the last attempt and the kind of its error."""

    state: str
    reason: str = ""
    attempt: int = 0
    error_kind: str = ""


def seed_status(
    events: Iterable[dict[str, Any]], *, is_alive: bool | None, heartbeat_age: float | None, damage: str = ""
) -> SeedStatus:
    """Derive the state of a seed.

    `is_alive` is the answer of the seed's lock, or else of the process table. It is None if the process ran on
    another machine; then the seed counts as lost once its heartbeat is older than `STALE_SECONDS`, or in the future.
    A seed with damaged events has failed, unless it is still being trained.
    """
    status = _status_from_events(events, is_alive=is_alive, heartbeat_age=heartbeat_age)
    if damage and status.state != RUNNING:
        return replace(status, state=FAILED, reason=damage)
    return status


def _status_from_events(
    events: Iterable[dict[str, Any]], *, is_alive: bool | None, heartbeat_age: float | None
) -> SeedStatus:
    last: dict[str, Any] | None = None
    attempt = 0
    for event in events:
        kind = event.get("event")
        attempt += kind == "started"
        if kind == "started" or kind in ENDED:
            last = event
    if last is None:
        return SeedStatus(PREPARED)
    if last["event"] in ENDED:
        reason = " ".join(str(last.get("reason", "")).split())
        return SeedStatus(str(last["event"]), reason, attempt, str(last.get("kind", "")))
    reason = "process is gone"
    if is_alive is None:
        # Another host's clock may be a little ahead. A heartbeat further in the future would stay fresh for days.
        is_alive = heartbeat_age is not None and -HEARTBEAT_SECONDS <= heartbeat_age < STALE_SECONDS
        reason = HEARTBEAT_STOPPED
    if is_alive:
        return SeedStatus(RUNNING, "", attempt)
    return SeedStatus(LOST, reason, attempt)


def has_ended(events: Sequence[dict[str, Any]]) -> bool:
    """Say whether the last attempt of a seed recorded its own end."""
    for event in reversed(events):
        kind = event.get("event")
        if kind == "started" or kind in ENDED:
            return kind in ENDED
    return False


def run_status(states: Sequence[str], *, is_supervised: bool, outcome: str = COMPLETED) -> str:
    """Derive the state of a run from the states of its seeds; a live supervisor will start more seeds.

    `outcome` is how the ledger says that a study's job ended. A completed job may have seeds that failed.
    """
    if outcome != COMPLETED:
        return outcome
    if is_supervised or RUNNING in states:
        return RUNNING
    if all(state == PREPARED for state in states):
        return PREPARED
    if all(state == COMPLETED for state in states):
        return COMPLETED
    return next((state for state in (FAILED, LOST, INTERRUPTED) if state in states), INTERRUPTED)


def tally(states: Sequence[str]) -> str:
    """Count the states of several seeds, for example `3 completed, 1 failed`."""
    count = Counter(states)
    return ", ".join(f"{count[state]} {state}" for state in STATES if count[state])
