"""A seed's metrics: one appended row a log call, read back as series."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from rlx import files
from rlx.errors import FileDamaged
from rlx.runs.written import METRICS, fault, read

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float64]]


class MetricsWriter:
    """The one writer of a `metrics.jsonl`: a row is on disk (page cache) when `write` returns."""

    def __init__(self, path: Path) -> None:
        self._descriptor = files.open_append(path)
        self._is_torn = False

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Append one row."""
        self._append(files.encode({"step": step, "time": time(), **values}))

    def write_resume(self, step: int) -> None:
        """Say that training went back to `step`: readers drop later rows written before this one."""
        self._append(files.encode({"resume_from": step, "time": time()}))

    def _append(self, row: bytes) -> None:
        if self._is_torn:  # a failed write may have left half a row that could not be taken back then
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


def rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows that count: after a resume, what was trained again replaces what was there."""
    found = read(path)
    if found.damage:
        raise FileDamaged(found.damage)
    kept: list[dict[str, Any]] = []
    for row in found.sound:
        if "resume_from" in row:
            while kept and kept[-1]["step"] > row["resume_from"]:
                kept.pop()
        elif "step" in row:
            kept.append(row)
    return kept


def names(some_rows: list[dict[str, Any]]) -> list[str]:
    """Return the metrics that occur, in order of first appearance."""
    found: dict[str, None] = {}
    for row in some_rows:
        found.update(dict.fromkeys(row))
    return [name for name in found if name not in ("step", "time")]


def series(some_rows: list[dict[str, Any]], name: str) -> Series:
    """Return one metric; rows that lack it are left out, NaN and infinity stay."""
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
    """Say what is wrong with the last rows, without reading the whole file; empty where nothing is."""
    try:
        faults = [fault(row, METRICS) for row in files.rows_in(b"\n".join(_last_lines(path)))]
    except FileDamaged as error:
        return error.message
    except (OSError, ValueError) as error:
        return f"{path.parent.name}/{path.name} is damaged: {error}"
    return next((f"{path.parent.name}/{path.name} has a bad line: {one}" for one in faults if one), "")


def _backwards(path: Path) -> Iterator[dict[str, Any]]:
    """Yield metrics rows from the last one back, as far as one window at the file's end reaches."""
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
    """Return the whole lines in one window at a file's end; none where it is absent."""
    try:
        with files.reading(path) as stream:
            size = stream.seek(0, os.SEEK_END)
            start = max(0, size - window)
            stream.seek(start)
            content = stream.read()
    except FileNotFoundError:
        return []
    lines = content[: content.rfind(b"\n") + 1].split(b"\n")
    return [line for line in (lines[1:] if start else lines) if line]


def _sound(line: bytes) -> dict[str, Any]:
    """Parse a line; an empty row where it is damaged, which `rows` tells."""
    try:
        (row,) = files.rows_in(line)
    except ValueError:
        return {}
    return row if not fault(row, METRICS) else {}
