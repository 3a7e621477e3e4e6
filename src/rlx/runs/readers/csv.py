"""CSV: a header that names the columns, then a row a line; tabs and semicolons are understood, comments left out."""

from __future__ import annotations

import csv
from pathlib import Path

from rlx.runs.growing import Growing
from rlx.runs.reader import STEP, Point, point

SUFFIXES = (".csv", ".tsv")
SEPARATORS = ",\t;"


class CsvReader:
    """Reads tables that grow; one that is written anew with more columns is read anew."""

    name = "csv"

    def __init__(self, *, step: str = STEP, pattern: str | None = None) -> None:
        self.names: dict[str, None] = {}
        self.skipped = 0
        self._step = step
        self._file = Growing()
        self._restarts = 0
        self._header: list[str] = []
        self._separator = ","

    def claims(self, path: Path) -> bool:
        """Say whether a file is named so and begins with a header of several columns."""
        if path.suffix not in SUFFIXES or not path.is_file():
            return False
        first = next((line for line in Growing().lines(path, is_last=True) if not _is_comment(line)), "")
        return any(separator in first for separator in SEPARATORS)

    def read(self, path: Path, *, is_last: bool = False) -> list[Point]:
        """Return the new points; an empty cell is no figure."""
        lines = self._file.lines(path, is_last=is_last)
        if self._file.restarts != self._restarts:
            self._restarts, self._header = self._file.restarts, []
        found = [self._row(line) for line in lines if not _is_comment(line)]
        return [one for one in found if one is not None]

    def _row(self, line: str) -> Point | None:
        if not self._header:
            self._separator = max(SEPARATORS, key=line.count)
            self._header = [name.strip() for name in _cells(line, self._separator)]
            return None
        row = dict(zip(self._header, _cells(line, self._separator), strict=False))
        found = point(row, step=self._step)
        self.skipped += found is None
        self.names |= dict.fromkeys(found.values if found else row)
        return found


def _cells(line: str, separator: str) -> list[str]:
    return next(csv.reader([line], delimiter=separator), [])


def _is_comment(line: str) -> bool:
    return not line.strip() or line.startswith("#")
