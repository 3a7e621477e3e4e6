"""Jobs carried by a scheduler's own commands: sbatch, tmux, torchrun, kubectl, or a script of the house.

Templates name in braces: `{command}` (the carrier's command: its words where it is an argument of its own, one quoted
text inside another), `{script}` (a file that runs it), `{name}` (see `engine_name`), `{log}`, `{out}`, `{cores}`,
`{gpus}`, `{memory_gb}`, `{minutes}`, and for poll and cancel `{id}`: the last word that submit printed, else `{name}`.
`poll` ends with 0 while the engine knows the job, and may print its state.
What is not covered: engines that answer wrongly; the job's folder is believed before them.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from rlx import files
from rlx.errors import JobFailed, UsageError
from rlx.launch.executor import LOG, SUBMITTED, Desk, Job, Standing, carrier_argv

COMMAND = "{command}"
SCRIPT = "job.sh"
SECONDS = 60.0
LONGEST_STEM, MARK = 54, 8
OVER = (
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "TIMEOUT",
    "OUT_OF_MEMORY",
    "NODE_FAIL",
    "PREEMPTED",
    "BOOT_FAIL",
    "DEADLINE",
)
"""What schedulers call jobs that they only remember."""
UNREACHABLE = ("contact", "connect", "timed out", "no answer", "refused", "unavailable")
"""Words of an engine that cannot be reached: it says nothing about the job."""
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


class CustomExecutor:
    """Submits, polls and cancels by templates; the carrier is what is submitted, and the job's folder is the truth."""

    name = "custom"

    def __init__(
        self, place: Path, *, submit: Sequence[str] = (), poll: Sequence[str] = (), cancel: Sequence[str] = ()
    ) -> None:
        if not submit:
            raise UsageError("the custom executor has no `submit`", hint="launcher: {executor: custom, submit: [...]}")
        self._desk = Desk(place)
        self._submit, self._poll, self._cancel = tuple(submit), tuple(poll), tuple(cancel)

    def submit(self, job: Job) -> str:
        """Hand a job to the scheduler; one that it was handed already, or that has begun, is not handed over again."""
        folder = self._desk.prepare(job)
        with files.locked(folder / "submit"):
            if self._desk.standing(job.id).state != "prepared":
                return job.id
            command = carrier_argv(folder)
            (folder / SCRIPT).write_text(f"#!/bin/sh\nexec {shlex.join(command)}\n")
            (folder / SCRIPT).chmod(0o755)
            printed = _run(words(self._submit, _places(job, folder), command), "submit", job.id)
            last = printed.strip().splitlines()[-1:] or [""]
            engine = (last[0].split() or [engine_name(folder)])[-1]
            files.write_json(folder / SUBMITTED, {"schema": 1, "id": engine, "printed": printed[:2000]})
        return job.id

    def poll(self, job: str) -> Standing:
        """Return how a job stands; the scheduler is asked where the folder does not tell that it runs or ended."""
        standing = self._desk.standing(job)
        if standing.state not in ("queued", "lost") or not self._poll:
            return standing
        done = _try(words(self._poll, self._engine(job), []))
        if done.returncode and any(word in done.stderr.lower() for word in UNREACHABLE):
            return Standing("queued" if standing.state == "queued" else "running", says=done.stderr.strip()[:200])
        state = final_state(done.stdout)
        if done.returncode == 0 and state is None:
            return Standing("running" if standing.state == "lost" else "queued", says=done.stdout.strip()[:200])
        again = self._desk.standing(job)  # it may have ended between the two questions
        if again.is_over and again.state != "lost":
            return again
        if (self._desk.folder(job) / "cancelled").exists():
            return Standing("cancelled", says=state or "")
        return Standing("lost", says=f"the scheduler {f'says {state}' if state else 'does not know it any more'}")

    def cancel(self, job: str) -> None:
        """Have the scheduler end a job."""
        if self._desk.standing(job).is_over:
            return
        self._desk.mark_cancelled(job)
        if self._cancel:
            _try(words(self._cancel, self._engine(job), []))

    def logs(self, job: str) -> str:
        """Return the end of what a job printed, or what the scheduler said of it."""
        return self._desk.logs(job)

    def recover(self) -> tuple[str, ...]:
        """Return the jobs that are not over; those that were never handed over are `prepared`."""
        return self._desk.open_jobs()

    def _engine(self, job: str) -> Mapping[str, str]:
        folder = self._desk.folder(job)
        name = engine_name(folder)
        try:
            engine = str(files.read_json(folder / SUBMITTED)["id"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            engine = name
        return {"id": engine, "name": name}


def engine_name(folder: Path) -> str:
    """Return what a job is called where engines are particular: small letters, digits and dashes, at most 63 of them.

    tmux takes no dots, Kubernetes no underscores; the end is of the folder's path, so that no two jobs share a name.
    """
    stem = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")
    return f"{stem[:LONGEST_STEM].rstrip('-')}-{files.sha256(str(folder).encode())[:MARK]}"


def final_state(printed: str) -> str | None:
    """Return the final state that a scheduler printed, alone or as `JobState=FAILED`; None where it printed none."""
    for token in printed.split():
        name, _, value = token.rpartition("=")
        word = value.strip("\"',;:.").upper()
        if word in OVER and (not name or name.lower().endswith("state")):
            return word
    return None


def words(template: Sequence[str], places: Mapping[str, str], command: Sequence[str]) -> list[str]:
    """Return a template's arguments; `{command}` alone becomes the command's own."""
    known = {**places, "command": shlex.join(command)}
    found: list[str] = []
    for word in template:
        if word == COMMAND and command:
            found += command
        else:
            found.append(_PLACEHOLDER.sub(lambda match: known.get(match[1], match[0]), word))
    return found


def _places(job: Job, folder: Path) -> Mapping[str, str]:
    return {
        "name": engine_name(folder),
        "log": str(folder / LOG),
        "out": str(job.folder),
        "script": str(folder / SCRIPT),
        "cores": str(job.cores),
        "gpus": f"{job.gpus:g}",
        "memory_gb": f"{job.memory_gb or 1:g}",
        "minutes": f"{job.minutes or 0:.0f}",
    }


def _run(argv: list[str], what: str, job: str) -> str:
    done = _try(argv)
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        said = lines[-1] if lines else f"exit code {done.returncode}"
        raise JobFailed(f"{what} of {job} failed: {said}", hint=f"the command was: {shlex.join(argv)[:300]}")
    return done.stdout


def _try(argv: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except FileNotFoundError:
        raise UsageError(f"no program `{argv[0]}`", hint="is the scheduler installed here?") from None
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, 124, "", f"no answer within {SECONDS:.0f} seconds")
