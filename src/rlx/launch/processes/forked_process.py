"""A process forked from this one, in its own session, with the interface of `subprocess.Popen`."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import IO

from rlx.launch.worker import STOP_SIGNALS


class ForkedProcess:
    """The parent's view of the process; `stdin` is the pipe that it reads from, if there is one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None

    def poll(self) -> int | None:
        return self.wait(os.WNOHANG)

    def wait(self, options: int = 0) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def fork(body: Callable[[], int]) -> ForkedProcess:
    """Fork a process that runs `body` and exits with the code it returns.

    STOP_SIGNALS are blocked in the child, so that none reaches the parent's handlers there; `body` unblocks them.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return ForkedProcess(pid)
    code = 1
    try:
        os.setsid()
        code = body()
    except BaseException:  # noqa: BLE001  job supervision: the last line of the log tells how the process ended
        traceback.print_exc()
    try:  # end as an interpreter does, but never return into the parent's code: threads, then exit functions
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def keep_only(stdin: int, output: int) -> None:
    """Use `stdin` and `output` as the standard streams, and close every other file that the parent had open."""
    for source, target in ((stdin, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    for descriptor in [int(name) for name in os.listdir("/proc/self/fd")]:  # noqa: PTH208
        if descriptor > 2:
            with contextlib.suppress(OSError):  # the listing's own descriptor is already closed
                os.close(descriptor)
