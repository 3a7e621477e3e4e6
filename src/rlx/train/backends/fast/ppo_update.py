"""The PPO update: clipped surrogate, value loss and entropy bonus, with derivatives written by hand.

The total loss of a minibatch is `policy_loss + value_coef * value_loss - entropy_coef * entropy`. A name that starts
with `d_` is the derivative of that loss with respect to what follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx.config.schema import Ppo
from rlx.train.backends.fast.action_distributions import ActionDistribution
from rlx.train.backends.fast.adam import Adam
from rlx.train.backends.fast.network import NetworkPass, Weights
from rlx.train.backends.fast.rollout_buffer import Samples

Array = NDArray[Any]
LOSS_NAMES = ("policy_loss", "value_loss", "entropy", "clip_fraction", "approx_kl")


@dataclass
class UpdateStats:
    """One seed's losses in one update: one row of LOSS_NAMES per minibatch."""

    minibatches: list[tuple[float, ...]] = field(default_factory=list)
    gradient_norms: list[float] = field(default_factory=list)  # before clipping
    epochs: int = 0
    last_epoch_start: int = 0  # index of its first row in `minibatches`

    def begin_epoch(self) -> None:
        """Count one more epoch."""
        self.epochs += 1
        self.last_epoch_start = len(self.minibatches)

    def means(self) -> dict[str, float]:
        """Return the means that SB3 logs: `approx_kl` over the last epoch, the rest over all minibatches."""
        columns = np.array(self.minibatches)
        means = dict(zip(LOSS_NAMES, columns.mean(axis=0).tolist(), strict=True))
        means["approx_kl"] = float(columns[self.last_epoch_start :, -1].mean())
        return means


