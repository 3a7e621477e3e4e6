"""The interface between rlx and the executors that start its jobs, and what all executors share.

The job's folder is the truth about a job, not the scheduler's answer. The job runner (`job_runner`) writes there what
the job is, which process runs it, how it ended and what it printed. The process that submitted a job can therefore die
at any time, and a job that is submitted twice runs once.
Not covered: network disks without file locks. There, a job that is submitted twice may run twice, and only the run's
own lock is left.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rlx import files, plugins
from rlx.errors import JobFailed, NotFound
from rlx.runs import process
from rlx.runs.job_folder import CANCELLED, EXIT, FORGOTTEN, PROCESS, SUBMITTED

if TYPE_CHECKING:
    from rlx.launch.executors.executor_settings import ExecutorSettings
    from rlx.runs.run import Run

JOB = "job.json"
JOB_VARIABLE = "RLX_JOB"  # tells a job's processes the job's folder
PAUSED = "paused.json"
LOG = "log"
BEAT = "beat"
STALE_SECONDS = 60.0
PAUSED_EXIT = 75  # EX_TEMPFAIL: the job saved its work and can be started again
LOG_BYTES = 20_000
PART = "--part"  # the supervisor has one seed of a run; other jobs have the others
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
JobState = Literal["prepared", "queued", "preempted", "running", "completed", "failed", "cancelled", "lost"]


@dataclass(frozen=True)
class Job:
    """What to run and what it needs: arguments, extra environment variables, a working folder, resources."""

    id: str
    argv: tuple[str, ...]
    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)
    cores: int = 1
    gpus: float = 0.0
    memory_gb: float | None = None
    minutes: float | None = None
    resumes: bool = False
    """Whether it can be started again where it stopped: it exits with `PAUSED_EXIT` when SIGUSR1 asks it to."""

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Job:
        """Read a job back from its `job.json`."""
        values = {key: value for key, value in document.items() if key != "schema"}
        return cls(**{**values, "argv": tuple(values["argv"]), "folder": Path(values["folder"])})

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {"schema": 1, **asdict(self), "folder": str(self.folder), "env": dict(self.env)}


@dataclass(frozen=True)
class JobStatus:
    """The state of a job, and the reason if the state does not explain itself."""

    state: JobState
    exit_code: int | None = None
    says: str = ""

    @property
    def is_over(self) -> bool:
        return self.state in ("completed", "failed", "cancelled", "lost")


@dataclass(frozen=True)
class TrainingOrder:
    """Seeds of a run that are to be trained: to the end, or up to a step at which they pause."""

    run: Run
    seeds: tuple[int, ...]
    pause_step: int | None = None


class Executor(ABC):
    """Starts jobs. To test an implementation, subclass `rlx.testing.ExecutorContract`.

    `place` holds the folders of its jobs, which tell the status of each job.
    """

    name: str
    splits_seeds: ClassVar[bool] = False
    """Whether each seed of a run is a job of its own."""

    def __init__(self, place: Path, **settings: Any) -> None:
        self.place = place
        self._settings = settings

    @cached_property
    def settings(self) -> ExecutorSettings:
        """The settings, checked; jobs on this machine never need them."""
        from rlx.launch.executors.executor_settings import checked

        return checked(self._settings)

    @abstractmethod
    def submit(self, job: Job) -> str:
        """Start a job and return its id; a job that is already known is not started again."""

    def submit_all(self, jobs: Sequence[Job]) -> None:
        """Start several jobs."""
        for job in jobs:
            self.submit(job)

    @abstractmethod
    def cancel(self, job: str) -> None:
        """End a job; a job that has ended stays as it is."""

    def cancel_all(self, jobs: Sequence[str]) -> None:
        """End several jobs."""
        for job in jobs:
            self.cancel(job)

    def resubmit(self, job: str) -> None:
        """Start a preempted job again. Only an executor that preempts jobs can."""
        raise JobFailed(f"the executor `{self.name}` never preempts a job, so it cannot start {job} again")

    def poll(self, job: str) -> JobStatus:
        """Return the status of a job."""
        return self.status(job)

    def logs(self, job: str) -> str:
        """Return the end of the job's output."""
        try:
            with (self.folder(job) / LOG).open("rb") as stream:
                stream.seek(0, 2)
                stream.seek(max(0, stream.tell() - LOG_BYTES))
                return stream.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def recover(self) -> tuple[str, ...]:
        """Return the jobs that are not over. Those that were never started are `prepared` and can be submitted."""
        return tuple(job for job in self.known() if not self.status(job).is_over)

    def known(self) -> list[str]:
        """Return the ids of all jobs."""
        return sorted(path.parent.name for path in self.place.glob(f"*/{JOB}"))

    def folder(self, job: str) -> Path:
        """Return the folder of a known job."""
        folder = self.place / job
        if not _ID.fullmatch(job) or not (folder / JOB).is_file():
            raise NotFound(f"no job `{job}`", hint=f"known: {', '.join(self.known()) or 'none'}")
        return folder

    def prepare(self, job: Job) -> Path:
        """Write a job down, once, before it is started."""
        if not _ID.fullmatch(job.id):
            raise ValueError(f"{job.id!r} cannot be a job's id")
        folder = self.place / job.id
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / JOB).is_file():
            files.write_json(folder / JOB, job.document())
        return folder

    def status(self, job: str) -> JobStatus:
        """Return the status of a job according to its folder; a scheduler knows more about a queued one."""
        folder = self.folder(job)
        runner = self.runner(job)
        if runner is None and not (folder / EXIT).exists():
            return JobStatus("queued" if (folder / SUBMITTED).exists() else "prepared")
        is_alive = runner is not None and process.is_alive(runner)
        if is_alive is None:  # on another machine
            is_alive = _age_seconds(folder / BEAT) < STALE_SECONDS
        end = read_document(folder / EXIT)  # read last: a runner writes it before it ends
        is_cancelled = (folder / CANCELLED).exists()
        if end is None and is_alive:
            return JobStatus("running")
        if end is None and is_cancelled:
            return JobStatus("cancelled")
        if end is None:
            return JobStatus("lost", says="its job runner disappeared without a message")
        code = end.get("code")
        state: JobState = "completed" if code == 0 else "failed"
        if is_cancelled and code != 0:
            state = "cancelled"
        return JobStatus(state, code, str(end.get("says") or ""))

    def is_unsent(self, job: str) -> bool:
        """Say whether nobody was asked to start a job: it is only written down."""
        return self.status(job).state == "prepared"

    def runner(self, job: str) -> process.Process | None:
        """Return the process that runs a job, as it wrote itself down."""
        return process.from_document(read_document(self.folder(job) / PROCESS))

    def note_forgotten(self, job: str) -> None:
        """Write down for lists that the scheduler does not have a job any more; the job itself does not look at it."""
        with contextlib.suppress(OSError):
            (self.folder(job) / FORGOTTEN).touch()

    def mark_cancelled(self, job: str) -> None:
        """Write down that a job is to end, before any process is asked to end it."""
        (self.folder(job) / CANCELLED).touch()


