"""A backend that really trains, in a second and without torch: hill climbing for CartPole on one row of weights.

`algo.learning_rate` is how far a step goes. Files in the project's root make a seed misbehave: `NAME.SEED.fails` holds
the name of an exception, once where it starts with `once `; `slow` makes every episode last.
"""

from __future__ import annotations

import builtins
import errno
import time
from pathlib import Path
from typing import Any

import numpy as np

from rlx.envs.make import make_env
from rlx.envs.vector import env_seeds
from rlx.runs.checkpoints.checkpoint import Bundle, Checkpoint
from rlx.train.session import Session


class LinearPolicy:
    """Takes action 1 where weights · observation > 0."""

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights

    def predict(self, observations: Any, *, deterministic: bool = True, masks: Any = None) -> np.ndarray:
        return (np.asarray(observations) @ self.weights > 0).astype(np.int64)

    def reset(self, finished: Any = None) -> None:
        pass


class HillTrainer:
    """Keeps a step that does not make the last episode shorter."""

    name = "hill"

    def check(self, experiment: Any, facts: Any) -> list[Any]:
        return []

    def load(self, checkpoint: Checkpoint) -> LinearPolicy:
        return LinearPolicy(checkpoint.policy["weights"])

    def train(self, session: Session) -> None:
        step, climb = session.step, _Climb(session)
        goes_on = True
        while goes_on:
            _misbehave(session)
            step = min(session.total, step + climb.one_episode())  # the last episode is paid for
            goes_on = session.after_update(
                step,
                lambda: {"rollout/return_mean": climb.height},
                policy=LinearPolicy(climb.weights),
                snapshot=lambda: climb.bundle(step),  # noqa: B023
            )


class _Climb:
    def __init__(self, session: Session) -> None:
        self.session = session
        self.env = make_env(session.experiment.env, root=session.root)
        self.generator = np.random.default_rng([session.seed, session.step])
        self.env_seed: int | None = env_seeds(session.seed, 1)[0]
        held = session.checkpoint.policy if session.checkpoint else {}
        start = np.array([0.0, 0.0, -1.0, 0.0]) + 0.1 * self.generator.normal(size=4)  # lets the pole fall at once
        self.weights = np.asarray(held.get("weights", start))
        self.height = float(held["height"][0]) if held else -np.inf

    def one_episode(self) -> int:
        stride = float(self.session.experiment.algo.learning_rate)
        tried = self.weights + stride * self.generator.normal(size=self.weights.shape)
        observation, _ = self.env.reset(seed=self.env_seed)
        self.env_seed = None
        total, length, is_over = 0.0, 0, False
        while not is_over:
            action = int(np.dot(observation, tried) > 0)
            observation, reward, terminated, truncated, _ = self.env.step(action)
            total, length, is_over = total + float(reward), length + 1, terminated or truncated
        if total >= self.height:
            self.weights, self.height = tried, total
        return length

    def bundle(self, step: int) -> Bundle:
        policy = {"weights": self.weights, "height": np.array([self.height])}
        return Bundle(
            step=step, backend="hill", algorithm="ppo", resume="warm", missing="the generator's state",
            policy=policy, optimizer={}, state={}, replay={}, spaces={},
        )  # fmt: skip


def _misbehave(session: Session) -> None:
    if (session.root / "slow").exists():
        time.sleep(0.02)
    order: Path = session.root / f"{session.live.folder.parent.name}.{session.seed}.fails"
    if order.exists():
        text = order.read_text()
        if text.startswith("once "):
            order.unlink()
        if text == "once ENOSPC":
            raise OSError(errno.ENOSPC, "No space left on device")
        raise getattr(builtins, text.removeprefix("once "))("as ordered")
