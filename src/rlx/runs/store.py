"""The only writer of `runs/`: creates run folders, labels them, keeps their evaluations, deletes them."""

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
from rlx.errors import Refused, RlxError, UsageError
from rlx.runs import project, written
from rlx.runs.run import LABELS, METADATA, SNAPSHOT, Run, Seed, read_labels
from rlx.runs.status import RUNNING

SCHEMA = 1
REFLECTION = "reward_reflection.json"
EVALUATIONS, RANDOM = "eval", "random"
"""The folder of a run's evaluations, and the name of the random policy's among them."""


def create(root: Path, *, name: str, snapshot: str, metadata: dict[str, Any], seeds: Iterable[int]) -> Run:
    """Create a run folder under the next free number; it appears whole or not at all."""
    runs = project.runs_folder(root)
    staging = runs / f".new-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    try:
        staging.mkdir(parents=True)
        for seed in seeds:
            (staging / f"seed_{seed}").mkdir()
        files.write_durable(staging / SNAPSHOT, snapshot.encode())
        run = _publish(staging, runs, name=name, metadata=metadata)
    except OSError as error:
        shutil.rmtree(staging, ignore_errors=True)
        raise write_error(error, runs) from error
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    _sweep_staging(runs)
    return run


def _publish(staging: Path, runs: Path, *, name: str, metadata: dict[str, Any]) -> Run:
    """Rename the staged folder to the first free `<name>_<NNN>`: rename onto a taken name fails, so two never share."""
    number = _last_number(runs, name)
    while True:
        number += 1
        target = runs / f"{name}_{number:03d}"
        identity = {"schema": SCHEMA, "name": target.name, "id": uuid.uuid4().hex, "created": time.time(),
                    "rlx": rlx.__version__, **metadata}  # fmt: skip
        files.write_durable(staging / METADATA, files.encode_pretty(identity))
        files.sync_folder(staging)
        try:
            os.rename(staging, target)
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                continue
            raise
        files.sync_folder(runs)
        return Run(target.resolve())


def _last_number(runs: Path, name: str) -> int:
    pattern = re.compile(re.escape(name) + r"_(\d{3,})")
    numbers = [int(match[1]) for entry in os.scandir(runs) if (match := pattern.fullmatch(entry.name))]
    return max(numbers, default=0)


def _sweep_staging(runs: Path) -> None:
    """Remove what creating or deleting processes that were killed a day ago or longer left behind."""
    for name in os.listdir(runs):  # noqa: PTH208  one system call for thousands of runs
        if name.startswith((".new-", ".gone-")):
            with contextlib.suppress(OSError):
                if time.time() - (runs / name).stat().st_ctime > 86400:
                    shutil.rmtree(runs / name, ignore_errors=True)


def write_error(error: OSError, place: Path) -> RlxError:
    """Say in one line why nothing can be written there."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RlxError(f"the disk is full: {place}", hint="free some space, then run the same command again")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return RlxError(f"cannot write to {place}: {os.strerror(error.errno)}", hint="rlx doctor")
    return RlxError(f"cannot write to {place}: {error.strerror or error}")


def add_seeds(run: Run, seeds: Iterable[int]) -> Run:
    """Add seed folders to a run; a seed that is there already is refused."""
    for seed in seeds:
        try:
            (run.path / f"seed_{seed}").mkdir()
        except FileExistsError:
            raise UsageError(f"{run.name} already has seed {seed}", hint=f"rlx resume {run.name}") from None
    files.sync_folder(run.path)
    return Run(run.path)


def label(run: Run, change: Callable[[dict[str, Any]], None]) -> Run:
    """Change tags or note under a lock; concurrent changes are all kept, readers never see half a file."""
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
    """Keep the sound rows of an ended seed's damaged files, and those files beside them; say what was damaged."""
    said = ""
    for name in (written.EVENTS, written.ATTEMPTS, written.METRICS):
        path = seed.folder / name
        found = written.read(path)
        if found.damage:
            said = said or found.damage
            os.rename(path, path.with_name(f"{name}.damaged-{os.urandom(4).hex()}"))
            files.write_atomic(path, b"".join(files.encode(row) + b"\n" for row in found.sound))
    return said


def refuse_running(run: Run) -> None:
    """Raise `Refused` for a run that is training; one that cannot be read is not."""
    try:
        is_running = run.status == RUNNING
    except (ValueError, LookupError, TypeError, AttributeError):
        return
    if is_running:
        raise Refused(f"{run.name} is training", hint=f"stop it first: rlx stop {run.name}")


def delete(run: Run) -> None:
    """Delete a run that is not training."""
    refuse_running(run)
    doomed = run.path.with_name(f".gone-{run.name}-{uuid.uuid4().hex[:8]}")
    try:
        os.rename(run.path, doomed)
        shutil.rmtree(doomed)
    except OSError as error:
        raise write_error(error, run.path) from error


def save_evaluation(run_path: Path, fingerprint: str, name: str, document: dict[str, Any]) -> Path:
    """Keep an evaluation (every episode) under its protocol's fingerprint."""
    path = run_path / EVALUATIONS / fingerprint / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, {"schema": SCHEMA, **document})
    with contextlib.suppress(OSError):  # the index looks at the run folder's time only; in a box it stays as it is
        os.utime(run_path)
    return path


def save_reflection(run_path: Path, document: dict[str, Any]) -> Path | None:
    """Keep what was made of a run's reward terms; None where the folder cannot be written to."""
    path = run_path / REFLECTION
    try:
        files.write_json(path, {"schema": SCHEMA, **document})
    except OSError:
        return None
    return path


def save_robustness(run_path: Path, kind: str, name: str, document: dict[str, Any]) -> Path | None:
    """Keep a probe or a stress test of a run's policies; None where the folder cannot be written to."""
    path = run_path / kind / f"{name}.json"
    try:
        path.parent.mkdir(exist_ok=True)
        files.write_json(path, {"schema": SCHEMA, **document})
    except OSError:
        return None
    return path


def save_trajectories(path: Path, content: bytes) -> None:
    """Keep the trajectories of an evaluation beside it."""
    try:
        files.write_atomic(path, content)
    except OSError as error:
        raise write_error(error, path.parent) from error
