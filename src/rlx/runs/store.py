"""The only writer of `runs/`: creates and labels run folders, stores their evaluations, deletes them."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import rlx
from rlx import files
from rlx.errors import Refused, UsageError, WriteFailed
from rlx.runs import project, status, untrusted_rows
from rlx.runs.run import IMPORTED_BACKEND, LABELS, METADATA, SNAPSHOT, SUPERVISOR, Run, Seed, read_labels
from rlx.runs.status import HEARTBEAT_STOPPED, RUNNING

SCHEMA = 1
_UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError)
REFLECTION = "reward_reflection.json"
EVALUATIONS = "eval"
"""The folder of a run's evaluations."""
RANDOM = "random"
"""The name of the random policy's evaluation."""


def create(root: Path, *, name: str, snapshot: str, metadata: dict[str, Any], seeds: Iterable[int]) -> Run:
    """Create a run folder under the next free number; it appears complete or not at all."""
    runs = project.runs_folder(root)
    staging = runs / f".new-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    try:
        staging.mkdir(parents=True)
        for seed in seeds:
            (staging / f"seed_{seed}").mkdir()
        files.write_durable(staging / SNAPSHOT, snapshot.encode())
        if metadata.get("backend") != IMPORTED_BACKEND:  # an import brings a config from elsewhere
            project.mark_made_here(staging)
        run = _publish(staging, runs, name=name, metadata=metadata)
    except OSError as error:
        raise write_error(error, runs) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)  # already renamed if all went well
    _sweep_staging(runs)
    return run


def _publish(staging: Path, runs: Path, *, name: str, metadata: dict[str, Any]) -> Run:
    """Rename the staged folder to the first free `<name>_<NNN>`; a rename onto a taken name fails."""
    number = _last_number(runs, name)
    while True:
        number += 1
        target = runs / f"{name}_{number:03d}"
        identity = {"schema": SCHEMA, "name": target.name, "id": uuid.uuid4().hex}
        identity |= {"created": time.time(), "rlx": rlx.__version__, **metadata}
        files.write_durable(staging / METADATA, files.encode_pretty(identity))
        files.sync_folder(staging)
        try:
            os.rename(staging, target)
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                continue
            raise
        files.sync_folder(runs)
        return Run(runs.parent.resolve() / runs.name / target.name)  # `runs` may be a link to a larger disk


def _last_number(runs: Path, name: str) -> int:
    pattern = re.compile(re.escape(name) + r"_(\d{3,})")
    numbers = [int(match[1]) for entry in os.scandir(runs) if (match := pattern.fullmatch(entry.name))]
    return max(numbers, default=0)


def _sweep_staging(runs: Path) -> None:
    """Remove what processes left behind that were killed a day ago or earlier while they created or deleted runs."""
    for name in os.listdir(runs):  # noqa: PTH208  one system call for thousands of runs
        if name.startswith((".new-", ".gone-")):
            with contextlib.suppress(OSError):
                if time.time() - (runs / name).stat().st_ctime > 86400:
                    shutil.rmtree(runs / name, ignore_errors=True)


def write_error(error: OSError, place: Path) -> WriteFailed:
    """Return an error that explains in one line why writing there fails."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return WriteFailed(f"the disk is full: {place}", hint="free some space, then run the same command again")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return WriteFailed(f"cannot write to {place}: {os.strerror(error.errno)}", hint="rlx doctor")
    return WriteFailed(f"cannot write to {place}: {error.strerror or error}")


def add_seeds(run: Run, seeds: Iterable[int]) -> Run:
    """Add seed folders to a run; a seed that already exists is refused."""
    for seed in seeds:
        try:
            (run.path / f"seed_{seed}").mkdir()
        except FileExistsError:
            raise UsageError(f"{run.name} already has seed {seed}", hint=f"rlx resume {run.name}") from None
    files.sync_folder(run.path)
    return Run(run.path)


def touch(run: Run) -> None:
    """Renew the time of a run's folder after its seeds were written: the index checks only that."""
    with contextlib.suppress(OSError):
        os.utime(run.path)


def label(run: Run, change: Callable[[dict[str, Any]], None]) -> Run:
    """Change tags or note under a lock: concurrent changes are all kept, and readers never see half a file."""
    path = run.path / LABELS
    try:
        with files.locked(path):
            document = read_labels(run.path)
            change(document)
            files.write_json(path, document)
    except OSError as error:
        raise write_error(error, run.path) from error
    return Run(run.path)


def tag(run: Run, *tags: str) -> Run:
    """Add tags to a run."""

    def change(document: dict[str, Any]) -> None:
        document["tags"] = list(dict.fromkeys([*document["tags"], *tags]))

    return label(run, change)


def untag(run: Run, *tags: str) -> Run:
    """Remove tags from a run; one that it does not have is an error."""

    def change(document: dict[str, Any]) -> None:
        absent = [tag for tag in tags if tag not in document["tags"]]
        if absent:
            raise UsageError(f"{run.name} is not tagged `{absent[0]}`", hint=f"rlx info {run.name}")
        document["tags"] = [tag for tag in document["tags"] if tag not in tags]

    return label(run, change)