def make_executor(name: str, place: Path, **settings: Any) -> Executor:
    """Import and make the executor with this name; `place` holds the folders of its jobs."""
    kind = plugins.load(plugins.EXECUTORS, name, kind="executor")
    made: Executor = kind(place, **settings)
    return made


def seed_job(order: TrainingOrder, seed: int, *, id: str) -> Job:
    """Return the job that trains one seed of a run; it can be interrupted and continued."""
    job = run_job(replace(order, seeds=(seed,)), id=id, parallel=1)
    return replace(job, argv=(*job.argv[:-1], PART, job.argv[-1]), resumes=True)


def run_job(order: TrainingOrder, *, id: str, parallel: int | None = None) -> Job:
    """Return the job that trains seeds of a run: it starts the run's supervisor.

    The job asks for the resources of all seeds that the study trains at the same time, or of `parallel` seeds.
    """
    from rlx.launch.processes.reexec import lasting_environment
    from rlx.launch.resources import gpu_share, neutral_environment, pause_environment

    run = order.run
    resources = run.config.get("resources") or {}
    lineage = run.metadata.get("lineage") or {}
    seconds = (lineage.get("limits") or {}).get("seed_seconds")
    memory = resources.get("memory")
    parallel = parallel or len(lineage.get("slots") or ()) or 1
    return Job(
        id=id,
        argv=(sys.executable, "-P", "-m", "rlx.launch.supervisor", str(run.path), *map(str, order.seeds)),
        folder=run.path,
        env={**lasting_environment(run.config), **neutral_environment(), **pause_environment(order.pause_step)},
        cores=parallel * int(resources.get("cores") or 1),
        gpus=parallel * gpu_share(run.config),
        memory_gb=memory and parallel * memory,
        minutes=seconds and math.ceil(len(order.seeds) / parallel) * seconds / 60,
    )


def is_job_cancelled() -> bool:
    """Say whether somebody cancelled the job that this process belongs to."""
    folder = os.environ.get(JOB_VARIABLE)
    return folder is not None and (Path(folder) / CANCELLED).exists()


def runner_argv(folder: Path) -> list[str]:
    """Return the command that a scheduler runs for a job."""
    return [sys.executable, "-P", "-m", "rlx.launch.executors.job_runner", str(folder)]


def read_document(path: Path) -> Mapping[str, Any] | None:
    """Return a JSON document of a job's folder; None if it is absent or damaged."""
    try:
        document = files.read_json(path)
    except (FileNotFoundError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def _age_seconds(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return float("inf")
