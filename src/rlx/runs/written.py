"""The rows that a seed's processes wrote, read without trust: a job may write anything into its seed's folder."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx import files

EVENTS, ATTEMPTS, METRICS = "events.jsonl", "attempts.jsonl", "metrics.jsonl"
_NEEDS = {EVENTS: ("event", "time"), ATTEMPTS: ("time",)}
_EVENT_NEEDS = {"evaluated": ("step", "mean"), "resumed": ("step",)}


@dataclass(frozen=True)
class Rows:
    """The rows of a file up to its damage, and what that is: empty where every row is as rlx writes it."""

    sound: list[dict[str, Any]]
    damage: str = ""


def read(path: Path) -> Rows:
    """Return the rows of a seed's file, none where it is absent; damage is told and never raised."""
    sound: list[dict[str, Any]] = []
    try:
        for row in files.read_rows(path):
            if wrong := fault(row, path.name):
                return Rows(sound, f"{path.parent.name}/{path.name} has a bad line: {wrong}")
            sound.append(row)
    except OSError as error:
        return Rows(sound, f"{path.parent.name}/{path.name} cannot be read: {error.strerror}")
    except ValueError as error:
        return Rows(sound, str(error))
    return Rows(sound)


def fault(row: Mapping[str, Any], name: str) -> str:
    """Say what keeps a row of a file of this name from being used; empty where nothing does."""
    needs = (*_NEEDS.get(name, ()), *_EVENT_NEEDS.get(str(row.get("event")), ()))
    absent = [key for key in needs if row.get(key) is None]
    if absent:
        return f"a row has no `{absent[0]}`"
    wrong = [key for key, is_fine in _SORTS.items() if key in row and not is_fine(row[key])]
    return f"`{wrong[0]}` is not what it should be" if wrong else ""


def _is_place(value: object) -> bool:
    """Say whether a value can be a step or a time: a finite number that an integer of 64 bits can hold."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and abs(value) < 2**63  # type: ignore[arg-type]


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_mapping(value: object) -> bool:
    return value is None or isinstance(value, dict)


def _is_lines(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(line, str) for line in value)


_SORTS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("step", "resume_from", "time"), _is_place),
    **dict.fromkeys(("event", "reason", "hint", "kind", "label", "missing", "fingerprint", "code_sha256"), _is_text),
    **dict.fromkeys(("process", "git", "versions"), _is_mapping),
    "mean": files.is_number,
    "traceback": _is_lines,
}
