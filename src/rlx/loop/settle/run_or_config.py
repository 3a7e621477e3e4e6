"""A run or a config that the user names, as a run that can be trained further.

A config continues the first run of the project with the same config whose seeds ran the present code and versions. It
is always the first run, so training a config again until its seeds are lucky gains nothing. If there is none, rlx
creates a run. Seeds of other code are never mixed in.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlx.compare.arms import Arm
from rlx.compare.code_version import CurrentCode
from rlx.compare.comparability import Objection, objections
from rlx.compare.question import STANDARD, ComparisonQuestion
from rlx.config.catalog import PREFIX
from rlx.launch import launch
from rlx.number_format import listed
from rlx.runs.project import refuse_worktree
from rlx.runs.run import COMMAND_BACKEND, SNAPSHOT, Run, find, names

if TYPE_CHECKING:
    from rlx.config.schema import Experiment


@dataclass(frozen=True)
class RunOrConfig:
    """A run, or the experiment for a new run."""

    text: str
    run: Run | None = None
    experiment: Experiment | None = None

    @property
    def is_opaque(self) -> bool:
        """Whether rlx cannot open its checkpoints: a command trains it."""
        if self.run is not None:
            return self.run.is_opaque
        return self.experiment is not None and self.experiment.backend == COMMAND_BACKEND

    @property
    def name(self) -> str:
        if self.run is None:
            return self.text
        return self.run.name

    def side(self) -> Arm:
        """Return the arm before anything is trained."""
        if self.run is not None:
            return Arm(self.run.name, (), config=self.run.config, planned_steps=self.run.planned_steps)
        from rlx.config.load import document

        assert self.experiment is not None
        steps = self.experiment.algo.total_timesteps
        return Arm(self.text, (), config=document(self.experiment), planned_steps=steps)

    def open(self, *, root: Path, seeds: int) -> Run:
        """Return the run, or create one with this many seeds, which are not started yet."""
        if self.run is not None:
            return self.run
        assert self.experiment is not None
        return launch.create(self.experiment.model_copy(update={"seeds": seeds}), root=root)


def read(text: str, *, root: Path, ground: CurrentCode, overrides: Sequence[str] = ()) -> RunOrConfig:
    """Resolve a run's name, a config file or `catalog:NAME`. With overrides, a run stands for its config."""
    path = Path(text)
    if not text.startswith(PREFIX) and not path.is_file():
        run = find(text, root=root)
        if not overrides:
            return RunOrConfig(text, run=run)
        path = run.path / SNAPSHOT
    from rlx.config.load import load
    from rlx.evaluate.stored_code import refuse_stored_code

    refuse_worktree(path)
    refuse_stored_code(path, root=root)
    experiment = launch.check(load(path, overrides=list(overrides)), root=root).experiment
    text = " ".join([text, *(f"-s {override}" for override in overrides)])
    return RunOrConfig(text, run=run_to_continue(experiment, root=root, ground=ground), experiment=experiment)


def run_to_continue(experiment: Experiment, *, root: Path, ground: CurrentCode) -> Run | None:
    """Return the first run of a checked experiment's config whose seeds ran the present code, if there is one."""
    from rlx.config.load import group_hash

    identity = (group_hash(experiment), experiment.backend)
    runs = sorted(readable_runs(root), key=lambda run: float(run.metadata.get("created") or 0.0))
    return next((run for run in runs if _identity(run) == identity and not ground.changes(run)), None)


def reasons_not_reused(experiment: Experiment, *, root: Path, ground: CurrentCode) -> list[str]:
    """Say which stored runs of a config are not continued, because something changed since they were trained."""
    from rlx.config.load import group_hash

    identity = (group_hash(experiment), experiment.backend)
    reasons = []
    for run in readable_runs(root):
        if _identity(run) == identity and run.seeds:
            changes = ground.changes(run)
            if changes:
                reasons.append(f"{run.name} is not continued, because these changed since: {listed(changes, most=3)}")
    if reasons:
        reasons[-1] += " (--reuse continues it, if a change of code does not matter)"
    return reasons


def readable_runs(root: Path) -> list[Run]:
    """Return the runs of a project whose metadata can be read."""
    readable = []
    for name in names(root):
        with contextlib.suppress(OSError, ValueError):
            run = find(name, root=root)
            if run.metadata:
                readable.append(run)
    return readable


def _identity(run: Run) -> tuple[object, object] | None:
    """Return the config group and backend of a run; None for a run that continues or repeats another."""
    if run.metadata.get("lineage") or run.metadata.get("phase"):
        return None
    return run.metadata.get("group_hash"), run.metadata.get("backend")


def objections_before_training(
    base: RunOrConfig, new: RunOrConfig, *, ground: CurrentCode, question: ComparisonQuestion = STANDARD
) -> list[Objection]:
    """Return the objections to comparing two entries before training; two existing runs are judged later."""
    runs = [entry.run for entry in (base, new) if entry.run is not None]
    if len(runs) == 2:
        return []
    is_other_code = any(ground.changes(run) for run in runs)
    return objections(base.side(), new.side(), is_replication=is_other_code, question=question)


def snapshot(run: Run) -> str:
    """Return the path of a run's config, which commands accept as a config."""
    return f"runs/{run.name}/{SNAPSHOT}"
