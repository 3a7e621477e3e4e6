"""Projects whose runs are trained by the `hill` backend, in real processes, without torch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rlx import plugins
from rlx.config.load import load
from rlx.launch import launch
from rlx.runs.live import LiveSeed
from rlx.runs.run import Run
from rlx.train.session import Session
from rlx.train.trainer import trainer_for
from tests.conftest import Project

FAST, FROZEN = 1.0, 1e-6
"""Strides that learn within 600 steps, and that learn nothing."""
BACKENDS = Path(__file__).parent / "backends"


@pytest.fixture
def hills(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project in which every process knows the `hill` backend."""
    monkeypatch.setenv("PYTHONPATH", str(BACKENDS))
    monkeypatch.syspath_prepend(str(BACKENDS))
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # durability is tested in tests/runs
    monkeypatch.setitem(plugins.BACKENDS, "hill", "hill:HillTrainer")
    return project


def write_config(project: Project, name: str, *, stride: float, steps: int = 600, **sections: Any) -> str:
    """Write a CartPole config that the `hill` backend trains."""
    algo = {"name": "ppo", "total_timesteps": steps, "learning_rate": stride, **sections.pop("algo", {})}
    checkpoint = {"save_every": steps // 3}
    return project.config(name, backend="hill", algo=algo, checkpoint=checkpoint, eval={"every": steps}, **sections)


def train_here(project: Project, config: str, seeds: Sequence[int]) -> Run:
    """Train a config in this process: the same run, without the seconds that processes take to start."""
    experiment = load(project.root / config).model_copy(update={"seeds": tuple(seeds)})
    run = launch.create(experiment, root=project.root)
    for seed in seeds:
        live = LiveSeed(run.path / f"seed_{seed}", root=project.root)
        session = Session(experiment, live)
        trainer_for(experiment).train(session)
        session.close()
        live.completed(session.step)
        live.close()
    return Run(run.path)
