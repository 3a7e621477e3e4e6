"""What state a seed and a run are in, derived from events and signs of life; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

PREPARED, RUNNING, COMPLETED = "prepared", "running", "completed"
FAILED, INTERRUPTED, LOST = "failed", "interrupted", "lost"
STATES = (PREPARED, RUNNING, COMPLETED, FAILED, INTERRUPTED, LOST)
ENDED = (COMPLETED, FAILED, INTERRUPTED, LOST)
HEARTBEAT_STOPPED = "heartbeat stopped"
STOPPED_BY_RULE = "stopped by rule: "
"""How the reason of a seed begins that failed a rule of its config's `stop` section."""
HEARTBEAT_SECONDS = 5.0
STALE_SECONDS = 60.0


@dataclass(frozen=True)
class SeedStatus:
    """The state of one seed, why, and in which attempt."""

    state: str
    reason: str = ""
    attempt: int = 0


def seed_status(
    events: Iterable[dict[str, Any]], *, is_alive: bool | None, heartbeat_age: float | None, damage: str = ""
) -> SeedStatus:
    """Derive a seed's state.

    `is_alive` is what the process table says of the last attempt's process (None: it is on another machine, so a
    heartbeat older than `STALE_SECONDS` decides). A seed whose events are damaged has failed, once nobody trains it.
    """
    found = _undamaged(events, is_alive=is_alive, heartbeat_age=heartbeat_age)
    return SeedStatus(FAILED, damage, found.attempt) if damage and found.state != RUNNING else found


def _undamaged(events: Iterable[dict[str, Any]], *, is_alive: bool | None, heartbeat_age: float | None) -> SeedStatus:
    last: dict[str, Any] | None = None
    attempt = 0
    for event in events:
        if event.get("event") == "started":
            attempt += 1
        if event.get("event") == "started" or event.get("event") in ENDED:
            last = event
    if last is None:
        return SeedStatus(PREPARED)
    if last["event"] in ENDED:
        return SeedStatus(str(last["event"]), " ".join(str(last.get("reason", "")).split()), attempt)
    if is_alive is None:
        is_alive = heartbeat_age is not None and heartbeat_age < STALE_SECONDS
        return SeedStatus(RUNNING, "", attempt) if is_alive else SeedStatus(LOST, HEARTBEAT_STOPPED, attempt)
    return SeedStatus(RUNNING, "", attempt) if is_alive else SeedStatus(LOST, "process is gone", attempt)


def run_status(states: Sequence[str], *, is_supervised: bool) -> str:
    """Derive a run's state from its seeds'; a living supervisor means that more is to come."""
    if is_supervised or RUNNING in states:
        return RUNNING
    if not states or all(state == PREPARED for state in states):
        return PREPARED
    if all(state == COMPLETED for state in states):
        return COMPLETED
    return next((state for state in (FAILED, LOST, INTERRUPTED) if state in states), INTERRUPTED)


def tally(states: Sequence[str]) -> str:
    """Spell the states of several seeds: `3 completed, 1 failed`."""
    count = Counter(states)
    return ", ".join(f"{count[state]} {state}" for state in STATES if count[state])
