"""A backend whose policy is one row of weights: real checkpoints and real runs, without torch and without training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from gymnasium.spaces import Box, Discrete

from rlx import plugins
from rlx.config.load import dump, parse
from rlx.envs.spaces import describe
from rlx.runs import store
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.runs.checkpoints.checkpoint import Bundle, Checkpoint
from rlx.runs.live import LiveSeed
from rlx.runs.run import Run

GOOD = (0.0, 0.05, 1.0, 0.5)
"""Weights that balance CartPole for 500 steps."""
POOR = (0.0, 0.0, 1.0, 0.0)
SPACES = {
    "observation": describe(Box(-np.inf, np.inf, (4,), np.float32)), "action": describe(Discrete(2)),
}  # fmt: skip


class LinearPolicy:
    """Takes action 1 where weights · observation > 0."""

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights

    def predict(self, observations: Any, *, deterministic: bool = True, masks: Any = None) -> np.ndarray:
        return (np.asarray(observations) @ self.weights > 0).astype(np.int64)

    def reset(self, finished: Any = None) -> None:
        pass


class LinearTrainer:
    """The part of a backend that evaluation needs."""

    name = "linear"

    def load(self, checkpoint: Checkpoint) -> LinearPolicy:
        return LinearPolicy(checkpoint.policy["weights"])


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the backend known while a test runs."""
    monkeypatch.setitem(plugins.BACKENDS, "linear", f"{__name__}:LinearTrainer")


def config(name: str, **changes: Any) -> dict[str, Any]:
    """Return the plain config of a CartPole run."""
    return {
        "run_name": name, "env": {"id": "CartPole-v1"}, "algo": {"name": "ppo", "total_timesteps": 1024}, **changes,
    }  # fmt: skip


def write_checkpoint(
    folder: Path,
    name: str,
    weights: Sequence[float],
    *,
    plain: Mapping[str, Any],
    step: int,
    spaces: Mapping[str, Any] = SPACES,
) -> Path:
    """Save weights as a checkpoint."""
    bundle = Bundle(
        step=step, backend="linear", algorithm="ppo", resume="warm", missing="everything",
        policy={"weights": np.array(weights)}, optimizer={}, state={}, replay={}, spaces=dict(spaces),
    )  # fmt: skip
    document = yaml.safe_load(dump(parse(dict(plain))))
    return checkpoints.write(folder, bundle, name=name, config=document)


def make_run(
    root: Path,
    name: str,
    seeds: Mapping[int, Sequence[float]],
    *,
    step: int = 1024,
    names: Sequence[str] = ("latest", "best"),
    **changes: Any,
) -> Run:
    """Create a completed run whose seeds have these weights as the checkpoints `names`."""
    plain = config(name, **changes)
    run = store.create(root, name=name, snapshot=dump(parse(plain)), metadata={}, seeds=seeds)
    for seed, weights in seeds.items():
        folder = run.path / f"seed_{seed}"
        live = LiveSeed(folder, root=root)
        for checkpoint in names:
            write_checkpoint(folder / "checkpoints", checkpoint, weights, plain=plain, step=step)
        live.completed(step)
        live.close()
    return Run(run.path)
