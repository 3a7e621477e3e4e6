"""Recognise the usage limit of a coding agent in its output, and the time of its reset; pure.

Claude Code and Codex say it as events (`rate_limit_event`, `usage_limit_reached`) and as sentences, which changed over
the versions. In a stream of JSON events only errors count, so that a model may talk about limits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

LAST_LINES = 60
"""A limit ends a session, so it is among the last lines."""
LONGEST_SECONDS = 32 * 86400.0
"""A reset that is further away is not believed."""
MOST_SAID = 300
_WINDOWS = r"usage|session|weekly|hourly|daily|monthly|annual|spend|rate|\d+[- ]hour|opus|sonnet|haiku|fable|claude"
_LIMIT = re.compile(
    rf"""\b(?:{_WINDOWS})\b [\w' -]{{0,20}} \blimit \s+ (?:has\s+been\s+|was\s+|is\s+)? (?:reached|exceeded|hit)\b
    | \b(?:hit|reached|exceeded)\s+your\b [^.\n]{{0,40}} \blimits?\b
    | \blimit\s+will\s+reset\b
    | \bout\s+of\s+(?:extra\s+|your\s+)?(?:usage|credits)\b
    | \bexceeded\s+your\b [^.\n]{{0,30}} \bquota\b
    | \bcredit\s+balance\s+is\s+too\s+low\b
    | \b(?:usage_limit_reached|rate_limit_error|rate_limit_exceeded|insufficient_quota)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_EPOCH = re.compile(r"\|\s*(\d{10})(\d{3})?\b")
_AFTER = re.compile(
    r"(?:resets?|try again|retry|available)\s*(?:in|after)[\s:]*(?P<span>[^.;()|]*(?:\.\d+\s*s)?)", re.IGNORECASE
)
_SPAN = re.compile(
    r"(\d+(?:\.\d+)?)\s*(milliseconds?|ms|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b", re.IGNORECASE
)
_UNIT_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_AT = re.compile(r"(?:resets?|try again)(?:\s+(?:at|on))?\s+(?P<when>[^;|\n]+)", re.IGNORECASE)
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
_CLOCK = re.compile(r"\b(\d{1,2})(?::(\d\d))?\s*([ap])\.?m\b\.?|\b(\d{1,2}):(\d\d)\b", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DATE = re.compile(
    rf"\b({'|'.join(_MONTHS)})[a-z]*\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(\d{{4}})\b)?", re.IGNORECASE
)
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEKDAY = re.compile(rf"\b({'|'.join(_WEEKDAYS)})[a-z]*\b", re.IGNORECASE)
_ZONE = re.compile(r"\(([A-Za-z]+(?:[/_+-][A-Za-z0-9_+-]+)*)\)|\b(UTC|GMT)\b")


@dataclass(frozen=True)
class UsageLimit:
    """A limit that ended a session: its sentence, and when it resets in seconds of the epoch, if it says so."""

    says: str
    resets: float | None = None


def find_usage_limit(output: str, *, now: float) -> UsageLimit | None:
    """Return the usage limit that the end of an agent's output reports; None if it reports none."""
    found: UsageLimit | None = None
    for line in output.splitlines()[-LAST_LINES:]:
        for limit in _limits_in(line.strip(), now):
            if found is None or limit.resets is not None:
                found = limit
    return found


def _limits_in(line: str, now: float) -> Iterator[UsageLimit]:
    event = _event(line)
    if event is None:
        if _LIMIT.search(line):
            yield UsageLimit(line[:MOST_SAID], _reset_time(line, now))
        return
    info = event.get("rate_limit_info")
    if isinstance(info, dict) and info.get("status") == "rejected":
        kind = str(info.get("rateLimitType") or "usage").replace("_", " ")
        yield UsageLimit(f"{kind} limit reached", _believable(_epoch(info.get("resetsAt")), now))
    for error in _errors(event):
        text = json.dumps(error)
        said = str(error.get("message") or error.get("result") or text)
        if _LIMIT.search(said) or _LIMIT.search(text):
            yield UsageLimit(said[:MOST_SAID], _error_reset(error, said, now))


def _event(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def _errors(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the errors of an event: what the client itself reports, never what the model says."""
    if event.get("is_error") and isinstance(event.get("result"), str):
        yield event
    error = event.get("error")
    if isinstance(error, dict):
        yield error
    elif isinstance(error, str):
        yield {"type": error, "message": _message_text(event) or error}
    if str(event.get("type")) == "error" and isinstance(event.get("message"), str):
        yield event


def _message_text(event: dict[str, Any]) -> str:
    message = event.get("message")
    if isinstance(message, str):
        return message
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list):
        return ""
    return " ".join(str(block.get("text", "")) for block in content if isinstance(block, dict))


def _error_reset(error: dict[str, Any], said: str, now: float) -> float | None:
    at = _believable(_epoch(error.get("resets_at")), now)
    if at is not None:
        return at
    seconds = error.get("resets_in_seconds")
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool):
        return _believable(now + seconds, now)
    return _reset_time(said, now)


def _epoch(value: object) -> float | None:
    """Return seconds of the epoch from seconds or milliseconds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value / 1000 if value > 1e11 else float(value)


def _believable(at: float | None, now: float) -> float | None:
    if at is None or at - now > LONGEST_SECONDS or at < now - LONGEST_SECONDS:
        return None
    return at


def _reset_time(text: str, now: float) -> float | None:
    """Return the time at which a sentence says that the limit resets."""
    epoch = _EPOCH.search(text)
    if epoch:
        return _believable(float(epoch.group(1)), now)
    after = _AFTER.search(text)
    if after:
        seconds = _span_seconds(after.group("span"))
        if seconds is not None:
            return _believable(now + seconds, now)
    for at in _AT.finditer(text):
        found = _believable(_clock_time(at.group("when"), now), now)
        if found is not None:
            return found
    return None


def _span_seconds(text: str) -> float | None:
    parts = _SPAN.findall(text)
    if not parts:
        return None
    total = 0.0
    for number, unit in parts:
        if unit.lower().startswith(("ms", "milli")):
            total += float(number) / 1000
        else:
            total += float(number) * _UNIT_SECONDS[unit[0].lower()]
    return total


def _clock_time(text: str, now: float) -> float | None:
    """Return a time such as `3pm`, `Oct 20, 5:30pm (Europe/Berlin)` or `Nov 3rd, 2026 9:07 PM`: the next such time."""
    zone = _zone(text)
    iso = _ISO.search(text)
    try:
        if iso:
            moment = datetime.fromisoformat(iso.group())
            return moment.replace(tzinfo=moment.tzinfo or zone).timestamp()
        return _next_time(text, datetime.fromtimestamp(now, zone), now)
    except (ValueError, OverflowError, OSError):
        return None


def _next_time(text: str, start: datetime, now: float) -> float | None:
    date = _DATE.search(text)
    weekday = _WEEKDAY.search(text)
    clock = _CLOCK.search(text)
    if not (date or weekday or clock):
        return None
    hour, minute = _hour_and_minute(clock)
    moment = start.replace(hour=hour, minute=minute, second=0, microsecond=0)
    if date:
        year = int(date.group(3) or start.year)
        moment = moment.replace(year=year, month=_MONTHS.index(date.group(1).lower()[:3]) + 1, day=int(date.group(2)))
        if not date.group(3) and moment < start - timedelta(days=180):
            moment = moment.replace(year=year + 1)
    elif weekday:
        days = (_WEEKDAYS.index(weekday.group(1).lower()[:3]) - start.weekday()) % 7
        moment += timedelta(days=days)
        if moment <= start:
            moment += timedelta(days=7)
    elif moment <= start:
        moment += timedelta(days=1)
    return moment.timestamp()


def _hour_and_minute(clock: re.Match[str] | None) -> tuple[int, int]:
    if clock is None:
        return 0, 0
    if clock.group(4):
        return int(clock.group(4)), int(clock.group(5))
    hour = int(clock.group(1)) % 12
    if clock.group(3).lower() == "p":
        hour += 12
    return hour, int(clock.group(2) or 0)


def _zone(text: str) -> tzinfo | None:
    """Return the zone that a text names; None is this machine's zone."""
    found = _ZONE.search(text)
    if not found:
        return None
    try:
        return ZoneInfo(found.group(1) or found.group(2))
    except (KeyError, ValueError, OSError):
        return None
