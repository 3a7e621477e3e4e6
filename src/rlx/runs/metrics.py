"""A seed's metrics: one appended row per log call, read back as series."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from rlx import files
from rlx.errors import FileDamaged
from rlx.runs.untrusted_rows import METRICS, fault, read

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float64]]
END_WINDOW = 8192
"""The bytes at the end of a file in which a list of runs looks for damage; reading a run finds all of it."""


class MetricsWriter:
    """The only writer of a `metrics.jsonl`: a row is on disk (page cache) when `write` returns."""

    def __init__(self, path: Path) -> None:
        self._descriptor = files.open_append(path)
        self._is_torn = False

    @property
    def is_used(self) -> bool:
        """Whether the file has any rows."""
        return os.fstat(self._descriptor).st_size > 0

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Append one row."""
        self._append(files.encode({"step": step, "time": time(), **values}))

    def write_resume(self, step: int) -> None:
        """Record that training went back to `step`: readers drop earlier rows with a higher step."""
        self._append(files.encode({"resume_from": step, "time": time()}))

    def _append(self, row: bytes) -> None:
        if self._is_torn:  # a failed write may have left half a row
            files.trim_torn_tail(self._descriptor)
        self._is_torn = True
        files.append_row(self._descriptor, row)
        self._is_torn = False

    def close(self) -> None:
        os.close(self._descriptor)


@dataclass(frozen=True)
class Series:
    """One metric over steps, as two float arrays of the same length."""

    steps: Array
    values: Array

    def __len__(self) -> int:
        return len(self.steps)


def rows(path: Path, *, before: list[dict[str, Any]] | None = None, lines: bytes | None = None) -> list[dict[str, Any]]:
    """Return the rows that count: after a resume, rows of retrained steps replace the earlier ones.

    With `lines`, those are parsed instead of the file, and continue the rows that came `before`.
    """
    content = read(path, lines=lines)
    if content.damage:
        raise FileDamaged(content.damage)
    kept: list[dict[str, Any]] = list(before or ())
    for row in content.sound:
        if "resume_from" in row:
            while kept and kept[-1]["step"] > row["resume_from"]:
                kept.pop()
        elif "step" in row:
            kept.append(row)
    return kept


def names(some_rows: list[dict[str, Any]]) -> list[str]:
    """Return the metrics that occur, in order of first appearance."""
    keys = dict.fromkeys(key for row in some_rows for key in row)
    return [name for name in keys if name not in ("step", "time")]


def series(some_rows: list[dict[str, Any]], name: str) -> Series:
    """Return one metric; rows without it are left out, NaN and infinity stay."""
    import numpy as np

    points = [(row["step"], files.number(row[name])) for row in some_rows if files.is_number(row.get(name))]
    table = np.array(points, dtype=np.float64).reshape(-1, 2)
    return Series(steps=table[:, 0].copy(), values=table[:, 1].copy())


def last_row(path: Path) -> dict[str, Any] | None:
    """Return the last metrics row without reading the whole file."""
    return next(_backwards(path), None)


def last_value(path: Path, name: str, *, look_back: int = 200) -> float | None:
    """Return the newest value of a metric among the last rows."""
    for count, row in enumerate(_backwards(path)):
        if files.is_number(row.get(name)):
            return files.number(row[name])
        if count >= look_back:
            break
    return None


def damage_at_end(path: Path) -> str:
    """Return the damage in the last rows, without reading the whole file; empty if there is none."""
    try:
        lines = _last_lines(path, window=END_WINDOW)
        faults = [fault(row, METRICS) for row in files.rows_in(b"\n".join(lines))]
    except FileDamaged as error:
        return error.message
    except (OSError, ValueError) as error:
        return f"{path.parent.name}/{path.name} is damaged: {error}"
    first = next((problem for problem in faults if problem), "")
    return first and f"{path.parent.name}/{path.name} has a bad line: {first}"


def _backwards(path: Path) -> Iterator[dict[str, Any]]:
    """Yield metrics rows backwards from the last one, within one window at the end of the file."""
    try:
        lines = _last_lines(path)
    except (OSError, FileDamaged):
        return
    highest = float("inf")
    for line in reversed(lines):
        row = _sound(line)
        if "resume_from" in row:
            highest = min(highest, row["resume_from"])
        elif "step" in row and row["step"] <= highest:
            yield row


def _last_lines(path: Path, *, window: int = 65536) -> list[bytes]:
    """Return the complete lines in one window at the end of a file; none if there is no file."""
    try:
        content, is_cut = files.read_window(path, most=window)
    except FileNotFoundError:
        return []
    lines = content[: content.rfind(b"\n") + 1].split(b"\n")
    if is_cut:
        del lines[0]  # the window starts in the middle of it
    return [line for line in lines if line]


def _sound(line: bytes) -> dict[str, Any]:
    """Parse a line; a damaged one gives an empty row (`rows` reports the damage)."""
    try:
        row: dict[str, Any] = next(iter(files.rows_in(line)))
    except (ValueError, StopIteration):
        return {}
    if fault(row, METRICS):
        return {}
    return row