def note(run: Run, text: str) -> Run:
    """Replace a run's note."""

    def change(document: dict[str, Any]) -> None:
        document["note"] = text

    return label(run, change)


def set_damage_aside(seed: Seed) -> str:
    """Replace an ended seed's damaged files by their sound rows, keep the originals, and return the first damage."""
    first_damage = ""
    for name in (untrusted_rows.EVENTS, untrusted_rows.ATTEMPTS, untrusted_rows.METRICS):
        path = seed.folder / name
        rows = untrusted_rows.read(path)
        if rows.damage:
            first_damage = first_damage or rows.damage
            os.rename(path, path.with_name(f"{name}.damaged-{os.urandom(4).hex()}"))
            files.write_atomic(path, b"".join(files.encode(row) + b"\n" for row in rows.sound))
    return first_damage


def is_training(run: Run, *, notice: Callable[[str], None] | None = None) -> bool:
    """Say whether a run is training: its locks decide, then its processes.

    If a process ran on another host, whose locks and clock may not be visible here, rlx watches for a new heartbeat.
    The age of a heartbeat decides nothing. A run that cannot be read is not training, unless a lock is held.
    """
    if is_held(run) or _is_running(run):
        return True
    try:
        elsewhere = [seed for seed in run.seeds if seed.status.reason == HEARTBEAT_STOPPED]
    except _UNREADABLE:
        return False
    return bool(elsewhere) and _beats(run, elsewhere, notice)


def _is_running(run: Run) -> bool:
    try:
        return run.status == RUNNING
    except _UNREADABLE:
        return False


def is_held(run: Run) -> bool:
    """Say whether a process holds the lock of a run's supervisor or of one of its seeds."""
    return files.is_locked(run.path / SUPERVISOR) or any(seed.is_locked for seed in run.seeds)


def _beats(run: Run, seeds: list[Seed], notice: Callable[[str], None] | None) -> bool:
    """Wait for a new heartbeat of seeds that another host may still train."""
    seconds = 2 * status.HEARTBEAT_SECONDS + 1
    if notice:
        notice(f"{run.name} was trained on another host: watching for a heartbeat for {seconds:.0f} s …")
    before = [seed.heartbeat for seed in seeds]
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(min(0.2, seconds / 10))
        if [seed.heartbeat for seed in seeds] != before:
            return True
    return False


def refuse_training(run: Run, *, notice: Callable[[str], None] | None = None) -> None:
    """Raise `Refused` for a run that is training."""
    if is_training(run, notice=notice):
        raise Refused(f"{run.name} is training", hint=f"stop it first: rlx stop {run.name}")


def delete(run: Run) -> None:
    """Delete a run that is not training. No supervisor can start meanwhile.

    The caller has checked that no other host trains it (`refuse_training`).
    """
    if is_held(run) or _is_running(run):
        raise Refused(f"{run.name} is training", hint=f"stop it first: rlx stop {run.name}")
    doomed = run.path.with_name(f".gone-{run.name}-{uuid.uuid4().hex[:8]}")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(files.locked(run.path / SUPERVISOR, wait=False))
        except BlockingIOError:
            raise Refused(f"{run.name} is training", hint=f"stop it first: rlx stop {run.name}") from None
        except OSError:  # a damaged or read-only folder; renaming it says why it cannot be deleted
            pass
        try:
            os.rename(run.path, doomed)
            shutil.rmtree(doomed)
        except OSError as error:
            raise write_error(error, run.path) from error


def save_evaluation(run_path: Path, fingerprint: str, name: str, document: dict[str, Any]) -> Path:
    """Store an evaluation with every episode, under its protocol's fingerprint."""
    path = run_path / EVALUATIONS / fingerprint / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, {"schema": SCHEMA, **document})
    with contextlib.suppress(OSError):  # read-only inside a sandbox
        os.utime(run_path)  # the index checks the run folder's time only
    return path


def save_reflection(run_path: Path, document: dict[str, Any]) -> Path | None:
    """Store the reflection on a run's reward terms; None if the folder is read-only."""
    return _save_if_writable(run_path / REFLECTION, document)


def save_robustness(run_path: Path, kind: str, name: str, document: dict[str, Any]) -> Path | None:
    """Store a probe or a stress test of a run's policies; None if the folder is read-only."""
    return _save_if_writable(run_path / kind / f"{name}.json", document)


def _save_if_writable(path: Path, document: dict[str, Any]) -> Path | None:
    try:
        path.parent.mkdir(exist_ok=True)
        files.write_json(path, {"schema": SCHEMA, **document})
    except OSError:
        return None
    return path


def save_trajectories(path: Path, content: bytes) -> None:
    """Store the trajectories of an evaluation next to it."""
    try:
        files.write_atomic(path, content)
    except OSError as error:
        raise write_error(error, path.parent) from error
