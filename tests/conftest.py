"""A project in a temporary folder, driven through the real command line."""

from __future__ import annotations

import compileall
import contextlib
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

from rlx import files
from rlx.hosts.cli.main import call
from rlx.runs import process, store
from rlx.runs.metrics import MetricsWriter
from rlx.runs.run import Run

# A shell that starts the tests in the background has them, and all they start, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

TINY = {
    "run_name": "tiny",
    "env": {"id": "CartPole-v1", "num_envs": 2},
    "algo": {"name": "ppo", "total_timesteps": 1024, "rollout_steps": 64, "batch_size": 64, "update_epochs": 2},
    "policy": {"hidden_sizes": [8]},
    "checkpoint": {"save_every": 256},
    "eval": {"every": 512, "episodes": 2},
}

HERE = frozenset({
    "analyze", "diagnose", "explain-metrics", "info", "logs", "ls", "note", "stop", "suggest", "summarize",
    "tag", "untag", "wait",
})  # fmt: skip
"""Commands that neither start a process nor import the project's code: no seconds are spent on a new interpreter."""


def pytest_configure(config: pytest.Config) -> None:
    """Compile rlx once, so that none of the many processes that the tests start has to, whatever the environment."""
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(Path(files.__file__).parent, quiet=2)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Keep the compiled tests for the next collection, even if the environment keeps no compiled code."""
    with mock.patch.object(sys, "dont_write_bytecode", False):
        return (yield)


@dataclass
class Project:
    """A project's folder and the commands a person would type in it."""

    root: Path

    def rlx(self, *words: str, code: int | None = 0, timeout: float = 240) -> subprocess.CompletedProcess[str]:
        """Run an `rlx` command here; `code` is the exit code it must end with (None: any)."""
        done = self._call(words) if words[0] in HERE else self._run(words, timeout)
        if code is not None:
            assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def _run(self, words: Sequence[str], timeout: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "rlx", *words],
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            env=self.environment(),
        )

    def _call(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command in this process, which has done the imports."""
        output = io.StringIO()
        errors = io.StringIO()
        with (
            contextlib.chdir(self.root),
            mock.patch.dict(os.environ, self.environment(), clear=True),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(errors),
        ):
            code = call(list(words))
        return subprocess.CompletedProcess(list(words), code, output.getvalue(), errors.getvalue())

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start an `rlx` command in a process group of its own and return at once."""
        return subprocess.Popen(
            [sys.executable, "-m", "rlx", *words],
            cwd=self.root, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True, env=self.environment(),
        )  # fmt: skip

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "RLX_ROOT"}
        return {**kept, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}

    def write(self, path: str, text: str) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return target

    def config(self, name: str = "tiny", **sections: object) -> str:
        """Write a config like TINY with some sections merged in, and return its path."""
        merged: dict[str, object] = {**TINY, "run_name": name}
        for key, value in sections.items():
            before = merged.get(key)
            merged[key] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value
        self.write(f"configs/{name}.yaml", yaml.safe_dump(merged))
        return f"configs/{name}.yaml"

    def run(self, name: str) -> Run:
        return Run(self.root / "runs" / name)

    def runs(self) -> list[str]:
        folder = self.root / "runs"
        return (
            sorted(path.name for path in folder.iterdir() if not path.name.startswith(".")) if folder.is_dir() else []
        )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "a project"
    root.mkdir()
    (root / "rlx.toml").touch()
    return Project(root)


def wait_until(condition: Callable[[], object], *, seconds: float = 60) -> None:
    """Wait for something another process does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def write_seed(run: Run, seed: int, *, state: str, returns: list[float], start: float = 1000.0, **last: Any) -> None:
    """Write what a trained seed leaves: a row every 100 steps, and events from its start to its end."""
    folder = run.path / f"seed_{seed}"
    writer = MetricsWriter(folder / "metrics.jsonl")
    for row, value in enumerate(returns, start=1):
        writer.write(row * 100, {"rollout/return_mean": value, "train/loss": 1.0 / row})
    writer.close()
    gone = {"place": process.place(), "pid": 2**22 + 1, "started": "1"}
    events: list[dict[str, Any]] = [{"event": "started", "time": start, "process": gone}]
    if state == "running":
        events[0]["process"] = process.current().document()
    elif state != "lost":
        events.append({"event": state, "time": start + 60.0, "step": len(returns) * 100, **last})
    for event in events:
        files.append_line(folder / "events.jsonl", files.encode(event))


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Run]:
    """Return a maker of run folders without training: `seeds` are each seed's returns, `state` that of every seed."""

    def make(
        name: str = "cartpole",
        *,
        seeds: Mapping[int, list[float]] | None = None,
        state: str = "completed",
        root: Path = tmp_path,
        env: str = "CartPole-v1",
        algo: str = "ppo",
        group: str = "g1",
        **last: Any,
    ) -> Run:
        given = {0: [10.0, 20.0]} if seeds is None else seeds
        identity = {"env": env, "algorithm": algo, "backend": "sb3", "total_timesteps": 200, "group_hash": group}
        snapshot = f"run_name: {name}\nenv: {{id: {env}}}\nalgo: {{name: {algo}, total_timesteps: 200}}\n"
        run = store.create(root, name=name, snapshot=snapshot, metadata=identity, seeds=list(given))
        for seed, returns in given.items():
            if state != "prepared":
                write_seed(run, seed, state=state, returns=returns, **last)
        return Run(run.path)

    return make
