"""Measure the cost of a command: wall time, and CPU seconds of everything it starts, also of detached processes."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
              "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}  # fmt: skip
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Command:
    """A command, its folder, and its additional environment variables."""

    argv: Sequence[str | Path]
    cwd: Path
    env: Mapping[str, str]

    def run(self) -> None:
        """Run it; a failing command ends the benchmark with its output."""
        environment = {**os.environ, **ONE_THREAD, **self.env}
        done = subprocess.run(
            self.argv, cwd=self.cwd, env=environment, capture_output=True, stdin=subprocess.DEVNULL, check=False
        )
        if done.returncode:
            words = (done.stdout + done.stderr).decode(errors="replace")[-2000:]
            raise SystemExit(f"{self.argv} ended with {done.returncode}:\n{words}")


@dataclass(frozen=True)
class Cost:
    """Seconds of wall time and of CPU."""

    wall: float
    cpu: float


def cost(commands: Sequence[Command], *, at_once: int = 1) -> Cost:
    """Run commands, so many at once, and return their cost, including detached processes."""
    if sys.platform == "linux":  # what outlives its parent becomes ours, and is waited for
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    before, start = _cpu(), time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(Command.run, commands))
    while _has_children():
        time.sleep(0.01)
    return Cost(time.perf_counter() - start, _cpu() - before)


def _has_children() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
