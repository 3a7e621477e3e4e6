"""Runs that another executor than this machine's supervisor trains: submit one, find its jobs, cancel them.

`jobs.json` in the run's folder names the executor and the job of every seed. It is written before the jobs are
submitted, so that a killed rlx finds them again.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx import files, plugins
from rlx.errors import RlxError
from rlx.evaluate.stored_code import refuse_foreign_program
from rlx.launch.executors import executor_settings
from rlx.launch.executors.executor import (
    Executor,
    Job,
    JobStatus,
    TrainingOrder,
    make_executor,
    run_job,
    seed_job,
)
from rlx.launch.supervisor import project_of
from rlx.runs import project
from rlx.runs.job_folder import LOCAL, PLACE
from rlx.runs.run import JOBS, Run
from rlx.study.study_folder import task_folder
from rlx.study.task import task as tasks
from rlx.study.task.task import Launcher, Task


@dataclass(frozen=True)
class RemoteJob:
    """The jobs of a run at its executor: one for each seed, or one for all."""

    executor: Executor
    jobs: tuple[str, ...]

    def statuses(self) -> dict[str, JobStatus]:
        """Return the status of every job."""
        return {job: self.executor.poll(job) for job in self.jobs}

    def status(self) -> JobStatus:
        """Return the status of the jobs together: the most alive one, or else the worst end."""
        statuses = list(self.statuses().values())
        order = ("running", "queued", "preempted", "prepared", "failed", "lost", "cancelled", "completed")
        return min(statuses, key=lambda status: order.index(status.state))

    @property
    def is_active(self) -> bool:
        """Whether the executor has a job, queued or running; a job that was only written down was not submitted."""
        return any(status.state in ("queued", "preempted", "running") for status in self.statuses().values())

    def resubmit_preempted(self) -> None:
        """Submit the jobs again that the scheduler ended for reasons of its own."""
        for job, status in self.statuses().items():
            if status.state == "preempted":
                self.executor.resubmit(job)

    def cancel(self) -> None:
        """Ask the executor to end the jobs."""
        self.executor.cancel_all(self.jobs)


def submit_run(run: Run, seeds: Sequence[int], launcher: Launcher) -> None:
    """Submit a run of a study to the task's executor; the same job is never submitted twice."""
    made = _executor_of(launcher, project_of(run))
    order = TrainingOrder(run, tuple(seeds))
    _submit(made, [order], _jobs_for(order, made, stem=_study_job_id(run)))


def submit_plain_runs(orders: Sequence[TrainingOrder], name: str) -> None:
    """Submit seeds of runs that no study launched, all in one submission."""
    root = project_of(orders[0].run)
    refuse_foreign_program(f"the executor {name} of {project.MARKER}", root=root)
    made = make_executor(name, _place(root), **executor_settings.read(root))
    jobs = []
    for order in orders:
        jobs += _jobs_for(order, made, stem=f"{order.run.name[:60]}.{uuid.uuid4().hex[:8]}")
    _submit(made, orders, jobs)


def _submit(made: Executor, orders: Sequence[TrainingOrder], jobs: Sequence[Job]) -> None:
    made.submit_all(jobs)
    for order in orders:
        os.utime(order.run.path)  # the index reads the run again


def _jobs_for(order: TrainingOrder, made: Executor, *, stem: str) -> list[Job]:
    """Write down which job trains which seed, and return the jobs; jobs that were never sent keep their ids."""
    run = order.run
    document = read_jobs(run)
    before: Mapping[str, Any] = {}
    if document.get("executor") == made.name:
        before = document.get("jobs") or {}
    ids = dict.fromkeys(map(str, order.seeds), stem)
    if made.splits_seeds:
        ids = {seed: f"{stem}.s{seed}" for seed in ids}
    for seed in ids:
        if seed in before and _is_unsent(made, str(before[seed])):
            ids[seed] = str(before[seed])
    files.write_json(run.path / JOBS, {"schema": 1, "executor": made.name, "jobs": {**before, **ids}})
    if made.splits_seeds:
        return [seed_job(order, int(seed), id=id) for seed, id in ids.items()]
    return [run_job(order, id=stem)]


def _is_unsent(made: Executor, job: str) -> bool:
    try:
        return made.poll(job).state == "prepared"
    except RlxError:
        return False


