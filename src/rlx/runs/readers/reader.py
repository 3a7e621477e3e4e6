"""The protocol of a log reader, which reads metrics that other programs write, and how rlx finds one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rlx import plugins

STEP = "step"
TIMES = ("time", "wall_time", "timestamp", "_timestamp")
"""Names that a source may use for the time of a point, in seconds since the epoch."""
_WORDS = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}


@dataclass(frozen=True)
class Point:
    """Some metrics at one step, with the time if the source has it."""

    step: int
    values: Mapping[str, float]
    time: float | None = None


class Reader(Protocol):
    """Reads one source. To check an implementation, subclass `rlx.testing.ReaderContract`.

    A reader remembers its position: a second `read` returns only new points, so that a source can be polled.
    """

    name: str
    names: dict[str, None]
    """The metrics of the source, in order of appearance."""
    skipped: int
    """The number of rows with metrics but without a step."""

    def __init__(self, *, step: str = STEP, pattern: str | None = None) -> None: ...

    def claims(self, path: Path) -> bool:
        """Return whether this reader can read the path."""
        ...

    def read(self, path: Path, *, is_last: bool = False) -> list[Point]:
        """Return the new points. With `is_last` the writer has ended, so an unfinished last line counts too."""
        ...


def reader(name: str, *, step: str = STEP, pattern: str | None = None) -> Reader:
    """Import and create the reader with this name."""
    created: Reader = plugins.load(plugins.READERS, name, kind="reader")(step=step, pattern=pattern)
    return created


def claimant(path: Path) -> str | None:
    """Return the name of the first reader that claims a path."""
    return next((name for name in plugins.READERS if reader(name).claims(path)), None)


def as_number(value: object) -> float | None:
    """Parse a number as other programs write it: 5, `NaN`, `-inf`, `1,234.5`; None for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return as_float(value)
    if not isinstance(value, str):
        return None
    text = value.strip().replace(",", "").lower()
    word = _WORDS.get(text.lstrip("+-"))
    if word is not None:
        return math.copysign(word, -text.startswith("-") or 1)
    if text[:1] not in "+-.0123456789" or "_" in text:
        return None
    try:
        return float(text)
    except ValueError:
        return None


def as_float(value: float) -> float:
    """Return a number as a float; an integer that is too large becomes infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value > 0 or -1)


def point(row: Mapping[str, Any], *, step: str) -> Point | None:
    """Return a flat row as a point; None if it has no step."""
    at = as_number(row.get(step))
    if at is None or not math.isfinite(at):
        return None
    numbers = {name: number for name, value in row.items() if (number := as_number(value)) is not None}
    time = next((numbers[name] for name in TIMES if name in numbers), None)
    values = {name: number for name, number in numbers.items() if name != step and name not in TIMES}
    return Point(int(at), values, time)


def read_row(reader: Reader, row: Mapping[str, Any], *, step: str) -> Point | None:
    """Return a row as a point, and count its names and, if it has no step, the skipped row on the reader."""
    found_point = point(row, step=step)
    if found_point is None:
        reader.skipped += 1
        reader.names |= dict.fromkeys(row)
    else:
        reader.names |= dict.fromkeys(found_point.values)
    return found_point
