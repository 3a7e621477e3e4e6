"""Run jobs on a Slurm cluster: one array task per job, with sbatch scripts of our own.

Arrays are cut by the site's `MaxArraySize`. Memory and GPUs are requested only if the job or `rlx.toml` asks for them.
Slurm warns a job with SIGUSR1 before its time is up: it saves a checkpoint and is queued again. `sacct` is not needed.
Not covered: sites whose compute nodes cannot see the project's folder.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import shlex
import subprocess
import sys
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rlx.errors import JobFailed, UsageError
from rlx.launch.executors.executor import Job, read_document
from rlx.launch.executors.executor_settings import ExecutorSettings
from rlx.launch.executors.scheduler import SENDING, Phase, QueueEntry, Scheduler, SchedulerUnreachable

ARRAYS = "arrays"
SCRIPT = "job.sh"
FOLDERS = "folders"
PREFIX = "rlx-"
COMMAND_SECONDS = 60.0
NO_ANSWER_EXIT = 124
DEFAULT_ARRAY_SIZE = 1001
FORMAT = "%j|%K|%F|%T|%r|%S"
WAITING = (
    "PENDING",
    "REQUEUED",
    "REQUEUE_HOLD",
    "REQUEUE_FED",
    "RESV_DEL_HOLD",
    "SPECIAL_EXIT",
    "SUSPENDED",
    "CONFIGURING",
)
RUNNING = ("RUNNING", "COMPLETING", "STAGE_OUT", "SIGNALING", "RESIZING", "STOPPED")
# Slurm ended these without any fault of the job.
PREEMPTED = ("PREEMPTED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "REVOKED")
MORE_MINUTES = 5.0  # a seed's own limit ends it first, with its reason


class SlurmExecutor(Scheduler):
    """Sends jobs as arrays with sbatch, asks squeue once for all of them, and ends them with scancel."""

    name = "slurm"

    def send(self, jobs: Sequence[Job]) -> None:
        """Send jobs that need the same as one array, cut into arrays that the site accepts."""
        most = self._array_size()
        for _, group in itertools.groupby(sorted(jobs, key=_needs), key=_needs):
            for part in _batches(list(group), most):
                self._send_array(part)

    def _send_array(self, jobs: Sequence[Job]) -> None:
        name = f"{PREFIX}{uuid.uuid4().hex[:16]}"
        array = self.place.absolute() / ARRAYS / name
        array.mkdir(parents=True)
        folders = [self.folder(job.id).absolute() for job in jobs]
        (array / FOLDERS).write_text("".join(f"{folder}\n" for folder in folders))
        (array / SCRIPT).write_text(script(name, array, jobs[0], self.settings))
        for index, folder in enumerate(folders):
            self.note_sending(folder, f"{name}/{index}")
        limit = ""
        if self.settings.array_limit:
            limit = f"%{self.settings.array_limit}"
        argv = ["sbatch", "--parsable", f"--array=0-{len(jobs) - 1}{limit}", str(array / SCRIPT)]
        done = run_command(argv)
        id = array_id(done.stdout)
        if done.returncode or not id:  # it may have been accepted: the name tells
            id = self._id_by_name(name)
        if not id:
            if not _timed_out(done):  # else the order may still arrive
                self.note_refused(folders)
            error = last_line(done.stderr) or f"sbatch exited with {done.returncode}"
            test = shlex.join(["sbatch", "--test-only", str(array / SCRIPT)])
            raise JobFailed(f"Slurm refused the jobs: {error}", hint=test)
        for index, folder in enumerate(folders):
            self.note_submitted(folder, f"{id}_{index}", printed=done.stdout)

    def _id_by_name(self, name: str) -> str:
        """Return the id of an array whose submission failed or gave no answer; empty if Slurm does not have it."""
        for key, entry in self.ask().items():
            if key.startswith(f"{name}/"):
                return entry.id.partition("_")[0]
        return ""

    def ask(self) -> Mapping[str, QueueEntry]:
        """Ask squeue once for all jobs of this user, also those that ended a few minutes ago."""
        argv = ["squeue", "--noheader", "--array", "--states=all", f"--user={os.getuid()}", f"--format={FORMAT}"]
        done = run_command(argv)
        if done.returncode:
            raise SchedulerUnreachable(f"squeue: {last_line(done.stderr) or f'exit code {done.returncode}'}")
        return entries(done.stdout)

    def end(self, ids: Sequence[str]) -> None:
        """End tasks with scancel; their job runners get SIGTERM."""
        done = run_command(["scancel", "--full", *ids])
        if done.returncode and not any(word in done.stderr for word in ("Invalid job id", "already completing")):
            raise SchedulerUnreachable(f"scancel: {last_line(done.stderr)}", hint="run the same command again")

    def last_words(self, job: str) -> str:
        """Return the last line that a task's script printed: a setup line that failed."""
        sending = read_document(self.folder(job) / SENDING) or {}
        array, _, index = str(sending.get("name")).partition("/")
        try:
            printed = (self.place / ARRAYS / array / f"task_{index}.log").read_text(errors="replace")
        except OSError:
            return ""
        line = last_line(printed)
        if not line:
            return ""
        return f": {line}"

    def _array_size(self) -> int:
        """Return how many tasks the site accepts in one array."""
        done = run_command(["scontrol", "show", "config"])
        found = re.search(r"^MaxArraySize\s*=\s*(\d+)", done.stdout, re.MULTILINE)
        if not found:
            return DEFAULT_ARRAY_SIZE
        return max(1, int(found[1]))


