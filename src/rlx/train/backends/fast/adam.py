"""Adam as SB3 uses it, on the flat weights of every seed, with gradients clipped by their norm."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx.train.backends.fast.network import Weights, aligned

BETA1 = 0.9
BETA2 = 0.999
EPSILON = 1e-5


class Adam:
    """Moments and step counts of S seeds. Each seed steps on its own, so that one may stop before the others."""

    def __init__(self, weights: Weights) -> None:
        seeds = len(weights.flat)
        self.weights = weights
        self.first = Weights(weights.shape, seeds=seeds, dtype=weights.dtype)
        self.second = Weights(weights.shape, seeds=seeds, dtype=weights.dtype)
        self.steps = [0] * seeds
        self.gradient_norms = [0.0] * seeds  # of the last gradients, before clipping
        self._scratch = aligned(weights.flat.shape[1:], weights.dtype)

    def step(self, gradients: Weights, seeds: Iterable[int], *, learning_rate: float, max_grad_norm: float) -> None:
        """Update the weights of these seeds with gradients clipped to `max_grad_norm`."""
        for seed in seeds:
            gradient = gradients.flat[seed]
            norm = math.sqrt(float(np.dot(gradient, gradient)))
            self.gradient_norms[seed] = norm
            scale = min(1.0, max_grad_norm / (norm + 1e-6))
            if scale < 1.0:
                np.multiply(gradient, scale, out=gradient)
            self._update(seed, gradient, learning_rate)

    def _update(self, seed: int, gradient: NDArray[Any], learning_rate: float) -> None:
        first = self.first.flat[seed]
        second = self.second.flat[seed]
        scratch = self._scratch
        self.steps[seed] += 1
        steps = self.steps[seed]
        # first = beta1 * first + (1 - beta1) * gradient
        np.multiply(first, BETA1, out=first)
        np.multiply(gradient, 1 - BETA1, out=scratch)
        np.add(first, scratch, out=first)
        # second = beta2 * second + (1 - beta2) * gradient²
        np.multiply(second, BETA2, out=second)
        np.multiply(gradient, gradient, out=scratch)
        np.multiply(scratch, 1 - BETA2, out=scratch)
        np.add(second, scratch, out=second)
        # weights -= learning_rate * corrected first / (sqrt(corrected second) + epsilon)
        np.multiply(second, 1 / (1 - BETA2**steps), out=scratch)
        np.sqrt(scratch, out=scratch)
        np.add(scratch, EPSILON, out=scratch)
        np.divide(first, scratch, out=scratch)
        np.multiply(scratch, learning_rate / (1 - BETA1**steps), out=scratch)
        np.subtract(self.weights.flat[seed], scratch, out=self.weights.flat[seed])
