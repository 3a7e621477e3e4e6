"""The PPO update: clipped surrogate, value and entropy loss and their derivatives, epoch by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx.config.schema import Ppo
from rlx.train.backends.fast_actions import Actions
from rlx.train.backends.fast_adam import Adam
from rlx.train.backends.fast_network import Pass, Weights
from rlx.train.backends.fast_rollout import Samples

Array = NDArray[Any]
FIGURES = ("policy_loss", "value_loss", "entropy", "clip_fraction", "approx_kl")


@dataclass
class Losses:
    """One seed's losses in one update, minibatch by minibatch; `epochs` it was trained for."""

    figures: list[tuple[float, ...]]
    norms: list[float] = field(default_factory=list)  # of the gradients, before they were scaled down
    epochs: int = 0
    last_epoch: int = 0  # where in `figures` it begins

    def begin_epoch(self) -> None:
        """Count one more epoch."""
        self.epochs += 1
        self.last_epoch = len(self.figures)

    def means(self) -> dict[str, float]:
        """Return the means SB3 logs: of the last epoch for the divergence, of all minibatches for the rest."""
        columns = np.array(self.figures)
        means = dict(zip(FIGURES, columns.mean(axis=0).tolist(), strict=True))
        return {**means, "approx_kl": float(columns[self.last_epoch :, -1].mean())}


class Update:
    """Everything an update needs, in memory of its own."""

    def __init__(self, weights: Weights, actions: Actions, algo: Ppo) -> None:
        self._weights, self._actions, self._algo = weights, actions, algo
        self._gradients = Weights(weights.shape, seeds=len(weights.flat), dtype=weights.dtype)
        self._passes: dict[int, Pass] = {}

    def run(
        self,
        samples: Samples,
        adam: Adam,
        generators: Mapping[int, np.random.Generator],
        *,
        learning_rate: float,
        clip_range: float,
    ) -> dict[int, Losses]:
        """Learn from a rollout, for the seeds whose generators these are.

        A seed whose policy moved too far (`target_kl`) stops before the others.
        """
        algo = self._algo
        losses = {seed: Losses([]) for seed in generators}
        active = list(generators)
        shuffled = samples.blank()
        for _ in range(algo.update_epochs):
            self._shuffle(samples, generators, active, shuffled)
            for seed in active:
                losses[seed].begin_epoch()
            for start in range(0, samples.inputs.shape[1], algo.batch_size):
                part = shuffled.part(slice(start, start + algo.batch_size))
                figures = self.gradients(part, clip_range=clip_range)
                for seed in active:
                    losses[seed].figures.append(tuple(float(column[seed]) for column in figures))
                if algo.target_kl is not None:
                    active = [seed for seed in active if losses[seed].figures[-1][-1] <= 1.5 * algo.target_kl]
                    if not active:
                        return losses
                adam.step(self._gradients, active, learning_rate=learning_rate, largest_norm=algo.max_grad_norm)
                for seed in active:
                    losses[seed].norms.append(adam.norms[seed])
        return losses

    def _shuffle(
        self, samples: Samples, generators: Mapping[int, np.random.Generator], seeds: Sequence[int], out: Samples
    ) -> None:
        """Put the samples of these seeds in a new order, and every minibatch's advantages on one scale."""
        for seed in seeds:
            samples.reorder(seed, generators[seed].permutation(samples.inputs.shape[1]), out)
        size = self._algo.batch_size
        whole = out.advantages.shape[1] // size * size
        if self._algo.normalize_advantage:
            normalise(out.advantages[:, :whole].reshape(len(out.advantages), -1, size))
            normalise(out.advantages[:, None, whole:])

    def gradients(self, part: Samples, *, clip_range: float) -> tuple[Array, ...]:
        """Fill the gradients of one minibatch and return its FIGURES, one a seed."""
        algo, rows = self._algo, part.chances.shape[1]
        both = self._pass(rows)
        both.forward(part.inputs)
        chances, entropy = self._actions.evaluate(both.head, part.targets, self._weights, part.closed)
        log_ratio = np.subtract(chances, part.chances, out=chances)
        ratio = np.exp(log_ratio)
        gain = part.advantages * ratio
        bounded = np.minimum(np.maximum(ratio, 1 - clip_range), 1 + clip_range)
        np.multiply(bounded, part.advantages, out=bounded)
        slope = gain * (gain <= bounded)
        np.multiply(slope, -1.0 / rows, out=slope)
        misses, value_slope = self._value_loss(both.values[:, 0], part)
        np.multiply(value_slope, 2.0 * algo.value_coef / rows, out=value_slope)
        head = self._actions.backward(slope, -algo.entropy_coef / rows, self._gradients)
        both.backward(part.inputs, head, value_slope[:, None], self._gradients)
        np.minimum(gain, bounded, out=gain)
        np.subtract(ratio, 1.0, out=ratio)
        divergence = _mean(ratio - log_ratio)
        moved = _mean(np.greater(np.abs(ratio, out=ratio), clip_range))
        return -_mean(gain), _mean(misses * misses), _mean(entropy), moved, divergence

    def _pass(self, rows: int) -> Pass:
        """Return the memory for minibatches of a size; the last one is smaller where steps were idle."""
        if rows not in self._passes:
            self._passes[rows] = Pass(self._weights, rows, is_training=True)
        return self._passes[rows]

    def _value_loss(self, values: Array, part: Samples) -> tuple[Array, Array]:
        """Return how far the values miss the returns, and the same where moving them still changes the loss."""
        most = self._algo.clip_range_value
        if most is None:
            misses = values - part.returns
            return misses, misses.copy()
        moved = values - part.values
        misses = part.values + np.minimum(np.maximum(moved, -most), most) - part.returns
        return misses, misses * (np.abs(moved) <= most)

    def loss(self, figures: tuple[float, ...]) -> float:
        """Return the total loss of a minibatch."""
        policy_loss, value_loss, entropy, *_ = figures
        return policy_loss - self._algo.entropy_coef * entropy + self._algo.value_coef * value_loss


def _mean(values: Array) -> Array:
    mean: Array = np.add.reduce(values, axis=1) / values.shape[1]
    return mean


def normalise(advantages: Array) -> None:
    """Give the advantages of every minibatch (seeds, minibatches, rows) mean 0 and deviation 1."""
    if advantages.size == 0 or advantages.shape[2] == 1:
        return
    advantages -= advantages.mean(axis=2, keepdims=True)
    advantages /= advantages.std(axis=2, ddof=1, keepdims=True) + 1e-8


def explained_variance(samples: Samples, seed: int) -> float:
    """Return the share of the returns' variance that the values explain."""
    returns = samples.returns[seed]
    spread = float(np.var(returns))
    return 1.0 - float(np.var(returns - samples.values[seed])) / spread if spread else float("nan")
