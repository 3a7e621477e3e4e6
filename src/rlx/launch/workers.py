"""How a seed's process is started: forked from a supervisor that has the imports behind it, or as a fresh interpreter.

Ten short seeds would otherwise import NumPy, Gymnasium and the config schema ten times (0.4 s each).
"""

from __future__ import annotations

import gc
import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx.launch import worker
from rlx.launch.forked import Forked, fork, hold_only
from rlx.launch.interpreter import inherited

WARM = (
    "numpy.ma",  # which a median imports
    "rlx.config.load",
    "rlx.envs.state",
    "rlx.envs.vector",
    "rlx.evaluate.rollout",
    "rlx.runs.checkpoint",
    "rlx.runs.live",
    "rlx.train.backends.fast_loop",
    "rlx.train.session",
    "rlx.train.trainer",
)
"""What workers import: nothing of the project's own, nothing that starts threads or touches a GPU."""


@dataclass(frozen=True)
class Place:
    """Where a worker lives: its environment variables, its folder and the file that takes what it prints."""

    environment: Mapping[str, str]
    folder: Path
    log: Path


Worker = Forked | subprocess.Popen[bytes]


def warm() -> None:
    """Import what workers need, so that those forked from here need not."""
    from rlx.runs import provenance

    gc.disable()  # nothing of it is garbage
    for name in WARM:
        importlib.import_module(name)
    provenance.versions()  # which it looks up once
    gc.freeze()  # workers neither look through it nor copy its memory
    gc.enable()


def can_fork(config: Mapping[str, Any]) -> bool:
    """Say whether a fork of this process computes as a fresh worker would: its threads and hashes were set at start.

    On macOS a process that has loaded NumPy's libraries must not fork.
    """
    return sys.platform == "linux" and threading.active_count() == 1 and inherited(config)


def start(argv: list[str], place: Place, *, is_forked: bool) -> Worker:
    """Start the worker `argv` (run folder and seed) in a session of its own."""
    return _fork(argv, place) if is_forked else _spawn(argv, place)


def _spawn(argv: list[str], place: Place) -> Worker:
    with place.log.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", worker.__name__, *argv],  # -P: its project is imported only once it is held
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=dict(place.environment),
            cwd=place.folder,
            start_new_session=True,
        )


def _fork(argv: list[str], place: Place) -> Worker:
    def live() -> int:
        _settle_in(argv, place)
        return worker.main(argv)

    return fork(live)


def _settle_in(argv: list[str], place: Place) -> None:
    """Put on what a fresh process would have: log, folder, environment, randomness; no lease of ours."""
    log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    hold_only(os.open(os.devnull, os.O_RDONLY), log)
    os.chdir(place.folder)
    os.environ.clear()
    os.environ.update(place.environment)
    sys.argv = [str(worker.__file__), *argv]
    sys.modules["numpy"].random.seed()  # Python's own generator does this by itself
