"""Stable-Baselines3's files in one folder: `progress.csv`, `monitor.csv` and `evaluations.npz`."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

from rlx.adopt.importers.csv_runs import read_table
from rlx.adopt.importers.foreign_run import ForeignRun, files_below, merged, name_and_seed
from rlx.runs.readers.reader import Point, as_number

RECENT = 100
"""Episodes in the running mean of a monitor's returns, as in SB3."""
LARGEST_ARRAY = 50_000_000


class Sb3Importer:
    """Reads the files that SB3's loggers, monitors and evaluation callbacks write."""

    name = "sb3"

    def claims(self, path: Path) -> bool:
        """Return whether there is a monitor file or an archive of evaluations."""
        return bool(files_below(path, "*monitor.csv", "evaluations.npz"))

    def read(self, path: Path) -> Iterator[ForeignRun]:
        """Yield one run per folder with such files."""
        folders: dict[Path, None] = {}
        for file in files_below(path, "*monitor.csv", "evaluations.npz", "progress.csv"):
            folders[file.parent] = None
        for folder in folders:
            name, seed = name_and_seed(folder.name)
            source = folder.name
            if folder.is_relative_to(path):
                source = folder.relative_to(path).as_posix()
            run = ForeignRun(name, source, seed=seed)
            points: list[Point] = []
            if (folder / "progress.csv").is_file():
                rows, notes = read_table(folder / "progress.csv")
                points += rows
                run.notes += notes
            monitors = sorted(folder.glob("*monitor.csv"))
            if monitors:
                points += _monitors(monitors, run)
            if (folder / "evaluations.npz").is_file():
                points += _evaluations(folder / "evaluations.npz", run)
            run.points = merged(points)
            yield run


def _monitors(paths: list[Path], run: ForeignRun) -> list[Point]:
    """Return the running mean of the episodes of all monitors; the step is the sum of the lengths so far."""
    episodes: list[tuple[float, float, float]] = []
    for path in paths:
        with path.open(encoding="utf-8", errors="replace", newline="") as stream:
            head = stream.readline()
            if head.startswith("#"):
                _describe(head, run)
            else:
                stream.seek(0)
            for row in csv.DictReader(line.replace("\0", "") for line in stream):
                numbers = [as_number(row.get(name)) for name in ("t", "r", "l")]
                if None not in numbers:
                    episodes.append((numbers[0], numbers[1], numbers[2]))  # type: ignore[arg-type]
    episodes.sort()
    points = []
    step = 0
    for index, (_, _, length) in enumerate(episodes):
        step += int(length)
        recent = episodes[max(0, index + 1 - RECENT) : index + 1]
        values = {
            "rollout/ep_rew_mean": sum(episode[1] for episode in recent) / len(recent),
            "rollout/ep_len_mean": sum(episode[2] for episode in recent) / len(recent),
            "rollout/episodes": float(index + 1),
        }
        points.append(Point(step, values))
    return points


def _describe(head: str, run: ForeignRun) -> None:
    try:
        document = json.loads(head[1:])
    except (ValueError, RecursionError):
        return
    if isinstance(document, dict) and document.get("env_id"):
        run.config["env"] = {"id": str(document["env_id"])}


def _evaluations(path: Path, run: ForeignRun) -> list[Point]:
    """Return the mean returns of the evaluations, and keep their episodes; pickled arrays are refused."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as archive:
            steps = archive["timesteps"]
            results = archive["results"]
            if results.size > LARGEST_ARRAY:
                raise ValueError("too many episodes")
            run.evaluations = [(int(step), [float(x) for x in row]) for step, row in zip(steps, results, strict=False)]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        run.notes.append(f"{path.name} cannot be read: {error}")
        return []
    return [
        Point(step, {"eval/mean_reward": sum(returns) / len(returns)}) for step, returns in run.evaluations if returns
    ]
