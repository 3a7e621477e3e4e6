"""What other runs of the project scored under the very evaluation that a run was reported with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from rlx import files
from rlx.diagnose.case import Precedent
from rlx.runs.run import Run

LATEST = "seed_*_latest.json"


def precedent(run: Run, documents: Iterable[Mapping[str, Any]]) -> Precedent | None:
    """Return the best median over seeds that another run scored in no more steps; None where there is none."""
    own = [one for one in documents if one.get("purpose") == "report" and one["name"].endswith("_latest")]
    steps = max((one["step"] for one in own if isinstance(one.get("step"), int)), default=0)
    folders = {one["protocol_folder"] for one in own}
    others = [
        found
        for folder in folders
        for path in sorted(run.path.parent.glob(f"*/eval/{folder}"))
        if path.parent.parent != run.path and (found := _scored(path))
    ]
    return max((one for one in others if one.steps <= steps), key=lambda one: one.mean, default=None)


def _scored(folder: Path) -> Precedent | None:
    """Return what a run scored with its final policies; what cannot be read does not count."""
    told = [one for path in folder.glob(LATEST) if (one := _read(path))]
    if not told:
        return None
    name = folder.parent.parent.name
    return Precedent(name, median(mean for mean, _ in told), max(step for _, step in told))


def _read(path: Path) -> tuple[float, int] | None:
    try:
        document = files.read_json(path)
        mean, step = document["mean"], document["step"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return (files.number(mean), step) if files.is_number(mean) and isinstance(step, int) else None
