"""Reader of JSON lines: one object per line; a nested value is named by its path, such as `eval.success`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlx.runs.readers.reader import STEP, Point, read_row
from rlx.runs.readers.tail_file import FileTail

SUFFIXES = (".jsonl", ".ndjson", ".json")
DEEPEST = 20


class JsonlReader:
    """Reads files that grow by one object per line; it accepts NaN and Infinity as Python writes them."""

    name = "jsonl"

    def __init__(self, *, step: str = STEP, pattern: str | None = None) -> None:
        self.names: dict[str, None] = {}
        self.skipped = 0
        self._step = step
        self._file = FileTail()

    def claims(self, path: Path) -> bool:
        """Return whether a file has such a suffix and its first line is an object."""
        if path.suffix not in SUFFIXES or not path.is_file():
            return False
        first = next(iter(FileTail().lines(path, is_last=True)), "")
        return _object(first) is not None

    def read(self, path: Path, *, is_last: bool = False) -> list[Point]:
        """Return the new points; a line without an object is skipped."""
        rows = [_object(line) for line in self._file.lines(path, is_last=is_last)]
        points = [read_row(self, dict(_flat(row, "")), step=self._step) for row in rows if row is not None]
        return [point for point in points if point is not None]


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    return value


def _flat(value: Any, path: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        value = dict(enumerate(value))
    if isinstance(value, dict) and depth < DEEPEST:
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}".removeprefix("."), depth + 1)
    elif path:
        yield path, value
