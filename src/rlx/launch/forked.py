"""A process forked from this one, in a session of its own, with what is asked of `subprocess.Popen`."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import IO, NoReturn

from rlx.launch.worker import STOP_SIGNALS


class Forked:
    """The parent's view of it; `stdin` is what it reads from, where that is a pipe."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None

    def poll(self) -> int | None:
        return self._wait(os.WNOHANG)

    def wait(self) -> int | None:
        return self._wait(0)

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _wait(self, how: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, how)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode


def fork(live: Callable[[], int]) -> Forked:
    """Fork a process whose life is this function, which lets STOP_SIGNALS through; the code it returns is its exit."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)  # none may reach our handlers in the child
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return Forked(pid)
    _live(live)


def _live(live: Callable[[], int]) -> NoReturn:
    """Live in the forked child, and end without returning into the parent's code."""
    code = 1
    try:
        os.setsid()
        code = live()
    except BaseException:  # noqa: BLE001  job supervision: the last line of the log says how the process ended
        traceback.print_exc()
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # as an interpreter ends: threads, then exit functions
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def hold_only(stdin: int, output: int) -> None:
    """Read from one file, print into another, and let go of all that the parent had open."""
    for source, target in ((stdin, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    for descriptor in [int(name) for name in os.listdir("/proc/self/fd")]:  # noqa: PTH208
        if descriptor > 2:
            with contextlib.suppress(OSError):  # the listing's own is closed already
                os.close(descriptor)
