"""Measure the cost of the separate environment process of a study's jobs: ratios to training in one process.

    python bench/env_process.py [TASK ...] [--repeats 5]

Both train the same catalog config with the same seed, in a process that has done its imports. *Apart* makes the
environments in the process that a study's job starts: sandboxed, with its own namespaces, numbers through shared
memory. Both must end with the same weights. They take turns, and the best repeat of each counts, because other work on
the machine only ever adds time. The promise is about wall seconds on a machine with two idle cores: on a busy one, each
of the two processes waits for a core at every step. *CPU* is the ratio of the CPU seconds of both processes: each also
looks for the other's answer before it sleeps. *Start* is what it takes to start the process, once per worker. The
script writes bench/env_process.md and exits with 1 if a promise is broken. It takes about three minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, cast

from rlx.config.load import document, parse, read
from rlx.config.schema import Experiment
from rlx.envs.remote.env_process import EnvProcess
from rlx.sandbox import namespaces
from rlx.sandbox.popen import SandboxedCommand, kill, start
from rlx.sandbox.process_tree import descendants
from rlx.sandbox.spec import SandboxSpec, make_private_home, system_reads
from rlx.testing import RecordingSession, digest
from rlx.train.backends.fast.fast_trainer import FastTrainer

TABLE = Path(__file__).parent / "env_process.md"
ROOT = Path(__file__).parents[1]
SHORT_EVALUATION = {"every": 10_000_000, "episodes": 1, "report_episodes": 1}


@dataclass(frozen=True)
class Task:
    """An environment, its number of copies and training steps, and the promised ratio."""

    env: str
    num_envs: int
    steps: int
    limit: float


TASKS = {"cartpole": Task("CartPole-v1", 8, 40_960, 1.3), "hopper": Task("Hopper-v5", 8, 20_480, 1.1)}


@dataclass(frozen=True)
class Measured:
    """The best wall and CPU seconds of both, and the best wall seconds of a start."""

    task: Task
    here: float
    apart: float
    here_cpu: float
    apart_cpu: float
    start: float

    @property
    def ratio(self) -> float:
        return self.apart / self.here

    @property
    def row(self) -> str:
        words = (self.task.env, f"{self.task.num_envs}", f"{self.task.steps:,}", f"{self.here:.2f}")
        kept = "yes" if self.ratio <= self.task.limit else "NO"
        ratio = f"{self.ratio:.2f} (at most {self.task.limit}: {kept})"
        cpu = f"{self.apart_cpu / self.here_cpu:.2f}"
        return " | ".join(("", *words, f"{self.apart:.2f}", ratio, cpu, f"{self.start:.2f}", "")).strip()


def experiment_of(name: str, task: Task) -> Experiment:
    """Return the catalog's config, with fewer steps and hardly any evaluation."""
    with resources.as_file(resources.files("rlx.config").joinpath("catalog", f"{name}.yaml")) as path:
        settings = document(read(path))
    settings["algo"]["total_timesteps"] = task.steps
    return parse({**settings, "run_name": "cost", "backend": "fast", "eval": SHORT_EVALUATION, "checkpoint": {}})


@contextlib.contextmanager
def environment_process(scratch: Path) -> Iterator[tuple[EnvProcess, int]]:
    """Start the process as a study's job does; yield the connection and the number of its parent."""
    environment = {**os.environ, **make_private_home(scratch)}
    spec = SandboxSpec(reads=(*system_reads(), ROOT), writes=(scratch,), shared_memory=True, processes=200)
    argv = [sys.executable, "-P", "-m", "rlx.train.env_server", str(ROOT)]
    ours, theirs = socket.socketpair()
    with theirs:
        process = start(SandboxedCommand(argv, spec, environment, ROOT), stdin=theirs.fileno(), stdout=2, stderr=2)
    client = EnvProcess(ours)
    client.seed_generators(0)  # answers when its imports are done
    try:
        yield client, process.pid
    finally:
        client.close()
        kill(process)


def cpu_seconds(parent: int | None) -> float:
    """Return the CPU seconds of this process, and of all processes below another one."""
    ticks = 0
    for pid in descendants(parent) if parent else ():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def train(experiment: Experiment, folder: Path, *, parent: int | None = None) -> tuple[float, float, str]:
    """Train once; return the wall and CPU seconds and the digest of the weights."""
    session = RecordingSession(experiment, folder, root=ROOT)
    began, cpu = time.perf_counter(), cpu_seconds(parent)
    FastTrainer().train(cast("Any", session))
    return time.perf_counter() - began, cpu_seconds(parent) - cpu, digest(session.saved)


def measured(name: str, task: Task, repeats: int) -> Measured:
    experiment = experiment_of(name, task)
    taken: dict[str, list[float]] = {name: [] for name in ("here", "apart", "here_cpu", "apart_cpu", "start")}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            here, here_cpu, weights = train(experiment, folder / "here")
            began = time.perf_counter()
            with environment_process(folder / "scratch") as (process, parent):
                start_seconds = time.perf_counter() - began
                process.connect()
                apart, apart_cpu, same = train(experiment, folder / "apart", parent=parent)
                process.disconnect()
            assert weights == same, "both must end with the same weights"
            for key, value in zip(taken, (here, apart, here_cpu, apart_cpu, start_seconds), strict=True):
                taken[key].append(value)
    return Measured(task, **{key: min(values) for key, values in taken.items()})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", choices=[*TASKS, []], metavar="TASK", help=f"of {', '.join(TASKS)}")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    found = []
    for name in arguments.tasks or TASKS:
        found.append(measured(name, TASKS[name], arguments.repeats))
        print(found[-1].row, flush=True)
    view = "with" if namespaces.is_possible() else "without"
    text = [
        "# What the separate environment process costs",
        "",
        f"Written by `python bench/env_process.py`, {view} namespaces. Seconds are the best of {arguments.repeats}.",
        "",
        f"Load of the machine while it ran: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.",
        "",
        "| environment | copies | steps | one process, s | apart, s | ratio | CPU | start, s |",
        "|---|---|---|---|---|---|---|---|",
        *(row.row for row in found),
    ]
    if len(found) == len(TASKS):
        TABLE.write_text("\n".join(text) + "\n", encoding="utf-8")
    return int(any(row.ratio > row.task.limit for row in found))


if __name__ == "__main__":
    sys.exit(main())
