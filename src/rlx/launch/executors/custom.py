"""Run jobs through a scheduler's own commands: sbatch, tmux, torchrun, kubectl, or a script of yours.

Templates can use these names in braces: `{command}` (the job runner's command; as a separate argument it expands to
several words, inside another argument it is one quoted string), `{script}` (a file that runs it), `{name}` (see
`engine_name`), `{log}`, `{out}`, `{cores}`, `{gpus}`, `{memory_gb}`, `{minutes}`. The templates for poll and cancel
can use `{id}`: the last word that submit printed, or `{name}` if it printed nothing.
`poll` exits with 0 while the scheduler knows the job, and may print the job's state.
Not covered: schedulers that give wrong answers. rlx trusts the job's folder more than the scheduler.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlx import files
from rlx.errors import JobFailed, UsageError
from rlx.launch.executors.executor import LOG, Executor, Job, JobStatus, runner_argv
from rlx.runs.job_folder import CANCELLED, SUBMITTED

COMMAND = "{command}"
SCRIPT = "job.sh"
SECONDS = 60.0
LONGEST_STEM = 54
HASH_DIGITS = 8
# What schedulers call jobs that have ended.
FINAL_STATES = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL",
                "DEADLINE")  # fmt: skip
# Words in the error of a scheduler that cannot be reached; such an error says nothing about the job.
UNREACHABLE = ("contact", "connect", "timed out", "no answer", "refused", "unavailable")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


class CustomExecutor(Executor):
    """Submits, polls and cancels with templates. The scheduler runs the job runner."""

    name = "custom"

    def __init__(self, place: Path, **settings: Any) -> None:
        super().__init__(place, **settings)
        if not settings.get("submit"):
            raise UsageError("the custom executor has no `submit`", hint="launcher: {executor: custom, submit: [...]}")
        self._submit = tuple(settings["submit"])
        self._poll = tuple(settings.get("poll", ()))
        self._cancel = tuple(settings.get("cancel", ()))

    def submit(self, job: Job) -> str:
        """Submit a job to the scheduler, unless it was submitted or has started."""
        folder = self.prepare(job)
        with files.locked(folder / "submit"):
            if self.status(job.id).state != "prepared":
                return job.id
            command = runner_argv(folder)
            (folder / SCRIPT).write_text(f"#!/bin/sh\nexec {shlex.join(command)}\n")
            (folder / SCRIPT).chmod(0o755)
            template = self._submit
            if not job.memory_gb:  # a limit that nobody asked for would kill the job
                template = tuple(word for word in template if "{memory_gb}" not in word)
            argv = expand(template, _values(job, folder), command)
            done = _run(argv)
            if done.returncode:
                error = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
                raise JobFailed(
                    f"submit of {job.id} failed: {error}", hint=f"the command was: {shlex.join(argv)[:300]}"
                )
            last_line = (done.stdout.strip().splitlines() or [""])[-1]
            engine_id = (last_line.split() or [engine_name(folder)])[-1]
            files.write_json(folder / SUBMITTED, {"schema": 1, "id": engine_id, "printed": done.stdout[:2000]})
        return job.id

    def poll(self, job: str) -> JobStatus:
        """Return the status of a job; ask the scheduler if the folder does not show that it runs or has ended."""
        status = self.status(job)
        if status.state not in ("queued", "lost") or not self._poll:
            return status
        done = _run(expand(self._poll, self._names(job), []))
        is_queued = status.state == "queued"
        if done.returncode and any(word in done.stderr.lower() for word in UNREACHABLE):
            return JobStatus("queued" if is_queued else "running", says=done.stderr.strip()[:200])
        state = final_state(done.stdout)
        if done.returncode == 0 and state is None:
            return JobStatus("queued" if is_queued else "running", says=done.stdout.strip()[:200])
        status = self.status(job)  # it may have ended while we asked
        if status.is_over and status.state != "lost":
            return status
        if (self.folder(job) / CANCELLED).exists():
            return JobStatus("cancelled", says=state or "")
        answer = f"says {state}" if state else "no longer knows it"
        return JobStatus("lost", says=f"the scheduler {answer}")

    def cancel(self, job: str) -> None:
        """Ask the scheduler to end a job."""
        if self.status(job).is_over:
            return
        self.mark_cancelled(job)
        if self._cancel:
            _run(expand(self._cancel, self._names(job), []))

    def _names(self, job: str) -> Mapping[str, str]:
        folder = self.folder(job)
        name = engine_name(folder)
        try:
            engine_id = str(files.read_json(folder / SUBMITTED)["id"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            engine_id = name
        return {"id": engine_id, "name": name}


def engine_name(folder: Path) -> str:
    """Return a job name that every scheduler accepts: lower case letters, digits and dashes, at most 63 characters.

    tmux refuses dots, Kubernetes refuses underscores. The name ends with a hash of the folder's path, so that no two
    jobs have the same name.
    """
    stem = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")
    return f"{stem[:LONGEST_STEM].rstrip('-')}-{files.sha256(str(folder).encode())[:HASH_DIGITS]}"


def final_state(printed: str) -> str | None:
    """Return the final state that a scheduler printed, alone or as `JobState=FAILED`; None if it printed none."""
    for token in printed.split():
        name, _, value = token.rpartition("=")
        word = value.strip("\"',;:.").upper()
        if word in FINAL_STATES and (not name or name.lower().endswith("state")):
            return word
    return None


def expand(template: Sequence[str], values: Mapping[str, str], command: Sequence[str]) -> list[str]:
    """Return a template's arguments; `{command}` as a separate argument expands to the command's words."""
    known = {**values, "command": shlex.join(command)}
    argv: list[str] = []
    for word in template:
        if word == COMMAND and command:
            argv += command
        else:
            argv.append(_PLACEHOLDER.sub(lambda match: known.get(match[1], match[0]), word))
    return argv


def _values(job: Job, folder: Path) -> Mapping[str, str]:
    return {
        "name": engine_name(folder),
        "log": str(folder / LOG),
        "out": str(job.folder),
        "script": str(folder / SCRIPT),
        "cores": str(job.cores),
        "gpus": f"{job.gpus:g}",
        "memory_gb": f"{job.memory_gb or 0:g}",
        "minutes": f"{job.minutes or 0:.0f}",
    }


def _run(argv: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except FileNotFoundError:
        raise UsageError(f"no program `{argv[0]}`", hint="is the scheduler installed here?") from None
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, 124, "", f"no answer within {SECONDS:.0f} seconds")
