"""How figures read: returns, steps, durations, ages, sizes; and a curve in one line."""

from __future__ import annotations

import math
import re
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rlx.errors import UsageError
from rlx.figures import NOTHING as NOTHING
from rlx.figures import figure as figure
from rlx.figures import signed as signed


def command_words(text: str, *, option: str) -> list[str]:
    """Return a command that was given as one text as its words."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}", hint="close every quote, or escape it: \\'") from None


def spread(score: dict[str, object] | None) -> str:
    """Spell mean ± standard deviation over seeds."""
    if score is None:
        return NOTHING
    mean, sd = figure(score["mean"]), score["sd"]  # type: ignore[arg-type]
    return mean if sd is None else f"{mean} ± {figure(sd)}"  # type: ignore[arg-type]


def steps(done: int, planned: int) -> str:
    """Spell how far a seed is."""
    return f"{done:,}" if done == planned or not planned else f"{done:,}/{planned:,}"


def duration(seconds: float) -> str:
    """Spell a time span: 12s, 3m 20s, 2h 05m, 3d 4h."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d {whole % 86400 // 3600}h"


def timespan(text: str) -> float:
    """Read a time span as people type it, in seconds: 45s, 90m, 2h, 1h30m, 1d; a bare number is seconds."""
    units = {"d": 86400, "h": 3600, "m": 60, "s": 1, "": 1}
    found = re.findall(r"(\d+(?:\.\d+)?)\s*([dhms]?)", text)
    if not found or "".join(number + unit for number, unit in found) != text.replace(" ", ""):
        raise UsageError(f"`{text}` is no time span", hint="45s, 90m, 2h or 1h30m")
    return sum(float(number) * units[unit] for number, unit in found)


def when(moment: float) -> str:
    """Spell a point in time to the minute, in local time."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))


def size(count: float) -> str:
    """Spell a number of bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def setting(value: object) -> str:
    """Spell a config's value as YAML on one line has it; what is not set is `absent`."""
    if value is None:
        return "absent"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {setting(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(setting(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:,}" if isinstance(value, int) else str(value)


def plural(count: int, noun: str) -> str:
    """Spell a number of things."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def sparkline(values: Sequence[float], *, width: int = 60, scale: tuple[float, float] | None = None) -> str:
    """Draw a curve in one line, on its own scale or a given one; a column without a finite value is a gap."""
    marks = "▁▂▃▄▅▆▇█" if _can_show("▁█") else "_.-~=+*#"
    columns = [_finite_mean(values[start:stop]) for start, stop in _windows(len(values), width)]
    finite = [value for value in columns if value is not None]
    if not finite:
        return ""
    low, high = scale or (min(finite), max(finite))
    steps = (len(marks) - 1) / (high - low) if high > low else 0.0
    return "".join(" " if value is None else marks[round((value - low) * steps)] for value in columns)


def _windows(count: int, width: int) -> list[tuple[int, int]]:
    columns = min(count, width)
    return [(index * count // columns, (index + 1) * count // columns) for index in range(columns)]


def _finite_mean(values: Sequence[float]) -> float | None:
    finite = [value for value in values if math.isfinite(value)]
    return sum(finite) / len(finite) if finite else None


def _can_show(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def guarded(one: Mapping[str, Any]) -> str:
    """Spell a guardrail's answer, the change that was seen, and where it leans to harm that is not shown."""
    leaning = ", leans to harm" if one["leans_to_harm"] else ""
    change = NOTHING if one["change"] is None else signed(one["change"])
    return f"{one['answer']}{leaning}: {change} ({one['reason']})"
