"""CSV and TSV tables, repeated headers included: each file is one run. The step is the column that counts steps."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from rlx.adopt.importers.foreign_run import ForeignRun, files_below, merged, name_and_seed
from rlx.runs.readers.reader import Point, as_number

LARGEST = 512 * 2**20
STEPS = (
    "step", "_step", "global_step", "total_steps", "timesteps", "total_timesteps", "time/total_timesteps",
    "num_timesteps", "env_steps", "environment_steps", "frames", "frame", "num_frames", "iteration", "iter", "it",
    "update", "updates", "epoch", "time/iterations", "episode",
)  # fmt: skip
"""Names of columns that count steps, the best first."""
_NOT_RUNS = re.compile(r"^(results|monitor|.*\.monitor)$", re.I)


class CsvImporter:
    """Reads tables."""

    name = "csv"

    def claims(self, path: Path) -> bool:
        """Return whether a file is a table with several columns, or a folder has one."""
        return any(_is_table(file) for file in files_below(path, "*.csv", "*.tsv")[:50])

    def read(self, path: Path) -> Iterator[ForeignRun]:
        """Yield one run per table."""
        for file in files_below(path, "*.csv", "*.tsv"):
            if _NOT_RUNS.match(file.stem) and path.is_dir():
                continue
            if not _is_table(file):
                continue
            points, notes = read_table(file)
            name, seed = name_and_seed(_label(file))
            source = file.name
            if file.is_relative_to(path) and file != path:
                source = file.relative_to(path).as_posix()
            yield ForeignRun(name, source, seed=seed, points=points, notes=notes)


def _label(file: Path) -> str:
    if file.stem in ("progress", "log", "metrics", "train", "eval", "data"):
        return file.parent.name
    return file.stem


def _is_table(file: Path) -> bool:
    try:
        with file.open(encoding="utf-8", errors="replace", newline="") as stream:
            head = stream.readline(100_000)
    except OSError:
        return False
    return any(sign in head for sign in ",\t;") and file.stat().st_size <= LARGEST


def read_table(file: Path) -> tuple[list[Point], list[str]]:
    """Return the points of a table and notes; a repeated header is skipped, and another header starts new columns."""
    points: list[Point] = []
    header: list[str] = []
    step = ""
    skipped = 0
    with file.open(encoding="utf-8", errors="replace", newline="") as stream:
        lines = (line.replace("\0", "") for line in stream if line.strip() and not line.startswith("#"))
        first = next(lines, "")
        separator = max(",\t;", key=first.count)
        for number, cells in enumerate(csv.reader([first, *lines], delimiter=separator)):
            if not header or is_header(cells, header):
                header = [cell.strip() for cell in cells]
                step = next((name for name in STEPS if name in header), "")
                continue
            row = {
                name: value for name, cell in zip(header, cells, strict=False) if (value := as_number(cell)) is not None
            }
            at = row.pop(step, None) if step else float(number)
            if at is None or at != at or abs(at) > 2**53 or len(cells) > len(header):
                skipped += 1
                continue
            if row:
                points.append(Point(int(at), row))
    notes = [f"{skipped} rows without a step were skipped"] if skipped else []
    if not step and points:
        notes.append("no column counts steps: the step is the number of the row")
    return merged(points), notes


def is_header(cells: list[str], header: list[str]) -> bool:
    """Return whether a row is a header: the same again, or only names."""
    names = [cell.strip() for cell in cells]
    if names == header:
        return True
    return len(names) > 1 and all(name and as_number(name) is None for name in names)
