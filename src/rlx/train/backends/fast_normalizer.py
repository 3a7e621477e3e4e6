"""Running normalisation of observations and rewards, in the arithmetic of SB3's VecNormalize."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
EPSILON = 1e-8


class Moments:
    """Mean and variance of everything seen so far."""

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        self.mean: Any = np.zeros(shape)
        self.var: Any = np.ones(shape)
        self.count = 1e-4

    def update(self, batch: Array) -> None:
        """Take a batch in, one row a sample."""
        rows = len(batch)
        mean = np.add.reduce(batch, axis=0) / rows
        distance = batch - mean
        var = np.add.reduce(distance * distance, axis=0) / rows
        delta = mean - self.mean
        total = self.count + rows
        spread = self.var * self.count + var * rows + np.square(delta) * self.count * rows / total
        self.mean, self.var, self.count = self.mean + delta * rows / total, spread / total, total

    def document(self) -> dict[str, Any]:
        """Return the figures as a checkpoint keeps them."""
        return {"mean": np.array(self.mean), "var": np.array(self.var), "count": float(self.count)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put back what `document` returned."""
        self.mean, self.var, self.count = np.array(state["mean"]), np.array(state["var"]), state["count"]


class Normalizer:
    """Moments of the normalised parts of an observation, by name, and of discounted returns."""

    def __init__(
        self, parts: Mapping[str, tuple[int, ...]], *, num_envs: int, has_reward: bool, gamma: float, clip: float
    ) -> None:
        self.parts = {name: Moments(shape) for name, shape in parts.items()}
        self.reward = Moments()
        self.returns = np.zeros(num_envs)
        self._has_reward, self._gamma, self._clip = has_reward, gamma, clip

    def observe(self, observations: Any) -> None:
        """Learn the scale of a new batch of observations."""
        for name, moments in self.parts.items():
            moments.update(observations[name] if name else observations)

    def scale(self, name: str, rows: Array) -> Array:
        """Return a part of the observations, one flat row each, on its scale."""
        moments = self.parts.get(name)
        if moments is None:
            return rows
        deviation = np.sqrt(moments.var.reshape(-1) + EPSILON)
        scaled: Array = np.clip((rows - moments.mean.reshape(-1)) / deviation, -self._clip, self._clip)
        return scaled

    def rewards(self, rewards: Array, ended: Array, idle: Array) -> Array:
        """Learn the scale of the returns that these rewards lead to, and return them on it; `idle` ones are none."""
        self.returns = self.returns * self._gamma + rewards
        if not idle.all():
            self.reward.update(self.returns[~idle])
        self.returns[ended] = 0.0
        if not self._has_reward:
            return rewards
        scaled: Array = np.clip(rewards / np.sqrt(self.reward.var + EPSILON), -self._clip, self._clip)
        return scaled.astype(np.float32)

    def document(self) -> dict[str, Any]:
        """Return everything as a checkpoint keeps it."""
        return {
            "obs": {name: moments.document() for name, moments in self.parts.items()},
            "reward": self.reward.document(),
            "returns": self.returns.copy(),
            "clip": self._clip,
            "epsilon": EPSILON,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put back what `document` returned."""
        for name, moments in self.parts.items():
            moments.restore(state["obs"][name])
        self.reward.restore(state["reward"])
        self.returns = np.array(state["returns"])
