"""JSON lines: an object a line; figures inside objects are named by their path, `eval.success`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlx.runs.growing import Growing
from rlx.runs.reader import STEP, Point, point

SUFFIXES = (".jsonl", ".ndjson", ".json")
DEEPEST = 20


class JsonlReader:
    """Reads files that grow by an object a line; bare NaN and Infinity, as Python writes them, are understood."""

    name = "jsonl"

    def __init__(self, *, step: str = STEP, pattern: str | None = None) -> None:
        self.names: dict[str, None] = {}
        self.skipped = 0
        self._step = step
        self._file = Growing()

    def claims(self, path: Path) -> bool:
        """Say whether a file is named so and its first line is an object."""
        if path.suffix not in SUFFIXES or not path.is_file():
            return False
        first = next(iter(Growing().lines(path, is_last=True)), "")
        return _object(first) is not None

    def read(self, path: Path, *, is_last: bool = False) -> list[Point]:
        """Return the new points; lines that hold no object are not figures."""
        rows = (_object(line) for line in self._file.lines(path, is_last=is_last))
        return [found for row in rows if row is not None and (found := self._point(row)) is not None]

    def _point(self, row: dict[str, Any]) -> Point | None:
        flat = dict(_flat(row, ""))
        found = point(flat, step=self._step)
        self.skipped += found is None
        self.names |= dict.fromkeys(found.values if found else flat)
        return found


def _object(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _flat(value: Any, path: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (dict, list)) and depth < DEEPEST:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _flat(inner, f"{path}.{key}" if path else str(key), depth + 1)
    elif path:
        yield path, value
