"""What a person names, a run or a config, as a run that can be trained further.

A config goes on with the first run of the project that has the same config and whose seeds ran the code and versions
there are now: the first, so that training a config again until its seeds are lucky gains nothing. Where there is none
a new run is made. Seeds of another code are never mixed in.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlx.compare.ground import Ground
from rlx.compare.objections import Objection, objections
from rlx.compare.side import Side
from rlx.config.catalog import PREFIX
from rlx.launch import launch
from rlx.runs.project import refuse_worktree
from rlx.runs.run import SNAPSHOT, Run, find, names

if TYPE_CHECKING:
    from rlx.config.schema import Experiment


@dataclass(frozen=True)
class Entry:
    """A run, or the experiment that a new run is made from."""

    text: str
    run: Run | None = None
    experiment: Experiment | None = None

    @property
    def name(self) -> str:
        return self.run.name if self.run else self.text

    def side(self) -> Side:
        """Return what is known before anything is trained."""
        if self.run is not None:
            return Side(self.run.name, (), config=self.run.config, planned_steps=self.run.planned_steps)
        from rlx.config.load import document

        assert self.experiment is not None
        steps = self.experiment.algo.total_timesteps
        return Side(self.text, (), config=document(self.experiment), planned_steps=steps)

    def open(self, *, root: Path, seeds: int) -> Run:
        """Return the run; a new one is made with so many seeds, which nobody has started yet."""
        if self.run is not None:
            return self.run
        assert self.experiment is not None
        return launch.create(self.experiment.model_copy(update={"seeds": seeds}), root=root)


def read(text: str, *, root: Path, ground: Ground) -> Entry:
    """Find what a run's name, a config file or `catalog:NAME` stands for."""
    if not text.startswith(PREFIX) and not Path(text).is_file():
        return Entry(text, run=find(text, root=root))
    from rlx.config.load import load

    refuse_worktree(Path(text))
    experiment = launch.check(load(Path(text)), root=root).experiment
    return Entry(text, run=_continued(experiment, root=root, ground=ground), experiment=experiment)


def _continued(experiment: Experiment, *, root: Path, ground: Ground) -> Run | None:
    from rlx.config.load import group_hash

    wanted = group_hash(experiment), experiment.backend
    runs = sorted(readable_runs(root), key=lambda run: float(run.metadata.get("created") or 0.0))
    return next((run for run in runs if _identity(run) == wanted and not ground.changes(run)), None)


def readable_runs(root: Path) -> list[Run]:
    """Return the runs of a project; one whose identity cannot be read is nobody's."""
    found = []
    for name in names(root):
        with contextlib.suppress(OSError, ValueError):
            run = find(name, root=root)
            found += [run] if run.metadata else []
    return found


def _identity(run: Run) -> tuple[object, object] | None:
    """Return config group and backend of a run of its own; None for one that goes on from or repeats another."""
    is_derived = bool(run.metadata.get("lineage") or run.metadata.get("phase"))
    return None if is_derived else (run.metadata.get("group_hash"), run.metadata.get("backend"))


def against(base: Entry, new: Entry, *, ground: Ground) -> list[Objection]:
    """Return what stands against comparing two entries before anything is trained; two runs are judged as they are."""
    runs = [entry.run for entry in (base, new) if entry.run is not None]
    if len(runs) == 2:
        return []
    is_other_code = any(ground.changes(run) for run in runs)
    return objections(base.side(), new.side(), is_replication=is_other_code)


def snapshot(run: Run) -> str:
    """Return the path of a run's config, as a config that can be named."""
    return f"runs/{run.name}/{SNAPSHOT}"
