"""What a rollout leaves: inputs, choices, rewards and ends of S seeds; then the samples to learn from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx.train.backends.fast_actions import Actions
from rlx.train.backends.fast_network import Pass, Weights, aligned

Array = NDArray[Any]


@dataclass(frozen=True)
class Samples:
    """Rows (seeds, rows, …) to learn from; `closed` are the actions that were not allowed."""

    inputs: Array
    targets: Array
    chances: Array
    values: Array
    advantages: Array
    returns: Array
    closed: Array | None

    def part(self, rows: slice | Array) -> Samples:
        """Return some of the rows; a slice gives views."""
        return self._map(lambda array: array[:, rows])

    def blank(self) -> Samples:
        """Return room for as many rows; zeros, so that seeds that are left out compute with numbers too."""
        return self._map(np.zeros_like)

    def reorder(self, seed: int, order: Array, out: Samples) -> None:
        """Write one seed's rows in another order."""
        for array, target in zip(vars(self).values(), vars(out).values(), strict=True):
            if array is not None:
                np.take(array[seed], order, axis=0, out=target[seed], mode="clip")

    def _map(self, function: Callable[[Array], Array]) -> Samples:
        arrays: dict[str, Any] = {
            name: array if array is None else function(array) for name, array in vars(self).items()
        }
        return Samples(**arrays)


class Rollout:
    """The memory of one rollout; its inputs have one more step, the observation the next rollout starts from."""

    def __init__(self, weights: Weights, actions: Actions, *, steps: int, num_envs: int, batch_size: int) -> None:
        seeds, dtype = len(weights.flat), weights.dtype
        self.steps, self.num_envs = steps, num_envs
        self.inputs = aligned((seeds, steps + 1, num_envs, weights.shape.inputs + 1), dtype)
        self.inputs[..., -1] = 1.0
        self.rewards = np.zeros((seeds, steps, num_envs), dtype=dtype)
        self.raw_rewards = np.zeros((seeds, steps, num_envs))  # as the environments gave them
        self.ended = np.zeros((seeds, steps, num_envs), dtype=np.bool_)
        self.idle = np.zeros((seeds, steps, num_envs), dtype=np.bool_)  # steps that were nothing but a late reset
        self.closed: Array | None = None
        self.choices: list[Array] = []
        self.cut: list[tuple[int, int, int, Array]] = []
        self._weights, self._actions, self._batch_size = weights, actions, batch_size
        self._both = Pass(weights, batch_size)
        self._critic = Pass(weights, num_envs, nets=slice(1, 2))

    def begin(self) -> None:
        """Start the next rollout where the last one ended."""
        self.inputs[:, 0] = self.inputs[:, -1]
        self.choices.clear()
        self.cut.clear()

    def samples(self, *, gamma: float, gae_lambda: float) -> Samples:
        """Return everything in the form it is learned from; the weights must be those that acted."""
        seeds, rows = len(self.inputs), self.steps * self.num_envs
        inputs = self.inputs.reshape(seeds, -1, self.inputs.shape[-1])
        choices = np.stack(self.choices, axis=1)  # (seeds, steps, parts, environments)
        targets = self._actions.targets(choices, self.inputs.dtype).reshape(seeds, rows, -1)
        closed = None if self.closed is None else self.closed.reshape(seeds, rows, -1)
        chances = np.empty((seeds, rows), dtype=self.inputs.dtype)
        values = np.empty((seeds, rows + self.num_envs), dtype=self.inputs.dtype)
        for start in range(0, rows, self._batch_size):
            part = slice(start, start + self._batch_size)
            self._both.forward(inputs[:, part])
            values[:, part] = self._both.values[:, 0]
            masks = None if closed is None else closed[:, part]
            chances[:, part] = self._actions.evaluate(self._both.head, targets[:, part], self._weights, masks)[0]
        self._critic.forward(self.inputs[:, -1])
        values[:, rows:] = self._critic.values[:, 0]
        self._bootstrap(gamma)
        grid = values.reshape(seeds, self.steps + 1, self.num_envs)
        advantages = gae(self.rewards, grid, self.ended, gamma=gamma, gae_lambda=gae_lambda).reshape(seeds, rows)
        old = values[:, :rows]
        samples = Samples(inputs[:, :rows], targets, chances, old, advantages, advantages + old, closed)
        if not self.idle.any():
            return samples
        assert seeds == 1, "seeds with late resets have not the same number of samples"
        return samples.part(np.flatnonzero(~self.idle))

    def _bootstrap(self, gamma: float) -> None:
        """Add to the reward of a cut episode what its last observation was still worth."""
        if not self.cut:
            return
        block = np.zeros_like(self.inputs[:, 0])
        block[..., -1] = 1.0
        for seed in range(len(self.inputs)):
            own = [entry for entry in self.cut if entry[0] == seed]
            for start in range(0, len(own), self.num_envs):
                some = own[start : start + self.num_envs]
                block[seed, : len(some), :-1] = [features for *_, features in some]
                self._critic.forward(block)
                worth = self._critic.values[seed, 0]
                for (_, step, index, _), value in zip(some, worth.tolist(), strict=False):
                    self.rewards[seed, step, index] += gamma * value


def gae(rewards: Array, values: Array, ended: Array, *, gamma: float, gae_lambda: float) -> Array:
    """Return generalised advantages (seeds, steps, environments); `values` has one more step."""
    goes_on = np.logical_not(ended).astype(rewards.dtype)
    advantages: Array = rewards + gamma * values[:, 1:] * goes_on - values[:, :-1]
    decay = gamma * gae_lambda * goes_on
    later = np.empty_like(advantages[:, 0])
    for step in range(advantages.shape[1] - 2, -1, -1):
        np.multiply(decay[:, step], advantages[:, step + 1], out=later)
        np.add(advantages[:, step], later, out=advantages[:, step])
    return advantages
