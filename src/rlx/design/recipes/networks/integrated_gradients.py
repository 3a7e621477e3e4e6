"""Integrated gradients of a network: attributions that add up to F(x) − F(baseline), and leave unused inputs at 0."""

from __future__ import annotations

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most
from rlx.design.recipes.small_worlds import Floats


class SmallNetwork:
    """One hidden layer with tanh and one output, with its gradient."""

    def __init__(self, inputs: int, *, seed: int, hidden: int = 32) -> None:
        rng = np.random.default_rng(seed)
        self.first = rng.normal(size=(inputs, hidden)) / np.sqrt(inputs)
        self.second = rng.normal(size=hidden) / np.sqrt(hidden)

    def value(self, inputs: Floats) -> Floats:
        output: Floats = np.tanh(inputs @ self.first) @ self.second
        return output

    def gradient(self, inputs: Floats) -> Floats:
        """Return the derivative with respect to every input."""
        slope = (1 - np.tanh(inputs @ self.first) ** 2) * self.second
        gradient: Floats = slope @ self.first.T
        return gradient


def attributions(network: SmallNetwork, inputs: Floats, baseline: Floats, *, steps: int = 50) -> Floats:
    """Return the integral of the gradient from the baseline to the inputs (midpoint rule), times the difference."""
    shares = (np.arange(steps) + 0.5) / steps
    path = baseline + shares[:, None] * (inputs - baseline)
    return (inputs - baseline) * network.gradient(path).mean(axis=0)


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Check completeness on several states, an unused input, and the ranking of a planted important input."""
    rng = np.random.default_rng(seed)
    network = SmallNetwork(6, seed=seed)
    network.first[3] = 0.0
    network.first[1] = 0.5 * np.sign(network.second)
    baseline = np.zeros(6)
    errors = []
    unused = []
    strongest = []
    for _ in range(int(20 * scale) + 10):
        state = rng.normal(size=6)
        parts = attributions(network, state, baseline)
        difference = float(network.value(state) - network.value(baseline))
        errors.append(abs(parts.sum() - difference) / max(abs(difference), 0.1))
        unused.append(abs(parts[3]))
        strongest.append(np.abs(parts))
    share = np.mean(strongest, axis=0)
    return [
        at_most("largest relative error of the sum", max(errors), 0.01),
        at_most("attribution of an unused input", max(unused), 0.0),
        at_least("share of the planted input", float(share[1] / share.sum()), 0.3),
    ]
