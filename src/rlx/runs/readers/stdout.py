"""Reader of printed lines: values by a pattern with named groups, or as `name=value` and `name: value`.

JSON and printed Python dictionaries have the second form too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from rlx.errors import ConfigError
from rlx.runs.readers.reader import STEP, Point, as_number
from rlx.runs.readers.tail_file import FileTail

SUFFIXES = (".log", ".out", ".txt")
LONGEST = 10_000
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PAIR = re.compile(
    r"(?P<name>[A-Za-z_][\w./-]*)[\"']?\s*[=:|]\s*(?:np\.\w+\()?(?P<value>[+-]?(?:\d[\d,_]*\.?\d*(?:[eE][+-]?\d+)?|\.\d+|nan|inf(?:inity)?))(?![\w.])",
    re.IGNORECASE,
)


class StdoutReader:
    """Reads printed lines. The group with the step's name gives the step of the values after it.

    A step in a line of its own counts for the lines below it.
    """

    name = "stdout"

    def __init__(self, *, step: str = STEP, pattern: str | None = None) -> None:
        self.names: dict[str, None] = {}
        self.skipped = 0
        self._step = step
        self._file = FileTail()
        self._at: int | None = None
        try:
            self._pattern = pattern and re.compile(pattern)
        except re.error as error:
            raise ConfigError(f"the pattern {pattern!r} cannot be read: {error}", hint="(?P<step>\\d+)") from None

    def claims(self, path: Path) -> bool:
        """Return whether a file is named like a log and has values in it."""
        return path.suffix in SUFFIXES and path.is_file() and bool(StdoutReader().read(path, is_last=True))

    def read(self, path: Path, *, is_last: bool = False) -> list[Point]:
        """Return the new points of a file with printed lines."""
        return self.parse(self._file.lines(path, is_last=is_last))

    def parse(self, lines: Iterable[str]) -> list[Point]:
        """Return the points in printed lines; colours and carriage returns are removed."""
        parts = [part for line in lines for part in line[:LONGEST].split("\r")]
        points = [self._line(_COLOUR.sub("", part)) for part in parts]
        return [point for point in points if point is not None]

    def _line(self, line: str) -> Point | None:
        values = {name: number for name, text in self._pairs(line) if (number := as_number(text)) is not None}
        step = values.pop(self._step, None)
        if step is not None and math.isfinite(step):
            self._at = int(step)
        self.names |= dict.fromkeys(values)
        if not values:
            return None
        if self._at is None:
            self.skipped += 1
            return None
        return Point(self._at, values)

    def _pairs(self, line: str) -> Iterator[tuple[str, str]]:
        if not self._pattern:
            yield from ((match["name"], match["value"]) for match in _PAIR.finditer(line))
            return
        for match in self._pattern.finditer(line):
            yield from ((name, text) for name, text in match.groupdict().items() if text is not None)
