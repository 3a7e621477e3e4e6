"""Following the figures that another program writes: by rlx's names, a row a step, each figure once."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from rlx.config.schema import Source
from rlx.runs.reader import Point, Reader, listed, reader

MOST_NAMES = 1000
RESERVED = ("step", "time", "resume_from")
STDOUT = "stdout"
_COUNTER = re.compile(r"step|iter|update|frame|epoch|sample", re.I)


class Followed:
    """A source at its place; `rows` returns what is new since it was last asked.

    A source that is rewritten is read anew, and what was told is not told again.
    """

    def __init__(self, source: Source, place: str) -> None:
        self._source = source
        self._place = place
        self._theirs = {theirs: ours for ours, theirs in source.names.items()}
        self._readers: dict[Path, Reader] = {}
        self._printed: Reader | None = None
        self._told: set[tuple[int, str, str]] = set()
        self._names: set[str] = set()
        self.count = 0

    def rows(self, *, is_last: bool = False, printed: Iterable[str] = ()) -> list[Point]:
        """Return the new figures, one point a step; `printed` are new lines of a program that is its own source."""
        if self._source.reader == STDOUT and not self._place:
            points = self._parse(printed)
        else:
            points = [one for path in self._paths() for one in self._reader(path).read(path, is_last=is_last)]
        merged: dict[int, dict[str, float]] = {}
        for one in points:
            new = self._new(one)
            if new:
                merged.setdefault(one.step, {}).update(new)
        self.count += len(merged)
        return [Point(step, merged[step]) for step in sorted(merged)]

    def pass_over(self) -> None:
        """Forget what is there already: it was written before the program began."""
        self.rows()
        self.count = 0

    def explain(self) -> str:
        """Say why there are no figures, or which there are."""
        readers = [*self._readers.values(), *([self._printed] if self._printed else [])]
        names = list(dict.fromkeys(name for one in readers for name in one.names))
        skipped = sum(one.skipped for one in readers)
        where = self._place or "what it printed"
        if not readers:
            return f"{where} is not there"
        if skipped:
            return f"{skipped} rows of {where} have no `{self._source.step}`; they have {listed(names)}"
        return f"{where} has {listed(names)}" if names else f"{where} has no figures"

    def likely_step(self) -> str | None:
        """Return the figure that counts steps by its name, of those that were found where no step was."""
        readers = [*self._readers.values(), *([self._printed] if self._printed else [])]
        if not any(one.skipped for one in readers):
            return None
        return next((name for one in readers for name in one.names if _COUNTER.search(name)), None)

    def _paths(self) -> list[Path]:
        if any(sign in self._place for sign in "*?["):
            return [Path(path) for path in sorted(glob.glob(self._place, recursive=True))]  # noqa: PTH207  absolute
        return [Path(self._place)] if Path(self._place).exists() else []

    def _reader(self, path: Path) -> Reader:
        if path not in self._readers:
            self._readers[path] = self._make()
        return self._readers[path]

    def _parse(self, printed: Iterable[str]) -> list[Point]:
        from rlx.runs.readers.stdout import StdoutReader

        self._printed = self._printed or self._make()
        assert isinstance(self._printed, StdoutReader)
        return self._printed.parse(printed)

    def _make(self) -> Reader:
        return reader(self._source.reader, step=self._source.step, pattern=self._source.pattern)

    def _new(self, found: Point) -> Mapping[str, float]:
        """Return the figures of a point that were not told yet, by our names; of too many names none."""
        new: dict[str, float] = {}
        for theirs, value in found.values.items():
            name = self._theirs.get(theirs, theirs)
            if name in RESERVED or (name not in self._names and len(self._names) >= MOST_NAMES):
                continue
            mark = (found.step, name, repr(value))
            if mark not in self._told:
                self._told.add(mark)
                self._names.add(name)
                new[name] = value
        return new
