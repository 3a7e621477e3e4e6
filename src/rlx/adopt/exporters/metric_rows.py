"""The rows of a run as other tools take them: one seed at a time, numbers only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlx import files
from rlx.errors import UsageError
from rlx.runs.run import Run, Seed


def numbers(row: dict[str, Any]) -> dict[str, float]:
    """Return the metrics of a row, without its step and time."""
    return {
        name: files.number(value)
        for name, value in row.items()
        if name not in ("step", "time") and files.is_number(value)
    }


def seed_rows(seed: Seed) -> Iterator[tuple[int, float, dict[str, float]]]:
    """Yield the step, the time and the metrics of every row of a seed."""
    for row in seed.rows:
        yield int(row["step"]), float(row["time"]), numbers(row)


def plain_config(run: Run) -> dict[str, Any]:
    """Return the settings of a run by dotted key."""
    settings: dict[str, Any] = {}

    def add(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                add(f"{prefix}.{key}" if prefix else str(key), inner)
        elif value is not None:
            settings[prefix] = value

    add("", run.config)
    return settings


def missing_library(name: str) -> UsageError:
    return UsageError(f"--to {name} needs the library {name}", hint=f"pip install {name}")
