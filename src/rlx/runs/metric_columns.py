"""A seed's metrics as columns of numbers, read by byte cursor: a growing file is parsed once, row by row as it grows.

A column takes 16 bytes per value. The same rows as dictionaries take a hundred times as much.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx import files
from rlx.errors import FileDamaged
from rlx.runs import untrusted_rows
from rlx.runs.run import Run

if TYPE_CHECKING:
    from rlx.runs.metrics import Array

MOST_BYTES = 256 * 2**20
"""The memory that the columns of all files may take together; the ones that were asked for last stay."""
_OWN = frozenset({"step", "time"})


@dataclass
class _Column:
    """One metric: the rows in which it occurs, and its value in each."""

    rows: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def append(self, first: int, values: list[Any]) -> None:
        """Add the values of consecutive rows; a value that is not a number is left out."""
        if set(map(type, values)) <= {int, float}:  # nearly every metric is a number in every row
            self.rows.extend(range(first, first + len(values)))
            self.values.extend(values)
            return
        for row, value in enumerate(values, start=first):
            if files.is_number(value):
                self.rows.append(row)
                self.values.append(files.number(value))

    def cut(self, count: int) -> None:
        """Drop what lies in row `count` and later."""
        keep = bisect_left(self.rows, count)
        del self.rows[keep:]
        del self.values[keep:]


class MetricColumns:
    """The metrics rows of one seed that count, as one column per metric."""

    def __init__(self, rows: Iterable[Mapping[str, Any]] = ()) -> None:
        self._steps = array("d")
        self._times = array("d")
        self._columns: dict[str, _Column] = {}
        self._lock = threading.Lock()  # a server extends columns in one thread and draws them in others
        self.extend(rows)

    def extend(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows as they stand in the file: after a resume, rows of retrained steps replace the earlier ones."""
        batch: list[Mapping[str, Any]] = []
        with self._lock:
            for row in rows:
                if "resume_from" in row:
                    self._append(batch)
                    batch = []
                    self._go_back(float(row["resume_from"]))
                elif "step" in row:
                    batch.append(row)
            self._append(batch)

    def _append(self, batch: list[Mapping[str, Any]]) -> None:
        first = len(self._steps)
        self._steps.extend([row["step"] for row in batch])
        self._times.extend([row.get("time", 0.0) for row in batch])
        for name in dict.fromkeys(chain.from_iterable(batch)):
            if name not in _OWN:
                self._columns.setdefault(name, _Column()).append(first, [row.get(name) for row in batch])

    def _go_back(self, step: float) -> None:
        count = len(self._steps)
        while count and self._steps[count - 1] > step:
            count -= 1
        del self._steps[count:]
        del self._times[count:]
        for column in self._columns.values():
            column.cut(count)

    def __len__(self) -> int:
        return len(self._steps)

    @property
    def bytes(self) -> int:
        return 16 * (len(self._steps) + sum(len(column.rows) for column in self._columns.values()))

    @property
    def names(self) -> list[str]:
        """The metrics that have a value, in order of first appearance."""
        with self._lock:
            return [name for name, column in self._columns.items() if len(column.rows)]

    def last(self, name: str) -> float | None:
        """Return the newest value of a metric."""
        with self._lock:
            column = self._columns.get(name, _Column())
            return column.values[-1] if len(column.values) else None

    def values(self, name: str, *, over: str = "step") -> tuple[Array, Array]:
        """Return what a metric is drawn over (`step`, `time` or another metric) and its values, from rows with both."""
        import numpy as np

        with self._lock:
            rows, values = self._column(name)
            if over in _OWN:
                axis = self._steps if over == "step" else self._times
                return np.array(axis, dtype=np.float64)[rows], values
            other_rows, other_values = self._column(over)
        _, own, others = np.intersect1d(rows, other_rows, return_indices=True)
        return other_values[others], values[own]

    def _column(self, name: str) -> tuple[Any, Array]:
        """Return the rows that have a metric, and its values, as copies."""
        import numpy as np

        column = self._columns.get(name, _Column())
        return np.array(column.rows, dtype=np.int64), np.array(column.values, dtype=np.float64)


class ColumnCursor:
    """The columns of one file, and the offset up to which it was read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = 0
        self.columns = MetricColumns()
        self.offset = 0

    def read(self) -> MetricColumns:
        """Return all columns; a replaced or shortened file is read from its start. Raises `FileDamaged`."""
        try:
            status = self._path.stat()
        except OSError:
            return MetricColumns()
        if status.st_ino != self._inode or status.st_size < self.offset:
            self._inode = status.st_ino
            self.columns = MetricColumns()
            self.offset = 0
        if status.st_size > self.offset:
            lines = files.complete_lines(self._path, offset=self.offset)
            content = untrusted_rows.read(self._path, lines=lines)
            if content.damage:
                raise FileDamaged(content.damage)
            self.columns.extend(content.sound)
            self.offset += len(lines)
        return self.columns


class ColumnCursors:
    """The cursors of the files that were read last, for a server that many pages ask."""

    def __init__(self) -> None:
        self._cursors: OrderedDict[Path, ColumnCursor] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, run: Run) -> dict[int, MetricColumns]:
        """Return the columns of every seed, of which only the new bytes are parsed."""
        with self._lock:
            found = {}
            for seed in run.seeds:
                cursor = self._cursors.setdefault(seed.metrics_path, ColumnCursor(seed.metrics_path))
                self._cursors.move_to_end(seed.metrics_path)
                found[seed.number] = cursor.read()
            self._forget(len(run.seeds))
        return found

    def _forget(self, newest: int) -> None:
        """Drop the columns that were not asked for lately, but never those of the run just read."""
        total = sum(cursor.columns.bytes for cursor in self._cursors.values())
        while total > MOST_BYTES and len(self._cursors) > newest:
            _, cursor = self._cursors.popitem(last=False)
            total -= cursor.columns.bytes


def size_of(run: Run) -> int:
    """Return the bytes that a run's seeds have written so far: a cursor that grows with every row and event."""
    total = 0
    for seed in run.seeds:
        for name in ("metrics.jsonl", "events.jsonl"):
            try:
                total += (seed.folder / name).stat().st_size
            except OSError:
                continue
    return total