def script(name: str, array: Path, job: Job, settings: ExecutorSettings) -> str:
    """Return the sbatch script of an array whose tasks need the same as this job."""
    options = [
        f"--job-name={name}",
        f"--output={array}/task_%a.log",
        "--open-mode=append",
        f"--chdir={array}",
        "--nodes=1",
        "--ntasks=1",
        f"--cpus-per-task={settings.cores or job.cores}",
        "--requeue" if settings.requeue else "--no-requeue",
    ]
    gpus = job.gpus if settings.gpus is None else settings.gpus
    if gpus:
        options.append(f"--gres=gpu:{math.ceil(gpus)}")
    memory_gb = job.memory_gb or settings.memory_gb
    if memory_gb:
        options.append(f"--mem={math.ceil(memory_gb * 1024)}M")
    minutes = settings.minutes or (job.minutes and job.minutes + MORE_MINUTES)
    signal_seconds = settings.signal_seconds
    if minutes:
        options.append(f"--time={math.ceil(minutes)}")
        signal_seconds = min(signal_seconds, math.ceil(minutes * 60 / 4))
    options.append(f"--signal=B:USR1@{signal_seconds}")
    for option in ("partition", "account", "qos"):
        value = getattr(settings, option)
        if value:
            options.append(f"--{option}={value}")
    task = [*settings.container, sys.executable, "-P", "-m", "rlx.launch.executors.slurm_task", str(array)]
    header = "".join(f"#SBATCH {shlex.quote(option)}\n" for option in [*options, *settings.options])
    setup = "".join(f"{line}\n" for line in settings.setup)
    return f"#!/bin/bash\n{header}set -e\n{setup}exec {shlex.join(task)}\n"


def entries(printed: str) -> dict[str, QueueEntry]:
    """Read what squeue printed; a task that was submitted twice is described by its newest job."""
    found: dict[str, QueueEntry] = {}
    for line in sorted(printed.splitlines(), key=_job_number):
        parts = line.strip().split("|")
        if len(parts) == 6 and parts[0].startswith(PREFIX):
            name, index, id, state, reason, start = parts
            found[f"{name}/{index}"] = QueueEntry(f"{id}_{index}", _phase(state), _words(state, reason, start))
    return found


def _job_number(line: str) -> int:
    parts = line.split("|")
    if len(parts) > 2 and parts[2].isdigit():
        return int(parts[2])
    return 0


def _phase(state: str) -> Phase:
    if state in WAITING:
        return "waiting"
    if state in RUNNING:
        return "running"
    if state in PREEMPTED:
        return "preempted"
    if state == "CANCELLED":
        return "cancelled"
    return "ended"


def _words(state: str, reason: str, start: str) -> str:
    """Return the state with its reason, and when Slurm expects to start the job."""
    words = state
    if reason not in ("", "None"):
        words += f" ({reason})"
    if state in WAITING and start not in ("", "N/A", "Unknown"):
        words += f", expected start {start}"
    return words


def array_id(printed: str) -> str:
    """Return the job id in what `sbatch --parsable` printed (`id` or `id;cluster`), also below other lines."""
    for line in reversed(printed.strip().splitlines()):
        id = line.strip().partition(";")[0]
        if id.isdigit():
            return id
    return ""


def run_command(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command of Slurm. Variables of a job that we run in ourselves do not reach it."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith("SLURM_") or key == "SLURM_CONF"
    }
    try:
        return subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False,
            env=environment,
        )  # fmt: skip
    except FileNotFoundError:
        raise UsageError(
            f"executor slurm: no program `{argv[0]}` here", hint="run rlx on a login node, or use --executor local"
        ) from None
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, NO_ANSWER_EXIT, "", f"no answer within {COMMAND_SECONDS:.0f} seconds")


def _timed_out(done: subprocess.CompletedProcess[str]) -> bool:
    """Say whether Slurm gave no answer in time. Then the order may have arrived or not."""
    return done.returncode == NO_ANSWER_EXIT or "timed out" in done.stderr.lower()


def last_line(text: str) -> str:
    """Return the last line of a text that is not empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    return lines[-1][:300]


def _needs(job: Job) -> tuple[float, ...]:
    return (job.cores, job.gpus, job.memory_gb or 0.0, job.minutes or 0.0)


def _batches(jobs: Sequence[Job], size: int) -> Iterable[Sequence[Job]]:
    for first in range(0, len(jobs), size):
        yield jobs[first : first + size]
