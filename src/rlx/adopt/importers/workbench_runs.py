"""rlx-workbench: `runs/NAME_NNN` with `metrics.jsonl`, evaluations and the lineage of resumed and swept runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlx import files
from rlx.adopt.importers.foreign_run import ForeignRun, files_below, merged, seed_of
from rlx.config import yaml_lines
from rlx.errors import ConfigError
from rlx.runs.readers.jsonl import JsonlReader
from rlx.runs.readers.reader import Point, as_number

_LINEAGE = ("resumed_from", "sweep_", "advisor_")
_STATES = {"completed": "completed", "failed": "failed"}


class WorkbenchImporter:
    """Reads the run folders of rlx-workbench."""

    name = "workbench"

    def claims(self, path: Path) -> bool:
        """Return whether there is such a run folder; rlx's own runs have seed folders and are not claimed."""
        return any(_is_run(file.parent) for file in files_below(path, "config_snapshot.yaml")[:200])

    def read(self, path: Path) -> Iterator[ForeignRun]:
        """Yield every run."""
        for file in files_below(path, "config_snapshot.yaml"):
            if _is_run(file.parent):
                yield _run(file.parent)


def _is_run(folder: Path) -> bool:
    has_files = (folder / "metadata.json").is_file() and (folder / "metrics.jsonl").is_file()
    return has_files and not any(folder.glob("seed_*"))


def _run(folder: Path) -> ForeignRun:
    metadata = _document(folder / "metadata.json")
    config = _config(folder / "config_snapshot.yaml")
    name = str(config.get("run_name") or folder.name.rpartition("_")[0] or folder.name)
    run = ForeignRun(name, folder.name, config, state=_STATES.get(str(metadata.get("status")), "interrupted"))
    run.seed = seed_of(config)
    run.lineage = {key: value for key, value in metadata.items() if key.startswith(_LINEAGE) and value is not None}
    run.lineage["workbench_id"] = str(metadata.get("id") or folder.name)
    reader = JsonlReader()
    run.points = merged(reader.read(folder / "metrics.jsonl", is_last=True))
    if reader.skipped:
        run.notes.append(f"{reader.skipped} rows of metrics.jsonl have no step")
    last = max((point.step for point in run.points), default=0)
    for path in sorted((folder / "eval").glob("*.json")):
        returns = _returns(_document(path))
        if returns:
            run.evaluations.append((last, returns))
            run.points.append(Point(last, {"eval/mean_reward": sum(returns) / len(returns)}))
    run.points = merged(run.points)
    return run


def _returns(document: dict[str, Any]) -> list[float]:
    episodes = document.get("episodes")
    if not isinstance(episodes, list):
        return []
    numbers = [as_number(episode.get("reward")) for episode in episodes if isinstance(episode, dict)]
    return [number for number in numbers if number is not None]


def _document(path: Path) -> dict[str, Any]:
    try:
        value = files.read_json(path)
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    return value


def _config(path: Path) -> dict[str, Any]:
    try:
        return dict(yaml_lines.parse(path.read_text("utf-8", "replace"), source=path.name).data)
    except (OSError, ConfigError, RecursionError):
        return {}
