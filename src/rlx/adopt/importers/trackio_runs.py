"""trackio: one SQLite file per project, with a JSON object of metrics per step."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlx.adopt.importers.foreign_run import ForeignRun, files_below, merged, name_and_seed, seed_of
from rlx.adopt.importers.sqlite_file import has_tables, opened, rows
from rlx.runs.readers.reader import Point, as_number


class TrackioImporter:
    """Reads trackio's databases."""

    name = "trackio"

    def claims(self, path: Path) -> bool:
        """Return whether there is a database with trackio's tables."""
        return any(_is_project(file) for file in files_below(path, "*.db"))

    def read(self, path: Path) -> Iterator[ForeignRun]:
        """Yield every run of every project."""
        for file in files_below(path, "*.db"):
            if _is_project(file):
                yield from _runs(file)


def _is_project(file: Path) -> bool:
    return has_tables(file, "metrics", "configs") and not has_tables(file, "experiments")


def _runs(file: Path) -> Iterator[ForeignRun]:
    """Yield the runs of a project. Newer versions tell runs of one name apart by an id."""
    with opened(file) as database:
        identity = "run_name"
        if any(column[1] == "run_id" for column in rows(database, "PRAGMA table_info(metrics)")):
            identity = "run_id"
        queries = (
            f"SELECT {identity}, config FROM configs",  # noqa: S608  one of two constants
            f"SELECT {identity}, run_name, step, metrics FROM metrics ORDER BY step, id",  # noqa: S608
        )
        configs = {str(key): _json(text) for key, text in rows(database, queries[0])}
        points: dict[tuple[str, str], list[Point]] = {}
        for key, label, step, text in rows(database, queries[1]):
            values = {name: number for name, value in _json(text).items() if (number := as_number(value)) is not None}
            points.setdefault((str(key), str(label)), []).append(Point(int(step or 0), values))
    for (key, label), own in points.items():
        config = {name: value for name, value in configs.get(key, {}).items() if not name.startswith("_")}
        name, seed = name_and_seed(label)
        if seed is None:
            seed = seed_of(config)
        source = f"{file.name}/{label}" if key == label else f"{file.name}/{label}/{key}"
        yield ForeignRun(name, source, config, seed, merged(own), lineage={"project": file.stem})


def _json(text: object) -> dict[str, Any]:
    """Return a stored object; trackio keeps it as text or as bytes."""
    if not isinstance(text, (str, bytes)):
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    return value
