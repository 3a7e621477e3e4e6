"""The process that runs one job, whichever executor started it: start it once, forward signals, record how it ended.

It runs as `python -P -m rlx.launch.executors.job_runner FOLDER`. If it dies, the job dies with it. A job that is
running or has ended is not run again. A job that can resume is asked to pause when a scheduler interrupts it: then it
has no end, and the next job runner continues it.
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
from rlx.launch.executors.executor import BEAT, JOB, JOB_VARIABLE, LOG, PAUSED, PAUSED_EXIT
from rlx.runs import process
from rlx.runs.job_folder import CANCELLED, EXIT, FORGOTTEN, PROCESS
from rlx.sandbox.process_tree import kill_group

DETACH = "--detach"
GRACE_SECONDS = 45.0
BEAT_SECONDS = 5.0
POLL_SECONDS = 0.05
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> int:
    """Run the job in the folder `argv[0]` and return its exit code. `--detach` leaves the caller's session first."""
    if DETACH in argv:
        if os.fork():
            return 0
        os.setsid()
    return run_to_end(Path(argv[0]), catches_signals=True)


def run_to_end(folder: Path, *, catches_signals: bool) -> int:
    """Run a job until it ends, unless another process runs it or has run it."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(files.locked(folder / "carrier", wait=False))
        except BlockingIOError:
            return 0
        if (folder / EXIT).exists():
            return 0
        if (folder / CANCELLED).exists():
            _record_end(folder, None, "cancelled before it started")
            return 0
        for name in (PAUSED, FORGOTTEN):
            (folder / name).unlink(missing_ok=True)
        files.write_json(folder / PROCESS, {"schema": 1, **process.current().document()})
        with (folder / LOG).open("ab") as log:
            return _run(folder, files.read_json(folder / JOB), log, catches_signals=catches_signals)


def _run(folder: Path, job: dict[str, Any], log: IO[bytes], *, catches_signals: bool) -> int:
    runner = _Runner(folder, resumes=bool(job.get("resumes")))
    if catches_signals:
        for number in FORWARDED:
            signal.signal(number, runner.forward)
    environment = {**os.environ, **job["env"], JOB_VARIABLE: str(folder.absolute())}
    try:
        child = subprocess.Popen(
            job["argv"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
            cwd=job["folder"], start_new_session=True, preexec_fn=die_with(os.getpid()),
        )  # fmt: skip
    except OSError as error:
        log.write(f"{job['argv'][0]}: {error.strerror}\n".encode())
        _record_end(folder, 127, f"{job['argv'][0]} cannot be started: {error.strerror}")
        return 127
    is_over = False
    try:
        runner.wait(child)
        is_over = True
    finally:
        kill_group(child.pid)  # processes that the job left behind
        if not is_over:
            child.wait()
            _record_end(folder, child.returncode, "its job runner was interrupted")
    code = child.returncode
    if runner.pause_signal and (code == PAUSED_EXIT or code < 0) and not (folder / CANCELLED).exists():
        _record_pause(folder, runner.pause_signal)
        return PAUSED_EXIT
    if code >= 0:
        _record_end(folder, code, "")
        return code
    _record_end(folder, code, f"killed by {signal.Signals(-code).name}")
    return 128 - code


class _Runner:
    """Forwards signals to the job. After a request to end, it waits, then kills the job."""

    def __init__(self, folder: Path, *, resumes: bool) -> None:
        self._folder = folder
        self._resumes = resumes
        self.pause_signal = ""
        self._early: list[int] = []
        self._child: subprocess.Popen[bytes] | None = None
        self._kill_at = float("inf")

    def forward(self, number: int, _frame: object) -> None:
        if number == signal.SIGHUP:  # tmux closes its terminal to end a job
            number = signal.SIGTERM
        if self._resumes and not (self._folder / CANCELLED).exists():
            self.pause_signal = self.pause_signal or signal.Signals(number).name
            self._kill_at = min(self._kill_at, time.monotonic() + GRACE_SECONDS)
            number = signal.SIGUSR1
        if number in (signal.SIGTERM, signal.SIGINT):
            self._kill_at = min(self._kill_at, time.monotonic() + GRACE_SECONDS)
        if self._child is None:
            self._early.append(number)
        else:
            with contextlib.suppress(ProcessLookupError):
                self._child.send_signal(number)

    def wait(self, child: subprocess.Popen[bytes]) -> None:
        """Wait until the job ends, and touch the beat file so that other machines see that it runs."""
        self._child = child
        for number in self._early:
            child.send_signal(number)
        beat_at = 0.0
        while child.poll() is None:
            now = time.monotonic()
            if now >= beat_at:
                beat_at = now + BEAT_SECONDS
                with contextlib.suppress(OSError):
                    (self._folder / BEAT).touch()
            if now >= self._kill_at:
                kill_group(child.pid)
            time.sleep(POLL_SECONDS)


def die_with(parent: int) -> Callable[[], None]:
    """Return the function that makes a new process end with us; it runs between fork and exec, in one thread."""
    libc = ctypes.CDLL(None)

    def set_signal() -> None:
        if sys.platform == "linux":
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(1)

    return set_signal


def _record_pause(folder: Path, signal_name: str) -> None:
    """Write that a job saved its work and waits for its next job runner."""
    files.write_json(folder / PAUSED, {"schema": 1, "signal": signal_name, "time": time.time()})
    (folder / PROCESS).unlink(missing_ok=True)


def _record_end(folder: Path, code: int | None, says: str) -> None:
    try:
        files.write_json(folder / EXIT, {"schema": 1, "code": code, "says": says, "time": time.time()})
    except OSError as error:
        raise JobFailed(f"cannot write how {folder.name} ended: {error.strerror}") from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
