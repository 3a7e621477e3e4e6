"""The `results.tsv` of autoresearch and autoRL: one row per tried commit. The table becomes one run.

The step is the number of the row. Crashed rows have no score. The commits, states and descriptions are in the config.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from rlx.adopt.importers.foreign_run import ForeignRun, files_below
from rlx.runs.readers.reader import Point, as_number


class ResultsTableImporter:
    """Reads results tables."""

    name = "results"

    def claims(self, path: Path) -> bool:
        """Return whether there is a `results.tsv` with a commit and a status per row."""
        return any(_has_columns(file) for file in files_below(path, "results.tsv"))

    def read(self, path: Path) -> Iterator[ForeignRun]:
        """Yield one run per table."""
        for file in files_below(path, "results.tsv"):
            if _has_columns(file):
                yield _run(file)


def _has_columns(file: Path) -> bool:
    with file.open(encoding="utf-8", errors="replace") as stream:
        names = stream.readline(10_000).strip().split("\t")
    return {"commit", "status"} <= set(names)


def _run(file: Path) -> ForeignRun:
    run = ForeignRun(file.parent.name or "results", file.name, seed=0)
    tried = []
    with file.open(encoding="utf-8", errors="replace", newline="") as stream:
        for number, row in enumerate(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)):
            words = {key: value for key, value in row.items() if key and value is not None}
            tried.append({key: words.get(key, "") for key in ("commit", "status", "description")})
            values = {key: number_ for key, value in words.items() if (number_ := as_number(value)) is not None}
            values.pop("commit", None)
            if values and words.get("status") != "crash":
                run.points.append(Point(number, values))
    run.config = {"tried": tried}
    return run
