"""Optuna: journals and SQLite files. Every trial is one run, its parameters are the config.

Optuna repeats no trial with another seed, so every imported run has one seed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlx.adopt.importers.foreign_run import ForeignRun, files_below
from rlx.adopt.importers.sqlite_file import has_tables, opened, rows
from rlx.runs.readers.reader import Point, as_number

_CREATE_STUDY, _CREATE_TRIAL, _PARAM, _STATE, _INTERMEDIATE = 0, 4, 5, 6, 7
"""The operation codes of a journal."""
_STATES = {
    "1": "completed",
    "COMPLETE": "completed",
    "2": "completed",
    "PRUNED": "completed",
    "3": "failed",
    "FAIL": "failed",
}
_PRUNED = ("2", "PRUNED")


class OptunaImporter:
    """Reads Optuna's storages."""

    name = "optuna"

    def claims(self, path: Path) -> bool:
        """Return whether there is a journal or a database of Optuna."""
        if any(_is_journal(file) for file in files_below(path, "*.log", "*.journal", "*.jsonl")[:50]):
            return True
        return any(
            has_tables(file, "studies", "trials", "trial_params") for file in files_below(path, "*.db", "*.sqlite*")
        )

    def read(self, path: Path) -> Iterator[ForeignRun]:
        """Yield every trial."""
        for file in files_below(path, "*.log", "*.journal", "*.jsonl"):
            if _is_journal(file):
                yield from _journal(file)
        for file in files_below(path, "*.db", "*.sqlite*"):
            if has_tables(file, "studies", "trials", "trial_params"):
                yield from _database(file)


def _is_journal(file: Path) -> bool:
    with file.open("rb") as stream:
        first = stream.readline(100_000)
    row = _json(first)
    return isinstance(row, dict) and "op_code" in row and "worker_id" in row


def _json(text: bytes | str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _journal(file: Path) -> Iterator[ForeignRun]:
    studies: list[str] = []
    trials: list[ForeignRun] = []
    damaged = 0
    with file.open("rb") as stream:
        for line in stream:
            row = _json(line)
            if not isinstance(row, dict):
                damaged += 1
                continue
            code = row.get("op_code")
            if code == _CREATE_STUDY:
                studies.append(str(row.get("study_name") or "study"))
            elif code == _CREATE_TRIAL:
                study = int(row.get("study_id", 0))
                name = studies[study] if study < len(studies) else "study"
                trials.append(ForeignRun(name, f"{name}/trial {len(trials)}", seed=0, state="interrupted"))
            elif isinstance(row.get("trial_id"), int) and row["trial_id"] < len(trials):
                _apply(trials[row["trial_id"]], int(code or 0), row)
    if damaged and trials:
        trials[-1].notes.append(f"{damaged} lines of {file.name} cannot be read")
    yield from trials


def _apply(run: ForeignRun, code: int, row: dict[str, Any]) -> None:
    if code == _PARAM:
        internal = row.get("param_value_internal")
        run.config[str(row.get("param_name"))] = _external(row.get("distribution"), internal)
    elif code == _INTERMEDIATE:
        value = as_number(row.get("intermediate_value"))
        if value is not None:
            run.points.append(Point(int(row.get("step") or 0), {"objective": value}))
    elif code == _STATE:
        state = str(row.get("state"))
        _finish(run, state, [as_number(value) for value in row.get("values") or []])


def _finish(run: ForeignRun, state: str, values: list[float | None]) -> None:
    run.state = _STATES.get(state, "interrupted")
    if state in _PRUNED:
        run.notes.append("the trial was pruned")
    last = max((point.step for point in run.points), default=0)
    for index, value in enumerate(values):
        if value is not None:
            suffix = "" if len(values) == 1 else f"_{index}"
            run.points.append(Point(last, {f"value{suffix}": value}))


def _external(distribution: object, internal: object) -> Any:
    """Return a parameter's value; a categorical one is stored as the index of its choice."""
    data = _json(distribution) if isinstance(distribution, str) else None
    if isinstance(data, dict) and isinstance(internal, (int, float)):
        attributes = data.get("attributes") or {}
        choices = attributes.get("choices")
        if isinstance(choices, list) and 0 <= int(internal) < len(choices):
            return choices[int(internal)]
        if str(data.get("name", "")).startswith("Int"):
            return int(internal)
    return internal


def _database(file: Path) -> Iterator[ForeignRun]:
    with opened(file) as database:
        studies = dict(rows(database, "SELECT study_id, study_name FROM studies"))
        query = "SELECT trial_id, number, study_id, state FROM trials ORDER BY trial_id"
        for trial, number, study, state in rows(database, query):
            name = str(studies.get(study, "study"))
            run = ForeignRun(name, f"{name}/trial {number}", seed=0)
            query = "SELECT param_name, param_value, distribution_json FROM trial_params WHERE trial_id = ?"
            for key, value, distribution in rows(database, query, trial):
                run.config[str(key)] = _external(distribution, value)
            query = "SELECT step, intermediate_value FROM trial_intermediate_values WHERE trial_id = ? ORDER BY step"
            for step, value in rows(database, query, trial):
                if as_number(value) is not None:
                    run.points.append(Point(int(step), {"objective": float(value)}))
            values = rows(database, "SELECT value FROM trial_values WHERE trial_id = ? ORDER BY objective", trial)
            _finish(run, str(state), [as_number(row[0]) for row in values])
            yield run
