"""The carrier of one job, whatever engine runs it: starts it once, passes signals on, writes down how it ended.

It runs as `python -P -m rlx.launch.carry FOLDER`. The job dies with it; one that is being carried or was carried is
not carried again.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from rlx import files
from rlx.errors import JobFailed
from rlx.launch.executor import BEAT, CANCELLED, EXIT, JOB, LOG, PROCESS
from rlx.runs import process

DETACH = "--detach"
GRACE_SECONDS = 45.0
BEAT_SECONDS = 5.0
POLL_SECONDS = 0.05
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> int:
    """Carry the job whose folder is `argv[0]`; its exit code is ours. With `--detach` nobody waits for us."""
    if DETACH in argv:
        if os.fork():
            return 0
        os.setsid()
    return carry(Path(argv[0]), catches_signals=True)


def carry(folder: Path, *, catches_signals: bool) -> int:
    """Carry a job to its end, unless somebody does or did."""
    with contextlib.ExitStack() as lease:
        try:
            lease.enter_context(files.locked(folder / "carrier", wait=False))
        except BlockingIOError:
            return 0
        if (folder / EXIT).exists():
            return 0
        if (folder / CANCELLED).exists():
            _end(folder, None, "cancelled before it began")
            return 0
        files.write_json(folder / PROCESS, {"schema": 1, **process.current().document()})
        with (folder / LOG).open("ab") as log:
            return _carry(folder, files.read_json(folder / JOB), log, catches_signals=catches_signals)


def _carry(folder: Path, job: dict[str, Any], log: IO[bytes], *, catches_signals: bool) -> int:
    carrier = _Carrier()
    if catches_signals:
        carrier.listen()
    try:
        child = subprocess.Popen(
            job["argv"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **job["env"]},
            cwd=job["folder"], start_new_session=True, preexec_fn=_die_with(os.getpid()),
        )  # fmt: skip
    except OSError as error:
        log.write(f"{job['argv'][0]}: {error.strerror}\n".encode())
        _end(folder, 127, f"{job['argv'][0]} cannot be started: {error.strerror}")
        return 127
    try:
        carrier.accompany(child, folder)
    except BaseException:
        _kill_group(child.pid)
        child.wait()
        _end(folder, child.returncode, "its carrier was interrupted")
        raise
    _kill_group(child.pid)  # whatever it left behind
    code = child.returncode
    _end(folder, code, f"killed by {signal.Signals(-code).name}" if code < 0 else "")
    return code if code >= 0 else 128 - code


class _Carrier:
    """Passes signals on to the job; after a request to end it waits, then kills."""

    def __init__(self) -> None:
        self._early: list[int] = []
        self._child: subprocess.Popen[bytes] | None = None
        self._kill_at = float("inf")

    def listen(self) -> None:
        for number in FORWARDED:
            signal.signal(number, self._forward)

    def _forward(self, number: int, _frame: object) -> None:
        if number == signal.SIGHUP:  # a terminal that is closed, as tmux does, asks the job to end
            number = signal.SIGTERM
        if number in (signal.SIGTERM, signal.SIGINT):
            self._kill_at = min(self._kill_at, time.monotonic() + GRACE_SECONDS)
        if self._child is None:
            self._early.append(number)
        else:
            with contextlib.suppress(ProcessLookupError):
                self._child.send_signal(number)

    def accompany(self, child: subprocess.Popen[bytes], folder: Path) -> None:
        """Wait for the job's end and leave signs of life."""
        self._child = child
        for number in self._early:
            child.send_signal(number)
        beat_at = 0.0
        while child.poll() is None:
            now = time.monotonic()
            if now >= beat_at:
                beat_at = now + BEAT_SECONDS
                with contextlib.suppress(OSError):
                    (folder / BEAT).touch()
            if now >= self._kill_at:
                _kill_group(child.pid)
            time.sleep(POLL_SECONDS)


def _die_with(parent: int) -> Callable[[], None]:
    """Return what makes a new process end with us; called between fork and exec, where we have one thread."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None

    def set_signal() -> None:
        if library is not None:
            library.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    return set_signal


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _end(folder: Path, code: int | None, says: str) -> None:
    try:
        files.write_json(folder / EXIT, {"schema": 1, "code": code, "says": says, "time": time.time()})
    except OSError as error:
        raise JobFailed(f"how {folder.name} ended cannot be written: {error.strerror}") from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
