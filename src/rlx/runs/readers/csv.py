"""Reader of CSV files: a header with column names, then one row per line; also tabs, semicolons and comments."""

from __future__ import annotations

import csv
from pathlib import Path

from rlx.runs.readers.reader import STEP, Point, read_row
from rlx.runs.readers.tail_file import FileTail

SUFFIXES = (".csv", ".tsv")
SEPARATORS = ",\t;"


class CsvReader:
    """Reads tables that grow; a table that is rewritten with more columns is read again."""

    name = "csv"

    def __init__(self, *, step: str = STEP, pattern: str | None = None) -> None:
        self.names: dict[str, None] = {}
        self.skipped = 0
        self._step = step
        self._file = FileTail()
        self._restarts = 0
        self._header: list[str] = []
        self._separator = ","

    def claims(self, path: Path) -> bool:
        """Return whether a file has such a suffix and starts with a header of several columns."""
        if path.suffix not in SUFFIXES or not path.is_file():
            return False
        first = next((line for line in FileTail().lines(path, is_last=True) if not _is_comment(line)), "")
        return any(separator in first for separator in SEPARATORS)

    def read(self, path: Path, *, is_last: bool = False) -> list[Point]:
        """Return the new points; an empty cell is not a value."""
        lines = self._file.lines(path, is_last=is_last)
        if self._file.restarts != self._restarts:
            self._restarts = self._file.restarts
            self._header = []
        points = [self._row(line) for line in lines if not _is_comment(line)]
        return [point for point in points if point is not None]

    def _row(self, line: str) -> Point | None:
        if not self._header:
            self._separator = max(SEPARATORS, key=line.count)
            self._header = [name.strip() for name in _cells(line, self._separator)]
            return None
        cells = [cell.strip() for cell in _cells(line, self._separator)]
        if cells == self._header:  # a program that was resumed wrote its header again
            return None
        row = dict(zip(self._header, cells, strict=False))
        return read_row(self, row, step=self._step)


def _cells(line: str, separator: str) -> list[str]:
    return next(csv.reader([line], delimiter=separator), [])


def _is_comment(line: str) -> bool:
    return not line.strip() or line.startswith("#")
