"""Spell values for people: steps, durations, sizes, settings, shares, intervals, and a curve in one line."""

import itertools
import math
import re
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rlx.errors import UsageError
from rlx.number_format import NOTHING as NOTHING
from rlx.number_format import counted as counted
from rlx.number_format import duration as duration
from rlx.number_format import figure as figure
from rlx.number_format import signed as signed
from rlx.number_format import spread_decimals

MOST_DECIMALS = 5


def in_brackets(text: str | None) -> str:
    """Return ` (text)`, or nothing if there is no text."""
    if not text:
        return ""
    return f" ({text})"


def command_words(text: str, *, option: str) -> list[str]:
    """Split a command that an option gives as one text."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}", hint="close every quote, or escape it: \\'") from None


def spread(score: Mapping[str, Any] | None) -> str:
    """Spell mean ± standard deviation over seeds, with as many decimals as the deviation supports."""
    if score is None:
        return NOTHING
    if score["sd"] is None:
        return figure(score["mean"])
    mean = float(score["mean"])  # an index row has words for numbers that are not finite
    sd = float(score["sd"])
    decimals = spread_decimals([sd])
    if decimals is None or decimals > MOST_DECIMALS or not math.isfinite(mean):
        return f"{figure(mean)} ± {figure(sd)}"
    return f"{mean:,.{decimals}f} ± {sd:,.{decimals}f}".replace("-", "−")


def steps(done: int, planned: int) -> str:
    """Spell how many of the planned steps a seed has done."""
    if done == planned or not planned:
        return f"{done:,}"
    return f"{done:,}/{planned:,}"


def timespan(text: str) -> float:
    """Read a time span in seconds: 45s, 90m, 2h, 1h30m, 1d; a bare number is seconds."""
    units = {"d": 86400, "h": 3600, "m": 60, "s": 1, "": 1}
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([dhms]?)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text.replace(" ", ""):
        raise UsageError(f"`{text}` is not a time span", hint="45s, 90m, 2h or 1h30m")
    return sum(float(number) * units[unit] for number, unit in parts)


def when(moment: float) -> str:
    """Spell a point in time to the minute, in local time."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))


def size(count: float) -> str:
    """Spell a number of bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def percent(share: float | None) -> str:
    """Spell a share."""
    if share is None:
        return NOTHING
    return f"{round(share, 2) + 0.0:.0%}".replace("-", "−")  # + 0.0 turns −0 into 0


def interval(ends: Sequence[float | None] | None, spell: Callable[[Any], str] = figure) -> str:
    """Spell an interval; an end that is not known is open."""
    if ends is None:
        return NOTHING
    low, high = ("open" if end is None else spell(end) for end in ends)
    return f"[{low}, {high}]"


def number_or_text(value: object) -> str:
    """Spell a value that may be a number or a name."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return figure(value)
    return str(value)


def setting(value: object) -> str:
    """Spell a config value as YAML on one line; a value that is not set is `absent`."""
    if value is None:
        return "absent"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {setting(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(setting(item) for item in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def guardrail_text(guardrail: Mapping[str, Any]) -> str:
    """Spell a guardrail's answer, the observed change, and whether it leans to harm that is not shown."""
    answer = guardrail["answer"]
    if guardrail["leans_to_harm"]:
        answer += ", leans to harm"
    return f"{answer}: {signed(guardrail['change'])} ({guardrail['reason']})"


def sparkline(values: Sequence[float], *, width: int = 60, scale: tuple[float, float] | None = None) -> str:
    """Draw a curve in one line, on its own scale or on `scale`; a column without a finite value is blank."""
    marks = "▁▂▃▄▅▆▇█"
    if not _can_show(marks):
        marks = "_.-~=+*#"
    count = len(values)
    columns = min(count, width)
    bounds = [index * count // max(columns, 1) for index in range(columns + 1)]
    means = [_finite_mean(values[start:stop]) for start, stop in itertools.pairwise(bounds)]
    finite = [mean for mean in means if mean is not None]
    if not finite:
        return ""
    low, high = scale or (min(finite), max(finite))
    steps_per_unit = 0.0
    if high > low:
        steps_per_unit = (len(marks) - 1) / (high - low)
    return "".join(" " if mean is None else marks[round((mean - low) * steps_per_unit)] for mean in means)


def _finite_mean(values: Sequence[float]) -> float | None:
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return None
    return sum(finite) / len(finite)


def _can_show(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
