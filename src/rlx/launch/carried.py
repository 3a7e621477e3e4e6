"""Runs that an engine other than this machine carries: who carries one, how it stands there, how it is cancelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlx.errors import RlxError
from rlx.launch.executor import LOCAL, Executor, Standing, executor, run_job
from rlx.launch.supervisor import project_of
from rlx.runs.run import Run
from rlx.study import task as tasks
from rlx.study.study import task_folder
from rlx.study.task import Launcher


@dataclass(frozen=True)
class Carried:
    """A run's job at its engine."""

    engine: Executor
    job: str

    def standing(self) -> Standing:
        """Return how the job stands."""
        return self.engine.poll(self.job)

    @property
    def is_under_way(self) -> bool:
        """Say whether the engine has it, waiting or running; one that was only written down was not handed over."""
        standing = self.standing()
        return not standing.is_over and standing.state != "prepared"

    def cancel(self) -> None:
        """Have the engine end the job."""
        self.engine.cancel(self.job)


def engine_of(launcher: Launcher, root: Path) -> Executor:
    """Return the executor that a task's launcher describes; its jobs have their folders in `.rlx/jobs`."""
    place = root / ".rlx" / "jobs"
    return executor(launcher.executor, place, submit=launcher.submit, poll=launcher.poll, cancel=launcher.cancel)


def carry(run: Run, seeds: Sequence[int], launcher: Launcher) -> None:
    """Hand a run of a study to its engine; the same job is never handed over twice."""
    engine_of(launcher, project_of(run)).submit(run_job(run, seeds, id=_job_of(run)))


def carried(run: Run) -> Carried | None:
    """Return a run's job at its engine; None for a run that this machine's own supervisor trains."""
    lineage = run.metadata.get("lineage") or {}
    if lineage.get("executor", LOCAL) == LOCAL:
        return None
    root = project_of(run)
    try:
        launcher = tasks.read(task_folder(root, str(lineage["task"])) / tasks.FILE).adapter.launcher
        found = Carried(engine_of(launcher, root), _job_of(run))
        found.standing()
    except RlxError:  # no such task any more, or never handed over
        return None
    return found


def _job_of(run: Run) -> str:
    lineage = run.metadata["lineage"]
    return f"{lineage['task']}.{lineage['study']}.{lineage['job']}"
