"""When a lab's driver stops, and how long it waits before the next session; pure, over the rows and a clock value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from rlx.loop.lab.attempt import Attempt
from rlx.loop.lab.session.session_record import FREE, LabSession, spent_dollars

FAILURES = 5
"""So many sessions in a row that fail by themselves end the drive: something is wrong with the agent."""
LONGEST_BACKOFF_SECONDS = 1800.0
LIMIT_SECONDS = 300.0
"""The first wait for a usage limit that does not say when it resets; it doubles."""
LONGEST_LIMIT_SECONDS = 3600.0
RESET_MARGIN_SECONDS = 5.0
StopCode = Literal["iterations", "until", "cost", "no progress", "failures", "target", "budget", "person", "error"]


@dataclass(frozen=True)
class DriveOptions:
    """The options of one `rlx lab run`. `until` is in seconds of the epoch."""

    agent: str
    iterations: int | None = None
    until: float | None = None
    max_cost: float | None = None
    no_progress: int | None = None
    cost_per_session: float | None = None
    backoff_seconds: float = 10.0
    executor: str | None = None
    """The executor of the drive's trainings; None leaves the choice to `rlx.toml`."""

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return asdict(self)


@dataclass(frozen=True)
class DriveStop:
    """Why a drive ends: a stable code and a sentence."""

    code: StopCode
    why: str


def iterations_done(sessions: Sequence[LabSession]) -> int:
    """Return how many sessions count: not those that a usage limit or a killed driver ended."""
    return sum(session.record.outcome not in FREE for session in sessions)


def stop_by_rule(sessions: Sequence[LabSession], options: DriveOptions, *, now: float) -> DriveStop | None:
    """Return why the drive is over by its own limits. `sessions` are those of this drive, in order."""
    done = iterations_done(sessions)
    if options.iterations is not None and done >= options.iterations:
        return DriveStop("iterations", f"{done} of {options.iterations} iterations are done")
    if options.until is not None and now >= options.until:
        return DriveStop("until", "the time of --until has come")
    failures = failures_in_a_row(sessions)
    if failures >= FAILURES:
        return DriveStop("failures", f"{failures} sessions in a row ended without an attempt")
    idle = attempts_without_progress(sessions)
    if options.no_progress is not None and idle >= options.no_progress:
        return DriveStop("no progress", f"{idle} attempts in a row did not move the head")
    return _stop_by_cost(sessions, options)


def _stop_by_cost(sessions: Sequence[LabSession], options: DriveOptions) -> DriveStop | None:
    if options.max_cost is None:
        return None
    spent = spent_dollars([session.record for session in sessions], cost_per_session=options.cost_per_session)
    if spent is None:
        why = "the agent does not report its cost, and lab.yaml has no agent.cost_per_session"
        return DriveStop("cost", why)
    if spent >= options.max_cost:
        return DriveStop("cost", f"${spent:.2f} of ${options.max_cost:.2f} are spent")
    return None


def stop_before_reset(sessions: Sequence[LabSession], options: DriveOptions, *, now: float) -> DriveStop | None:
    """Return a stop if the next session could begin only after --until."""
    ready = now + seconds_to_wait(sessions, options, now=now)
    if options.until is not None and now < options.until <= ready:
        return DriveStop("until", "the agent's usage limit lasts beyond the time of --until")
    return None


def failures_in_a_row(sessions: Sequence[LabSession]) -> int:
    """Return how many of the last sessions failed by themselves. Usage limits and killed drivers do not count."""
    count = 0
    for session in reversed(sessions):
        if session.record.outcome == "attempt":
            break
        count += session.record.outcome not in FREE
    return count


def attempts_without_progress(sessions: Sequence[LabSession]) -> int:
    """Return how many attempts there were since the head moved."""
    count = 0
    for session in reversed(sessions):
        if session.attempt.status in ("keep", "confirmed"):
            break
        count += session.record.outcome == "attempt"
    return count


def is_time_to_climb(tried: Sequence[Attempt], *, climb_after: int) -> bool:
    """Say whether the last candidates of a rung did not move its head, so that a higher budget is worth its price."""
    count = 0
    for attempt in reversed(tried):
        if attempt.status in ("keep", "confirmed"):
            break
        count += bool(attempt.candidate) and attempt.status not in ("open", "refused")
    return count >= climb_after


def seconds_to_wait(sessions: Sequence[LabSession], options: DriveOptions, *, now: float) -> float:
    """Return how long the next session has to wait: for the reset of a usage limit, or longer after each failure."""
    if not sessions:
        return 0.0
    last = sessions[-1].record
    ended = last.began + last.seconds
    if last.outcome == "usage limit":
        limits = _limits_in_a_row(sessions)
        if last.resets is None:
            ready = ended + _doubled(LIMIT_SECONDS, limits, LONGEST_LIMIT_SECONDS)
        else:
            ready = last.resets + RESET_MARGIN_SECONDS
            if limits > 1:  # the limit did not reset when it said
                ready = max(ready, ended + _doubled(options.backoff_seconds, limits - 1, LONGEST_LIMIT_SECONDS))
        return max(0.0, ready - now)
    failures = failures_in_a_row(sessions)
    if last.outcome in ("attempt", "interrupted") or not failures:
        return 0.0
    return max(0.0, ended + _doubled(options.backoff_seconds, failures, LONGEST_BACKOFF_SECONDS) - now)


def _limits_in_a_row(sessions: Sequence[LabSession]) -> int:
    count = 0
    for session in reversed(sessions):
        if session.record.outcome != "usage limit":
            break
        count += 1
    return count


def _doubled(first: float, times: int, longest: float) -> float:
    return min(longest, first * 2.0 ** min(times - 1, 30))
