"""MLflow: the folder store (`mlruns/EXPERIMENT/RUN`) and the SQLite store (`mlflow.db`), without MLflow itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlx.adopt.importers.foreign_run import ForeignRun, files_below, merged, name_and_seed, seed_of
from rlx.adopt.importers.sqlite_file import has_tables, opened, rows
from rlx.config import yaml_lines
from rlx.errors import ConfigError
from rlx.runs.readers.reader import Point, as_number

_STATES = {"3": "completed", "FINISHED": "completed", "4": "failed", "FAILED": "failed"}


class MlflowImporter:
    """Reads both stores of MLflow."""

    name = "mlflow"

    def claims(self, path: Path) -> bool:
        """Return whether there is a run folder of MLflow, or a database with its tables."""
        if any(_is_run(file.parent) for file in files_below(path, "meta.yaml")[:200]):
            return True
        return any(has_tables(file, "runs", "metrics", "experiments") for file in files_below(path, "*.db", "*.sqlite"))

    def read(self, path: Path) -> Iterator[ForeignRun]:
        """Yield every run of both stores."""
        for file in files_below(path, "meta.yaml"):
            if _is_run(file.parent):
                yield _folder_run(file.parent)
        for file in files_below(path, "*.db", "*.sqlite"):
            if has_tables(file, "runs", "metrics", "experiments"):
                yield from _database_runs(file)


def _is_run(folder: Path) -> bool:
    return (folder / "metrics").is_dir() and (folder / "params").is_dir()


def _folder_run(folder: Path) -> ForeignRun:
    try:
        meta = dict(yaml_lines.parse((folder / "meta.yaml").read_text("utf-8", "replace"), source="meta.yaml").data)
    except (OSError, ConfigError, RecursionError):
        meta = {}
    config = {file.name: _text(file) for file in sorted((folder / "params").rglob("*")) if file.is_file()}
    name, seed = name_and_seed(str(meta.get("run_name") or folder.name))
    run = ForeignRun(name, folder.name, dict(config), seed, state=_STATES.get(str(meta.get("status")), "interrupted"))
    points = []
    for file in sorted((folder / "metrics").rglob("*")):
        if not file.is_file() or file.is_symlink():
            continue
        metric = file.relative_to(folder / "metrics").as_posix()
        bad = 0
        for line in _text(file, most=256 * 2**20).splitlines():
            words = line.split()
            numbers = [as_number(word) for word in words[:3]]
            if len(words) < 2 or None in numbers:
                bad += 1
                continue
            step = int(numbers[2] or 0) if len(words) > 2 else 0
            points.append(Point(step, {metric: numbers[1] or 0.0}, (numbers[0] or 0.0) / 1000))
        if bad:
            run.notes.append(f"{bad} lines of {metric} cannot be read")
    run.points = merged(points)
    run.lineage = {"mlflow_id": folder.name, "experiment": folder.parent.name}
    if run.seed is None:
        run.seed = seed_of(run.config)
    return run


def _text(file: Path, *, most: int = 1_000_000) -> str:
    try:
        with file.open("rb") as stream:
            return stream.read(most).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _database_runs(file: Path) -> Iterator[ForeignRun]:
    with opened(file) as database:
        for row in rows(
            database, "SELECT run_uuid, name, status, experiment_id FROM runs ORDER BY start_time, run_uuid"
        ):
            identity = str(row[0])
            yield _database_run(database, identity, str(row[1] or identity), str(row[2]), str(row[3]))


def _database_run(database: sqlite3.Connection, identity: str, label: str, status: str, experiment: str) -> ForeignRun:
    params = rows(database, "SELECT key, value FROM params WHERE run_uuid = ?", identity)
    config: dict[str, Any] = {str(key): value for key, value in params}
    name, seed = name_and_seed(label)
    run = ForeignRun(name, identity, config, seed, state=_STATES.get(status, "interrupted"))
    points = []
    query = "SELECT key, value, step, timestamp, is_nan FROM metrics WHERE run_uuid = ? ORDER BY step, timestamp"
    for key, value, step, time, is_nan in rows(database, query, identity):
        number = as_number(value)
        if is_nan:
            number = float("nan")
        if number is not None:
            points.append(Point(int(step or 0), {str(key): number}, (time or 0) / 1000))
    run.points = merged(points)
    run.lineage = {"mlflow_id": identity, "experiment": experiment}
    if run.seed is None:
        run.seed = seed_of(config)
    return run
