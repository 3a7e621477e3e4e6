"""Rows that a seed's processes wrote, read without trust: a job may write anything into its seed's folder."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx import files

EVENTS = "events.jsonl"
ATTEMPTS = "attempts.jsonl"
METRICS = "metrics.jsonl"
_NEEDS = {EVENTS: ("event", "time"), ATTEMPTS: ("time",)}
_EVENT_NEEDS = {"evaluated": ("step", "mean"), "resumed": ("step",)}


@dataclass(frozen=True)
class Rows:
    """The rows of a file up to its first damage, and that damage; empty if every row is sound."""

    sound: list[dict[str, Any]]
    damage: str = ""


def read(path: Path, *, lines: bytes | None = None) -> Rows:
    """Return the rows of a seed's file, or of complete `lines` of it; damage is returned, never raised."""
    sound: list[dict[str, Any]] = []
    name = path.name
    try:
        rows = files.read_rows(path) if lines is None else files.rows_in(lines)
        for row in rows:
            if wrong := fault(row, name):
                return Rows(sound, f"{path.parent.name}/{name} has a bad line: {wrong}")
            sound.append(row)
    except OSError as error:
        return Rows(sound, f"{path.parent.name}/{path.name} cannot be read: {error.strerror}")
    except ValueError as error:
        return Rows(sound, str(error))
    return Rows(sound)


def fault(row: Mapping[str, Any], name: str) -> str:
    """Return why a row of a file of this name cannot be used; empty if it can."""
    if name == METRICS and type(row.get("step")) is int and row.keys().isdisjoint(_RARE):
        time = row.get("time", 0)  # nearly every row of a long file takes this short way
        if type(time) in (int, float) and 0 <= time < 2**63 and -(2**63) < row["step"] < 2**63:
            return ""
    needs = (*_NEEDS.get(name, ()), *_EVENT_NEEDS.get(str(row.get("event")), ()))
    absent = [key for key in needs if row.get(key) is None]
    if absent:
        return f"a row has no `{absent[0]}`"
    for key, is_valid in _VALIDATORS.items():
        if key in row and not is_valid(row[key]):
            return f"`{key}` has a wrong type or value"
    return ""


def _is_step_or_time(value: object) -> bool:
    """Return whether a value can be a step or a time: a finite number that fits into 64 bits."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and abs(value) < 2**63  # type: ignore[arg-type]


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_mapping(value: object) -> bool:
    return value is None or isinstance(value, dict)


def _is_lines(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(line, str) for line in value)


_VALIDATORS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("step", "resume_from", "time"), _is_step_or_time),
    **dict.fromkeys(("event", "reason", "hint", "kind", "label", "missing", "fingerprint", "code_sha256"), _is_text),
    **dict.fromkeys(("process", "git", "versions", "code_files"), _is_mapping),
    "mean": files.is_number,
    "traceback": _is_lines,
}
_RARE = frozenset(_VALIDATORS) - {"step", "time"}