def cancel_all(jobs: Sequence[RemoteJob]) -> None:
    """End the jobs of several runs; every executor is asked once."""
    by_name: dict[str, list[RemoteJob]] = {}
    for job in jobs:
        by_name.setdefault(job.executor.name, []).append(job)
    for same in by_name.values():
        same[0].executor.cancel_all([id for job in same for id in job.jobs])


def discard_unsent(run: Run) -> bool:
    """Remove the jobs of a run if its executor was never asked to start one; return whether they are gone."""
    job = remote_job_of(run)
    if job is None:
        return True
    if not all(job.executor.is_unsent(id) for id in job.jobs):
        return False
    for id in job.jobs:
        shutil.rmtree(job.executor.folder(id))
    return True


def remote_job_of(run: Run) -> RemoteJob | None:
    """Return the jobs of a run at its executor; None for a run that this machine's own supervisor trains."""
    document = read_jobs(run)
    lineage = run.metadata.get("lineage") or {}
    name = str(document.get("executor") or lineage.get("executor", LOCAL))
    if name == LOCAL:
        return None
    root = project_of(run)
    if not (project.is_own(root) and project.is_made_here(run.path)):
        # whoever sent it named the commands that ask its scheduler
        return None
    try:
        if "job" in lineage:
            launcher = tasks.read(task_folder(root, str(lineage["task"])) / tasks.FILE).adapter.launcher
            made = _executor_of(launcher.model_copy(update={"executor": name}), root)
        else:
            made = make_executor(name, _place(root), **executor_settings.read(root))
        ids = list((document.get("jobs") or {}).values()) or [_study_job_id(run)]
        job = RemoteJob(made, tuple(dict.fromkeys(map(str, ids))))
        job.statuses()
    except (RlxError, KeyError):  # the task is gone, or the job was never submitted
        return None
    return job


def seed_problem(run: Run, seed: int) -> str:
    """Return how the job of a seed ended, if that was not a success."""
    job = remote_job_of(run)
    id = (read_jobs(run).get("jobs") or {}).get(str(seed))
    if job is None or id not in job.jobs:
        return ""
    status = job.executor.poll(id)
    if status.state == "completed":
        return ""
    return f"its job at {job.executor.name} is {status.state}: {status.says or f'exit code {status.exit_code}'}"


def read_jobs(run: Run) -> Mapping[str, Any]:
    """Return which executor has the seeds of a run, and its jobs; empty for a run without an executor."""
    try:
        document = files.read_json(run.path / JOBS)
    except (OSError, ValueError):
        return {}
    if not isinstance(document, dict) or not isinstance(document.get("jobs") or {}, dict):
        return {}
    return document


def executor_sent_to(run: Run) -> str:
    """Return the executor to which this project sent a run; empty if another project sent it, or none did."""
    document = read_jobs(run)
    name = str(document.get("executor") or "")
    if name not in plugins.EXECUTORS:
        return ""
    place = _place(project_of(run))
    for job in (document.get("jobs") or {}).values():
        if Path(str(job)).name == job and (place / job).is_dir():
            return name
    return ""


def launcher_of(task: Task, root: Path) -> Launcher:
    """Return how a task's jobs start: as `--executor` says, or else the task, or else the project's `rlx.toml`."""
    launcher = task.adapter.launcher
    named = executor_settings.named_by_user()
    if not named and launcher.executor == LOCAL:
        named = executor_settings.chosen_name(root)
    if not named or named == launcher.executor:
        return launcher
    return launcher.model_copy(update={"executor": named})


def _executor_of(launcher: Launcher, root: Path) -> Executor:
    """Return the executor that a task's launcher describes; its settings are in `rlx.toml`."""
    settings = executor_settings.read(root)
    for name in ("submit", "poll", "cancel"):
        if getattr(launcher, name):
            settings[name] = getattr(launcher, name)
    return make_executor(launcher.executor, _place(root), **settings)


def _place(root: Path) -> Path:
    """Return the folder with the folders of all jobs of a project."""
    return root / PLACE


def _study_job_id(run: Run) -> str:
    lineage = run.metadata["lineage"]
    return f"{lineage['task']}.{lineage['study']}.{lineage['job']}"