class PpoUpdate:
    """Updates the stacked weights of all seeds; keeps the memory that an update needs."""

    def __init__(self, weights: Weights, distribution: ActionDistribution, algo: Ppo) -> None:
        self.gradients = Weights(weights.shape, seeds=len(weights.flat), dtype=weights.dtype)
        self._weights = weights
        self._distribution = distribution
        self._algo = algo
        self._networks: dict[int, NetworkPass] = {}

    def run(
        self,
        samples: Samples,
        adam: Adam,
        generators: Mapping[int, np.random.Generator],
        *,
        learning_rate: float,
        clip_range: float,
    ) -> dict[int, UpdateStats]:
        """Learn from a rollout, for the seeds in `generators`. A seed whose approx_kl gets too large stops early."""
        algo = self._algo
        stats = {seed: UpdateStats() for seed in generators}
        active = list(generators)
        shuffled = samples.zeros_like()
        for _ in range(algo.update_epochs):
            self._shuffle(samples, generators, active, shuffled)
            for seed in active:
                stats[seed].begin_epoch()
            for start in range(0, samples.inputs.shape[1], algo.batch_size):
                minibatch = shuffled.rows(slice(start, start + algo.batch_size))
                losses = self.compute_gradients(minibatch, clip_range=clip_range)
                for seed in active:
                    stats[seed].minibatches.append(tuple(float(column[seed]) for column in losses))
                if algo.target_kl is not None:
                    active = [seed for seed in active if stats[seed].minibatches[-1][-1] <= 1.5 * algo.target_kl]
                    if not active:
                        return stats
                adam.step(self.gradients, active, learning_rate=learning_rate, max_grad_norm=algo.max_grad_norm)
                for seed in active:
                    stats[seed].gradient_norms.append(adam.gradient_norms[seed])
        return stats

    def _shuffle(
        self, samples: Samples, generators: Mapping[int, np.random.Generator], seeds: Sequence[int], out: Samples
    ) -> None:
        """Put the samples of these seeds in a new order, and normalise the advantages of each minibatch."""
        for seed in seeds:
            samples.reorder(seed, generators[seed].permutation(samples.inputs.shape[1]), out)
        size = self._algo.batch_size
        whole = out.advantages.shape[1] // size * size
        if self._algo.normalize_advantage:
            normalize_advantages(out.advantages[:, :whole].reshape(len(out.advantages), -1, size))
            normalize_advantages(out.advantages[:, None, whole:])

    def compute_gradients(self, minibatch: Samples, *, clip_range: float) -> tuple[Array, ...]:
        """Fill `gradients` for one minibatch and return its LOSS_NAMES, each with one number per seed."""
        algo = self._algo
        rows = minibatch.log_probs.shape[1]
        network = self._network_for(rows)
        network.forward(minibatch.inputs)
        log_prob, entropy = self._distribution.evaluate(
            network.actor_out, minibatch.actions, self._weights.log_std, minibatch.action_masks
        )
        log_ratio = np.subtract(log_prob, minibatch.log_probs, out=log_prob)
        ratio = np.exp(log_ratio)
        surrogate = minibatch.advantages * ratio
        clipped_surrogate = np.minimum(np.maximum(ratio, 1 - clip_range), 1 + clip_range)
        np.multiply(clipped_surrogate, minibatch.advantages, out=clipped_surrogate)

        # policy_loss = -mean(min(surrogate, clipped_surrogate)). The derivative of the ratio with respect to log_prob
        # is the ratio itself, so d surrogate / d log_prob = surrogate. The clipped surrogate is constant where it is
        # the smaller one: no gradient flows there.
        d_log_prob = surrogate * (surrogate <= clipped_surrogate)
        np.multiply(d_log_prob, -1.0 / rows, out=d_log_prob)
        d_actor_out = self._distribution.backward(d_log_prob, -algo.entropy_coef / rows, self.gradients.log_std)

        # value_loss = mean(value_error²), so its derivative is 2 * value_error / rows.
        value_error, d_values = self._value_error(network.values[:, 0], minibatch)
        np.multiply(d_values, 2.0 * algo.value_coef / rows, out=d_values)
        network.backward(minibatch.inputs, d_actor_out, d_values[:, None], self.gradients)

        policy_loss = -_mean(np.minimum(surrogate, clipped_surrogate, out=surrogate))
        np.subtract(ratio, 1.0, out=ratio)
        approx_kl = _mean(ratio - log_ratio)  # E[(ratio - 1) - log ratio], an estimate that is never negative
        clip_fraction = _mean(np.greater(np.abs(ratio, out=ratio), clip_range))
        return policy_loss, _mean(value_error * value_error), _mean(entropy), clip_fraction, approx_kl

    def _network_for(self, rows: int) -> NetworkPass:
        """Return the memory for minibatches of this size; the last one is smaller if some steps were idle."""
        if rows not in self._networks:
            self._networks[rows] = NetworkPass(self._weights, rows, is_training=True)
        return self._networks[rows]

    def _value_error(self, values: Array, minibatch: Samples) -> tuple[Array, Array]:
        """Return values minus returns, and the same with zeros where value clipping stops the gradient."""
        clip_range = self._algo.clip_range_value
        if clip_range is None:
            value_error = values - minibatch.returns
            return value_error, value_error.copy()
        change = values - minibatch.values
        clipped_values = minibatch.values + np.minimum(np.maximum(change, -clip_range), clip_range)
        value_error = clipped_values - minibatch.returns
        return value_error, value_error * (np.abs(change) <= clip_range)

    def loss(self, losses: tuple[float, ...]) -> float:
        """Return the total loss of a minibatch."""
        policy_loss, value_loss, entropy, *_ = losses
        return policy_loss - self._algo.entropy_coef * entropy + self._algo.value_coef * value_loss


def _mean(values: Array) -> Array:
    mean: Array = np.add.reduce(values, axis=1) / values.shape[1]
    return mean


def normalize_advantages(advantages: Array) -> None:
    """Give the advantages (seeds, minibatches, rows) of each minibatch mean 0 and standard deviation 1, in place."""
    if advantages.size == 0 or advantages.shape[2] == 1:
        return
    advantages -= advantages.mean(axis=2, keepdims=True)
    advantages /= advantages.std(axis=2, ddof=1, keepdims=True) + 1e-8


def explained_variance(samples: Samples, seed: int) -> float:
    """Return the share of the returns' variance that the values explain."""
    returns = samples.returns[seed]
    variance = float(np.var(returns))
    if not variance:
        return float("nan")
    return 1.0 - float(np.var(returns - samples.values[seed])) / variance
