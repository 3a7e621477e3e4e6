"""Start the process of a seed: forked from a supervisor that has done the imports, or as a new interpreter.

Forking saves 0.4 s per seed, which is the time to import NumPy, Gymnasium and the config schema.
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
from rlx.launch.processes.forked_process import ForkedProcess, fork, keep_only
from rlx.launch.processes.reexec import has_lasting_environment

# The imports of a worker. None is the project's own, starts threads or touches a GPU.
PRELOADED = (
    "numpy.ma",  # a median imports it
    "rlx.config.load",
    "rlx.envs.snapshot",
    "rlx.envs.vector",
    "rlx.evaluate.rollout",
    "rlx.runs.checkpoints.checkpoint",
    "rlx.runs.live",
    "rlx.train.backends.fast.training_loop",
    "rlx.train.session",
    "rlx.train.trainer",
)


@dataclass(frozen=True)
class WorkerSetup:
    """What a worker starts with: environment variables, working folder and log file."""

    environment: Mapping[str, str]
    folder: Path
    log: Path


WorkerProcess = ForkedProcess | subprocess.Popen[bytes]


def preload() -> None:
    """Import what workers need, so that workers forked from here do not have to."""
    from rlx.runs import provenance

    gc.disable()  # nothing that is imported is garbage
    for name in PRELOADED:
        importlib.import_module(name)
    provenance.versions()  # it keeps them
    gc.freeze()  # workers neither scan these objects nor copy their memory
    gc.enable()


def can_fork(config: Mapping[str, Any]) -> bool:
    """Say whether a fork of this process computes like a new worker: threads and hash seed were set at its start.

    On macOS, a process that has loaded NumPy's libraries must not fork.
    """
    return sys.platform == "linux" and threading.active_count() == 1 and has_lasting_environment(config)


def start_worker(argv: list[str], setup: WorkerSetup, *, is_forked: bool) -> WorkerProcess:
    """Start the worker `argv` (run folder and seeds) in its own session."""

    def run_worker() -> int:
        _apply(setup, argv)
        return worker.main(argv)

    if is_forked:
        return fork(run_worker)
    with setup.log.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", worker.__name__, *argv],  # -P: no project code before the worker has checked
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=dict(setup.environment),
            cwd=setup.folder,
            start_new_session=True,
        )


def _apply(setup: WorkerSetup, argv: list[str]) -> None:
    """Give a forked process what a new one would have: log, folder, environment, random state, none of our locks."""
    log = os.open(setup.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    keep_only(os.open(os.devnull, os.O_RDONLY), log)
    os.chdir(setup.folder)
    os.environ.clear()
    os.environ.update(setup.environment)
    sys.argv = [str(worker.__file__), *argv]
    sys.modules["numpy"].random.seed()  # Python reseeds its own generator after a fork
