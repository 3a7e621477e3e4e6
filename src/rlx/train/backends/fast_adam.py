"""Adam as SB3 uses it, on the flat weights of every seed, with the gradient's norm clipped."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx.train.backends.fast_network import Weights, aligned

FIRST_DECAY, SECOND_DECAY, EPSILON = 0.9, 0.999, 1e-5


class Adam:
    """Moments and step counts of S seeds; each is stepped by itself, so that one may stop before the others."""

    def __init__(self, weights: Weights) -> None:
        seeds = len(weights.flat)
        self.weights = weights
        self.first = Weights(weights.shape, seeds=seeds, dtype=weights.dtype)
        self.second = Weights(weights.shape, seeds=seeds, dtype=weights.dtype)
        self.steps = [0] * seeds
        self.norms = [0.0] * seeds  # of the last gradients, before they were scaled down
        self._scratch = aligned(weights.flat.shape[1:], weights.dtype)

    def step(self, gradients: Weights, seeds: Iterable[int], *, learning_rate: float, largest_norm: float) -> None:
        """Move the weights of these seeds; their gradients are scaled down to the norm they may have at most."""
        for seed in seeds:
            gradient = gradients.flat[seed]
            norm = self.norms[seed] = math.sqrt(float(np.dot(gradient, gradient)))
            scale = min(1.0, largest_norm / (norm + 1e-6))
            if scale < 1.0:
                np.multiply(gradient, scale, out=gradient)
            self._move(seed, gradient, learning_rate)

    def _move(self, seed: int, gradient: NDArray[Any], learning_rate: float) -> None:
        first, second, scratch = self.first.flat[seed], self.second.flat[seed], self._scratch
        self.steps[seed] += 1
        steps = self.steps[seed]
        np.multiply(first, FIRST_DECAY, out=first)
        np.multiply(gradient, 1 - FIRST_DECAY, out=scratch)
        np.add(first, scratch, out=first)
        np.multiply(second, SECOND_DECAY, out=second)
        np.multiply(gradient, gradient, out=scratch)
        np.multiply(scratch, 1 - SECOND_DECAY, out=scratch)
        np.add(second, scratch, out=second)
        np.multiply(second, 1 / (1 - SECOND_DECAY**steps), out=scratch)
        np.sqrt(scratch, out=scratch)
        np.add(scratch, EPSILON, out=scratch)
        np.divide(first, scratch, out=scratch)
        np.multiply(scratch, learning_rate / (1 - FIRST_DECAY**steps), out=scratch)
        np.subtract(self.weights.flat[seed], scratch, out=self.weights.flat[seed])
