"""How a seed's process is started: forked from a supervisor that has the imports behind it, or as a fresh interpreter.

Ten short seeds would otherwise import NumPy, Gymnasium and the config schema ten times (0.4 s each).
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from rlx.launch import worker
from rlx.launch.resources import inherited

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


class Forked:
    """A forked worker, with what a supervisor asks of `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)


Worker = Forked | subprocess.Popen[bytes]


def warm() -> None:
    """Import what workers need, so that those forked from here need not."""
    from rlx.runs import provenance

    for name in WARM:
        importlib.import_module(name)
    provenance.versions()  # which it looks up once


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
    before = signal.pthread_sigmask(signal.SIG_BLOCK, worker.STOP_SIGNALS)  # none may reach our handlers in the child
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return Forked(pid)
    _work(argv, place)


def _work(argv: list[str], place: Place) -> NoReturn:
    """Live as a worker in the forked child, and end without returning into the supervisor's code."""
    code = 1
    try:
        os.setsid()
        _settle_in(argv, place)
        code = worker.main(argv)
    except BaseException:  # noqa: BLE001  job supervision: the last line of the log says how the worker ended
        traceback.print_exc()
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # as an interpreter ends: threads, then exit functions
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _settle_in(argv: list[str], place: Place) -> None:
    """Put on what a fresh process would have: log, folder, environment, randomness; no lease of ours."""
    log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    for descriptor in [int(name) for name in os.listdir("/proc/self/fd")]:  # noqa: PTH208
        if descriptor > 2:
            with contextlib.suppress(OSError):  # the listing's own is closed already
                os.close(descriptor)
    os.chdir(place.folder)
    os.environ.clear()
    os.environ.update(place.environment)
    sys.argv = [str(worker.__file__), *argv]
    sys.modules["numpy"].random.seed()  # Python's own generator does this by itself
