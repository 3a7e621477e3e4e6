"""The seam between rlx and figures that other programs write: what a log reader must do, and how one is found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rlx import plugins

STEP = "step"
TIMES = ("time", "wall_time", "timestamp", "_timestamp")
"""What a source may call the time of a point, in seconds of the epoch."""
_WORDS = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}


@dataclass(frozen=True)
class Point:
    """Some figures at one step; the time where the source tells it."""

    step: int
    values: Mapping[str, float]
    time: float | None = None


class Reader(Protocol):
    """Reads one source. Conformance: subclass `rlx.testing.ReaderContract`.

    An object remembers how far it has read: a second `read` returns what is new, so that it can be polled.
    """

    name: str
    names: dict[str, None]
    """What the source has figures of, in order of appearance."""
    skipped: int
    """Rows that had figures but no step."""

    def __init__(self, *, step: str = STEP, pattern: str | None = None) -> None: ...

    def claims(self, path: Path) -> bool:
        """Say whether a path looks like what this reader reads."""
        ...

    def read(self, path: Path, *, is_last: bool = False) -> list[Point]:
        """Return the points that are new; `is_last` once nobody writes any more: an unfinished end counts, too."""
        ...


def reader(name: str, *, step: str = STEP, pattern: str | None = None) -> Reader:
    """Import and make the reader of a name."""
    made: Reader = plugins.load(plugins.READERS, name, kind="reader")(step=step, pattern=pattern)
    return made


def claimant(path: Path) -> str | None:
    """Return the name of the reader that a path looks like."""
    return next((name for name in plugins.READERS if reader(name).claims(path)), None)


def as_number(value: object) -> float | None:
    """Return a figure as other programs spell it: numbers, `NaN`, `-inf`, `1,234.5`; None for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return as_float(value)
    if not isinstance(value, str):
        return None
    text = value.strip().replace(",", "").lower()
    word = _WORDS.get(text.lstrip("+-"))
    if word is not None:
        return -word if text.startswith("-") else word
    try:
        return float(text) if text[:1] in "+-.0123456789" and "_" not in text else None
    except ValueError:
        return None


def as_float(value: float) -> float:
    """Return a number as a float; a whole one that no float holds is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def point(row: Mapping[str, Any], *, step: str) -> Point | None:
    """Return a flat row as a point; None where it has no step."""
    at = as_number(row.get(step))
    if at is None or not math.isfinite(at):
        return None
    found = {name: number for name, value in row.items() if (number := as_number(value)) is not None}
    time = next((found[name] for name in TIMES if name in found), None)
    values = {name: number for name, number in found.items() if name != step and name not in TIMES}
    return Point(int(at), values, time)


def listed(names: Sequence[str], *, most: int = 8) -> str:
    """Spell some names in a sentence."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
