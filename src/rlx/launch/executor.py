"""The seam between rlx and what carries jobs: a job, how it stands, what an executor must do, and how one is found.

The truth about a job is its folder, never the engine's answer: what it is, who carries it, how it ended and what it
printed are files there, written by the job's own carrier (`carry`). So a controller can die at any moment, and a job
that is submitted twice runs once.
What is not covered: locks on network disks that have none; there a job that is submitted twice may run twice, and its
run's own lease is what is left.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from rlx import files, plugins
from rlx.errors import NotFound
from rlx.runs import process

if TYPE_CHECKING:
    from rlx.runs.run import Run

JOB, PROCESS, EXIT, SUBMITTED, CANCELLED, LOG, BEAT = (
    "job.json", "process.json", "exit.json", "submitted.json", "cancelled", "log", "beat",
)  # fmt: skip
STALE_SECONDS = 60.0
LOCAL = "local"
"""The executor of whoever names none: this machine."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
State = Literal["prepared", "queued", "running", "completed", "failed", "cancelled", "lost"]


@dataclass(frozen=True)
class Job:
    """What to run, and what it needs: arguments, variables on top of the engine's, a folder to work in, resources."""

    id: str
    argv: tuple[str, ...]
    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)
    cores: int = 1
    gpus: float = 0.0
    memory_gb: float | None = None
    minutes: float | None = None

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {"schema": 1, **asdict(self), "folder": str(self.folder), "env": dict(self.env)}


@dataclass(frozen=True)
class Standing:
    """How a job stands, and why where that is not plain."""

    state: State
    exit_code: int | None = None
    says: str = ""

    @property
    def is_over(self) -> bool:
        return self.state in ("completed", "failed", "cancelled", "lost")


class Executor(Protocol):
    """What carries jobs. Conformance: subclass `rlx.testing.ExecutorContract`."""

    name: str

    def __init__(
        self, place: Path, *, submit: Sequence[str] = (), poll: Sequence[str] = (), cancel: Sequence[str] = ()
    ) -> None: ...

    def submit(self, job: Job) -> str:
        """Have a job carried and return its id; one that is known already is not carried again."""
        ...

    def poll(self, job: str) -> Standing:
        """Return how a job stands."""
        ...

    def cancel(self, job: str) -> None:
        """Have a job end; one that has ended stays as it is."""
        ...

    def logs(self, job: str) -> str:
        """Return the end of what a job printed."""
        ...

    def recover(self) -> tuple[str, ...]:
        """Return the jobs that are not over, as their folders tell; for a controller that begins anew."""
        ...


def executor(
    name: str, place: Path, *, submit: Sequence[str] = (), poll: Sequence[str] = (), cancel: Sequence[str] = ()
) -> Executor:
    """Import and make the executor of a name; `place` holds the folders of its jobs."""
    made: Executor = plugins.load(plugins.EXECUTORS, name, kind="executor")(
        place, submit=submit, poll=poll, cancel=cancel
    )
    return made


def run_job(run: Run, seeds: Sequence[int], *, id: str) -> Job:
    """Return the job that trains seeds of a run: its supervisor, which is what engines carry.

    It needs what as many seeds need as its study lets train side by side.
    """
    from rlx.launch.interpreter import lasting_environment
    from rlx.launch.resources import neutral_environment

    resources = run.config.get("resources") or {}
    lineage = run.metadata.get("lineage") or {}
    seconds, memory = (lineage.get("limits") or {}).get("seed_seconds"), resources.get("memory")
    together = len(lineage.get("slots") or ()) or 1
    argv = (sys.executable, "-P", "-m", "rlx.launch.supervisor", str(run.path), *map(str, seeds))
    return Job(
        id=id,
        argv=argv,
        folder=run.path,
        env={**lasting_environment(run.config), **neutral_environment()},
        cores=together * int(resources.get("cores") or 1),
        gpus=together * float(resources.get("gpus") or 0.0),
        memory_gb=together * memory if memory else None,
        minutes=math.ceil(len(seeds) / together) * seconds / 60 if seconds else None,
    )


class Desk:
    """The folders of an executor's jobs: what every executor shares, since the truth is there."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def folder(self, job: str) -> Path:
        """Return a known job's folder."""
        folder = self.place / job
        if not _ID.fullmatch(job) or not (folder / JOB).is_file():
            raise NotFound(f"no job `{job}`", hint=f"known: {', '.join(self.known()) or 'none'}")
        return folder

    def known(self) -> list[str]:
        """Return the ids of all jobs."""
        return sorted(path.parent.name for path in self.place.glob(f"*/{JOB}"))

    def prepare(self, job: Job) -> Path:
        """Write a job down, once, before anything is asked of an engine."""
        if not _ID.fullmatch(job.id):
            raise ValueError(f"{job.id!r} cannot be a job's id")
        folder = self.place / job.id
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / JOB).is_file():
            files.write_json(folder / JOB, job.document())
        return folder

    def standing(self, job: str) -> Standing:
        """Return how a job stands as far as its folder tells; `prepared` and `queued` are for the engine to know."""
        folder = self.folder(job)
        ending = _document(folder / EXIT)
        if ending is not None:
            return _ended(folder, ending)
        carrier = self.carrier(job)
        if carrier is None:
            return Standing("queued" if (folder / SUBMITTED).exists() else "prepared")
        is_alive = process.is_alive(carrier)
        if is_alive is None:
            is_alive = _age(folder / BEAT) < STALE_SECONDS
        if is_alive:
            return Standing("running")
        ending = _document(folder / EXIT)  # written between our two looks
        return _ended(folder, ending) if ending is not None else _gone(folder)

    def carrier(self, job: str) -> process.Process | None:
        """Return the process that carries a job, as it wrote itself down."""
        return process.from_document(_document(self.folder(job) / PROCESS))

    def logs(self, job: str, *, most_bytes: int = 20_000) -> str:
        """Return the end of what a job printed."""
        try:
            with (self.folder(job) / LOG).open("rb") as stream:
                stream.seek(0, 2)
                stream.seek(max(0, stream.tell() - most_bytes))
                return stream.read().decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def open_jobs(self) -> tuple[str, ...]:
        """Return the jobs that are not over."""
        return tuple(job for job in self.known() if not self.standing(job).is_over)

    def mark_cancelled(self, job: str) -> None:
        """Write down that a job is to end, before anybody is told."""
        (self.folder(job) / CANCELLED).touch()


def carrier_argv(folder: Path) -> list[str]:
    """Return the command that an engine runs for a job."""
    return [sys.executable, "-P", "-m", "rlx.launch.carry", str(folder)]


def _document(path: Path) -> Mapping[str, Any] | None:
    try:
        found = files.read_json(path)
    except (FileNotFoundError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _ended(folder: Path, ending: Mapping[str, Any]) -> Standing:
    code = ending.get("code")
    says = str(ending.get("says") or "")
    if (folder / CANCELLED).exists() and code != 0:
        return Standing("cancelled", code, says)
    return Standing("completed" if code == 0 else "failed", code, says)


def _gone(folder: Path) -> Standing:
    if (folder / CANCELLED).exists():
        return Standing("cancelled")
    return Standing("lost", says="its carrier is gone without a word")


def _age(path: Path) -> float:
    import time

    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return float("inf")
