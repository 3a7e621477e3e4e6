"""Running normalisation of observations and rewards, with the arithmetic of SB3's VecNormalize."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
EPSILON = 1e-8


class RunningMoments:
    """Mean and variance of everything seen so far."""

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        self.mean: Any = np.zeros(shape)
        self.var: Any = np.ones(shape)
        self.count = 1e-4

    def update(self, batch: Array) -> None:
        """Add a batch with one row per sample."""
        rows = len(batch)
        mean = np.add.reduce(batch, axis=0) / rows
        distance = batch - mean
        var = np.add.reduce(distance * distance, axis=0) / rows
        delta = mean - self.mean
        total = self.count + rows
        squares = self.var * self.count + var * rows + np.square(delta) * self.count * rows / total
        self.mean = self.mean + delta * rows / total
        self.var = squares / total
        self.count = total

    def document(self) -> dict[str, Any]:
        """Return the moments in the form that a checkpoint stores."""
        return {"mean": np.array(self.mean), "var": np.array(self.var), "count": float(self.count)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `document` returned."""
        self.mean = np.array(state["mean"])
        self.var = np.array(state["var"])
        self.count = state["count"]


class Normalizer:
    """Moments of the normalised parts of an observation, by name, and of discounted returns."""

    def __init__(
        self, parts: Mapping[str, tuple[int, ...]], *, num_envs: int, has_reward: bool, gamma: float, clip: float
    ) -> None:
        self.parts = {name: RunningMoments(shape) for name, shape in parts.items()}
        self.reward = RunningMoments()
        self.returns = np.zeros(num_envs)
        self._has_reward = has_reward
        self._gamma = gamma
        self._clip = clip

    def observe(self, observations: Any) -> None:
        """Update the moments with a new batch of observations."""
        for name, moments in self.parts.items():
            moments.update(observations[name] if name else observations)

    def scale(self, name: str, rows: Array) -> Array:
        """Return a part of the observations, as flat rows, normalised."""
        moments = self.parts.get(name)
        if moments is None:
            return rows
        std = np.sqrt(moments.var.reshape(-1) + EPSILON)
        scaled: Array = np.clip((rows - moments.mean.reshape(-1)) / std, -self._clip, self._clip)
        return scaled

    def rewards(self, rewards: Array, dones: Array, idle: Array) -> Array:
        """Update the moments of the discounted returns, without `idle` environments, and return scaled rewards."""
        self.returns = self.returns * self._gamma + rewards
        if not idle.all():
            self.reward.update(self.returns[~idle])
        self.returns[dones] = 0.0
        if not self._has_reward:
            return rewards
        scaled: Array = np.clip(rewards / np.sqrt(self.reward.var + EPSILON), -self._clip, self._clip)
        return scaled.astype(np.float32)

    def document(self) -> dict[str, Any]:
        """Return everything in the form that a checkpoint stores."""
        return {
            "obs": {name: moments.document() for name, moments in self.parts.items()},
            "reward": self.reward.document(),
            "returns": self.returns.copy(),
            "clip": self._clip,
            "epsilon": EPSILON,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `document` returned."""
        for name, moments in self.parts.items():
            moments.restore(state["obs"][name])
        self.reward.restore(state["reward"])
        self.returns = np.array(state["returns"])
