"""What a program prints: figures found by a pattern with named groups, or as `name=value` and `name: value`.

The latter in JSON and in dictionaries as Python prints them too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from rlx.errors import ConfigError
from rlx.runs.growing import Growing
from rlx.runs.reader import STEP, Point, as_number

SUFFIXES = (".log", ".out", ".txt")
LONGEST = 10_000
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PAIR = re.compile(
    r"(?P<name>[A-Za-z_][\w./-]*)[\"']?\s*[=:|]\s*(?:np\.\w+\()?(?P<value>[+-]?(?:\d[\d,_]*\.?\d*(?:[eE][+-]?\d+)?|\.\d+|nan|inf(?:inity)?))(?![\w.])",
    re.IGNORECASE,
)


class StdoutReader:
    """Reads printed lines. A group that is named as the step says where the figures after it belong.

    A step that stands in a line of its own counts for the lines below it.
    """

    name = "stdout"

    def __init__(self, *, step: str = STEP, pattern: str | None = None) -> None:
        self.names: dict[str, None] = {}
        self.skipped = 0
        self._step = step
        self._file = Growing()
        self._at: int | None = None
        try:
            self._pattern = re.compile(pattern) if pattern else None
        except re.error as error:
            raise ConfigError(f"the pattern {pattern!r} cannot be read: {error}", hint="(?P<step>\\d+)") from None

    def claims(self, path: Path) -> bool:
        """Say whether a file is named like a log and has figures in it."""
        return path.suffix in SUFFIXES and path.is_file() and bool(StdoutReader().read(path, is_last=True))

    def read(self, path: Path, *, is_last: bool = False) -> list[Point]:
        """Return the new points of a file that takes what was printed."""
        return self.parse(self._file.lines(path, is_last=is_last))

    def parse(self, lines: Iterable[str]) -> list[Point]:
        """Return the points in printed lines; colours and carriage returns are undone."""
        found = [self._line(_COLOUR.sub("", part)) for line in lines for part in line[:LONGEST].split("\r")]
        return [one for one in found if one is not None]

    def _line(self, line: str) -> Point | None:
        values = {name: number for name, text in self._pairs(line) if (number := as_number(text)) is not None}
        at = values.pop(self._step, None)
        if at is not None and at == at and abs(at) != float("inf"):
            self._at = int(at)
        self.names |= dict.fromkeys(values)
        if values and self._at is None:
            self.skipped += 1
        return Point(self._at, values) if values and self._at is not None else None

    def _pairs(self, line: str) -> Iterator[tuple[str, str]]:
        if self._pattern is None:
            yield from ((match["name"], match["value"]) for match in _PAIR.finditer(line))
            return
        for match in self._pattern.finditer(line):
            yield from ((name, text) for name, text in match.groupdict().items() if text is not None)
