"""A finished run of another tool, as an importer reads it, and the protocol of an importer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from rlx.runs.readers.reader import Point

_SEED = re.compile(r"(?:^|[^a-zA-Z])(?:seed|s)[_=-]?(\d{1,9})(?=$|[^0-9a-zA-Z])", re.I)
_CLEANRL = re.compile(r"^(?P<env>.+?)__(?P<exp>.+?)__(?P<seed>\d+)__(?P<time>\d{9,})$")
_STAMPS = re.compile(
    r"\d{4}-\d{2}-\d{2}[_T -]?\d{2}[-:_]\d{2}[-:_]\d{2}|\d{8}[-_]?\d{6}|"
    r"\d{2}-\d{2}-\d{2}-\d{2}-\d{2}-\d{2}|(?<!\d)1\d{9}(?!\d)"
)
SEED_KEYS = ("seed", "random_seed", "rng_seed")


@dataclass
class ForeignRun:
    """One training of another tool. Trainings that differ only in the seed become one run of rlx."""

    name: str
    source: str
    """The place inside the imported path, for people and for the identity of the run."""
    config: dict[str, Any] = field(default_factory=dict)
    seed: int | None = None
    points: list[Point] = field(default_factory=list)
    evaluations: list[tuple[int, list[float]]] = field(default_factory=list)
    """Steps and the returns of the episodes played there."""
    state: str = "completed"
    lineage: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class Importer(Protocol):
    """Reads one format. A damaged file gives the rows before the damage, and a note."""

    name: str

    def claims(self, path: Path) -> bool:
        """Return whether a path is of this format; it may be a file or a folder."""
        ...

    def read(self, path: Path) -> Iterator[ForeignRun]:
        """Yield the runs at a path that is claimed."""
        ...


def name_and_seed(folder: str) -> tuple[str, int | None]:
    """Return the name of a run's folder without its seed and its time stamp, and the seed if it names one."""
    cleanrl = _CLEANRL.match(folder)
    if cleanrl:
        return f"{cleanrl['env']}__{cleanrl['exp']}", int(cleanrl["seed"])
    match = _SEED.search(folder)
    seed = None
    rest = folder
    if match:
        seed = int(match[1])
        rest = folder[: match.start()] + folder[match.end() :]
    rest = _STAMPS.sub("", rest)
    return rest.strip("_-. ") or "run", seed


def seed_of(config: Mapping[str, Any]) -> int | None:
    """Return the seed in a config, at the top or one level below; None if there is none."""
    sections = [config, *(value for value in config.values() if isinstance(value, Mapping))]
    for section in sections:
        for key in SEED_KEYS:
            value = section.get(key)
            if isinstance(value, str) and value.isdigit():
                return int(value)
            if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
                return value
    return None


def merged(points: Sequence[Point]) -> list[Point]:
    """Return one point per step, in order of the steps; a later value of a metric wins."""
    rows: dict[int, dict[str, float]] = {}
    times: dict[int, float] = {}
    for point in points:
        rows.setdefault(point.step, {}).update(point.values)
        if point.time is not None:
            times[point.step] = point.time
    return [Point(step, rows[step], times.get(step)) for step in sorted(rows)]


def files_below(path: Path, *patterns: str, most: int = 5000) -> list[Path]:
    """Return the files below a folder that match, without following links; the path itself if it is a file."""
    if path.is_file():
        return [path] if any(path.match(pattern) for pattern in patterns) else []
    found: list[Path] = []
    for pattern in patterns:
        for file in path.rglob(pattern):
            if file.is_file() and not file.is_symlink():
                found.append(file)
            if len(found) >= most:
                break
    return sorted(dict.fromkeys(found))
