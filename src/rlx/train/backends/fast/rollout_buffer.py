"""The rollout buffer: inputs, actions and rewards of S seeds, and the samples that PPO learns from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx.train.backends.fast.action_distributions import ActionDistribution
from rlx.train.backends.fast.network import NetworkPass, Weights, aligned

Array = NDArray[Any]


@dataclass(frozen=True)
class Samples:
    """Rows (seeds, rows, …) to learn from. Actions are encoded; masks are True where an action was allowed."""

    inputs: Array
    actions: Array
    log_probs: Array
    values: Array
    advantages: Array
    returns: Array
    action_masks: Array | None

    def rows(self, rows: slice | Array) -> Samples:
        """Return some of the rows; a slice gives views."""
        return self._map(lambda array: array[:, rows])

    def zeros_like(self) -> Samples:
        """Return memory for as many rows. It holds zeros, because seeds that dropped out are computed too."""
        return self._map(np.zeros_like)

    def reorder(self, seed: int, order: Array, out: Samples) -> None:
        """Write one seed's rows to `out` in another order."""
        for array, target in zip(vars(self).values(), vars(out).values(), strict=True):
            if array is not None:
                np.take(array[seed], order, axis=0, out=target[seed], mode="clip")

    def _map(self, function: Callable[[Array], Array]) -> Samples:
        changed: dict[str, Any] = {name: function(array) for name, array in vars(self).items() if array is not None}
        return Samples(**{"action_masks": None, **changed})


class RolloutBuffer:
    """The memory of one rollout. `inputs` has one more step: the observation that the next rollout starts from."""

    def __init__(
        self, weights: Weights, distribution: ActionDistribution, *, steps: int, num_envs: int, batch_size: int
    ) -> None:
        shape = (len(weights.flat), steps, num_envs)
        self.steps = steps
        self.num_envs = num_envs
        self.inputs = aligned((shape[0], steps + 1, num_envs, weights.shape.inputs + 1), weights.dtype)
        self.inputs[..., -1] = 1.0  # the input of the biases
        self.rewards = np.zeros(shape, dtype=weights.dtype)
        self.raw_rewards = np.zeros(shape)  # before normalisation
        self.dones = np.zeros(shape, dtype=np.bool_)  # terminated or truncated
        self.idle = np.zeros(shape, dtype=np.bool_)  # steps that only reset an environment
        self.actions: list[Array] = []
        self.action_masks: Array | None = None
        self.truncated: list[tuple[int, int, int, Array]] = []  # seed, step, environment, final features
        self._weights = weights
        self._distribution = distribution
        self._batch_size = batch_size
        self._network = NetworkPass(weights, batch_size)
        self._critic = NetworkPass(weights, num_envs, nets=slice(1, 2))

    def begin(self) -> None:
        """Start the next rollout where the last one ended."""
        self.inputs[:, 0] = self.inputs[:, -1]
        self.actions.clear()
        self.truncated.clear()

    def samples(self, *, gamma: float, gae_lambda: float) -> Samples:
        """Return everything in the form that PPO learns from; the weights must still be those that acted."""
        seeds = len(self.inputs)
        rows = self.steps * self.num_envs
        inputs = self.inputs.reshape(seeds, -1, self.inputs.shape[-1])
        actions = np.stack(self.actions, axis=1)  # (seeds, steps, parts, environments)
        encoded = self._distribution.encode(actions, self.inputs.dtype).reshape(seeds, rows, -1)
        masks = None
        if self.action_masks is not None:
            masks = self.action_masks.reshape(seeds, rows, -1)
        values, log_probs = self._evaluate(inputs, encoded, masks)
        self._bootstrap(gamma)
        grid = values.reshape(seeds, self.steps + 1, self.num_envs)
        advantages = gae(self.rewards, grid, self.dones, gamma=gamma, gae_lambda=gae_lambda).reshape(seeds, rows)
        old_values = values[:, :rows]
        returns = advantages + old_values
        samples = Samples(inputs[:, :rows], encoded, log_probs, old_values, advantages, returns, masks)
        if not self.idle.any():
            return samples
        assert seeds == 1, "with idle steps, seeds have different numbers of samples"
        return samples.rows(np.flatnonzero(~self.idle))

    def _evaluate(self, inputs: Array, encoded: Array, masks: Array | None) -> tuple[Array, Array]:
        """Return the values of all inputs, the last step's included, and the actions' log_probs."""
        seeds, rows = encoded.shape[:2]
        log_probs = np.empty((seeds, rows), dtype=inputs.dtype)
        values = np.empty((seeds, rows + self.num_envs), dtype=inputs.dtype)
        for start in range(0, rows, self._batch_size):
            part = slice(start, start + self._batch_size)
            self._network.forward(inputs[:, part])
            values[:, part] = self._network.values[:, 0]
            log_probs[:, part], _ = self._distribution.evaluate(
                self._network.actor_out,
                encoded[:, part],
                self._weights.log_std,
                masks if masks is None else masks[:, part],
            )
        self._critic.forward(self.inputs[:, -1])
        values[:, rows:] = self._critic.values[:, 0]
        return values, log_probs

    def _bootstrap(self, gamma: float) -> None:
        """Add the discounted value of the final observation to the last reward of every truncated episode."""
        block = np.zeros_like(self.inputs[:, 0])
        block[..., -1] = 1.0
        for seed in {entry[0] for entry in self.truncated}:
            entries = [entry for entry in self.truncated if entry[0] == seed]
            for start in range(0, len(entries), self.num_envs):
                chunk = entries[start : start + self.num_envs]
                block[seed, : len(chunk), :-1] = [features for *_, features in chunk]
                self._critic.forward(block)
                final_values = self._critic.values[seed, 0].tolist()
                for (_, step, index, _), value in zip(chunk, final_values, strict=False):
                    self.rewards[seed, step, index] += gamma * value


def gae(rewards: Array, values: Array, dones: Array, *, gamma: float, gae_lambda: float) -> Array:
    """Return generalised advantage estimates (seeds, steps, environments); `values` has one more step."""
    not_done = np.logical_not(dones).astype(rewards.dtype)
    advantages: Array = rewards + gamma * values[:, 1:] * not_done - values[:, :-1]
    decay = gamma * gae_lambda * not_done
    discounted = np.empty_like(advantages[:, 0])
    for step in range(advantages.shape[1] - 2, -1, -1):
        np.multiply(decay[:, step], advantages[:, step + 1], out=discounted)
        np.add(advantages[:, step], discounted, out=advantages[:, step])
    return advantages
