"""Follow the metrics that another program writes: under rlx's names, one row per step, each value once."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from rlx.config.schema import Source
from rlx.number_format import listed
from rlx.runs.readers.metric_dialects import with_rlx_names
from rlx.runs.readers.reader import Point, Reader, reader

MOST_NAMES = 1000
RESERVED = ("step", "time", "resume_from")
STDOUT = "stdout"
_COUNTER = re.compile(r"step|iter|update|frame|epoch|sample", re.I)


class MetricsTail:
    """A source that may still grow; `rows` returns the metrics that are new since the last call.

    A source that was rewritten is read again from its start, and values that were returned before are left out.
    """

    def __init__(self, source: Source, place: str) -> None:
        self._source = source
        self._place = place
        self._rlx_names = {foreign_name: name for name, foreign_name in source.names.items()}
        self._readers: dict[Path | None, Reader] = {}  # None: the reader of printed lines
        self._returned: set[tuple[int, str, str]] = set()
        self._names: set[str] = set()
        self.count = 0

    def rows(self, *, is_last: bool = False, printed: Iterable[str] = ()) -> list[Point]:
        """Return the new metrics, one point per step; `printed` are new lines of a program that is its own source."""
        points: list[Point] = []
        if self._source.reader == STDOUT and not self._place:
            points += self._parse(printed)
        else:
            for path in self._paths():
                points += self._reader(path).read(path, is_last=is_last)
        merged: dict[int, dict[str, float]] = {}
        for point in points:
            new = self._new_values(point)
            if new:
                merged.setdefault(point.step, {}).update(new)
        self.count += len(merged)
        return [Point(step, merged[step]) for step in sorted(merged)]

    def pass_over(self) -> None:
        """Skip the rows that were written before the program started."""
        self.rows()
        self.count = 0

    def explain(self) -> str:
        """Return why there are no metrics, or which ones there are."""
        place = self._place or "its output"
        names = list(dict.fromkeys(name for reader in self._readers.values() for name in reader.names))
        skipped = sum(reader.skipped for reader in self._readers.values())
        if not self._readers:
            return f"{place} does not exist"
        if skipped:
            return f"{skipped} rows of {place} have no `{self._source.step}`; they have {listed(names)}"
        return f"{place} has {listed(names) or 'no metrics'}"

    def likely_step(self) -> str | None:
        """Return the metric that counts steps by its name, if rows were skipped because they had no step."""
        readers = self._readers.values()
        if not any(reader.skipped for reader in readers):
            return None
        return next((name for reader in readers for name in reader.names if _COUNTER.search(name)), None)

    def _paths(self) -> list[Path]:
        if any(sign in self._place for sign in "*?["):
            return [Path(path) for path in sorted(glob.glob(self._place, recursive=True))]  # noqa: PTH207  absolute
        return [path for path in [Path(self._place)] if path.exists()]

    def _reader(self, path: Path | None) -> Reader:
        if path not in self._readers:
            source = self._source
            self._readers[path] = reader(source.reader, step=source.step, pattern=source.pattern)
        return self._readers[path]

    def _parse(self, printed: Iterable[str]) -> list[Point]:
        from rlx.runs.readers.stdout import StdoutReader

        stdout_reader = self._reader(None)
        assert isinstance(stdout_reader, StdoutReader)
        return stdout_reader.parse(printed)

    def _new_values(self, point: Point) -> Mapping[str, float]:
        """Return the values of a point that were not returned before, under rlx's names."""
        new: dict[str, float] = {}
        named = {self._rlx_names.get(name, name): value for name, value in point.values.items()}
        for name, value in with_rlx_names(named).items():
            if name in RESERVED or (name not in self._names and len(self._names) >= MOST_NAMES):
                continue
            key = (point.step, name, repr(value))
            if key not in self._returned:
                self._returned.add(key)
                self._names.add(name)
                new[name] = value
        return new
