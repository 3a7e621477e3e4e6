"""Prioritised replay with a sum tree: sample in proportion to p^α, and correct the bias with weights (N p)^−β."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rlx.design.recipes.recipe_claim import RecipeClaim, at_most
from rlx.design.recipes.small_worlds import Floats

Ints = NDArray[np.int_]


class SumTree:
    """A binary tree whose inner nodes hold the sum below them: updates and draws take log₂ n steps."""

    def __init__(self, size: int) -> None:
        self.leaves = 1
        while self.leaves < size:
            self.leaves *= 2
        self.sums = np.zeros(2 * self.leaves)

    def put(self, index: int, priority: float) -> None:
        """Set the priority of one entry."""
        node = index + self.leaves
        self.sums[node] = priority
        while node > 1:
            node //= 2
            self.sums[node] = self.sums[2 * node] + self.sums[2 * node + 1]

    def find(self, mass: float) -> int:
        """Return the entry at which the running sum of priorities passes a value."""
        node = 1
        while node < self.leaves:
            node *= 2
            if mass >= self.sums[node]:
                mass -= self.sums[node]
                node += 1
        return node - self.leaves

    @property
    def total(self) -> float:
        return float(self.sums[1])


class PrioritizedReplay:
    """A buffer of values with priorities."""

    def __init__(self, size: int, *, alpha: float = 0.6) -> None:
        self.tree = SumTree(size)
        self.values = np.zeros(size)
        self.alpha = alpha
        self.count = 0

    def add(self, value: float, error: float) -> None:
        """Store a value with its temporal-difference error."""
        index = self.count % len(self.values)
        self.values[index] = value
        self.tree.put(index, (abs(error) + 1e-6) ** self.alpha)
        self.count += 1

    def sample(self, count: int, rng: np.random.Generator, *, beta: float) -> tuple[Ints, Floats]:
        """Return indexes and importance weights, the largest weight scaled to one."""
        edges = np.arange(count) / count * self.tree.total
        indexes = np.array([self.tree.find(edge + rng.random() * self.tree.total / count) for edge in edges])
        shares = self.tree.sums[indexes + self.tree.leaves] / self.tree.total
        weights = (min(self.count, len(self.values)) * shares) ** -beta
        return indexes, weights / weights.max()


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Compare the drawn shares with p^α, and the weighted mean with the true mean."""
    rng = np.random.default_rng(seed)
    errors = rng.exponential(size=100)
    values = errors**2
    replay = PrioritizedReplay(100)
    for value, error in zip(values, errors, strict=True):
        replay.add(float(value), float(error))
    drawn, weights = replay.sample(int(80_000 * scale) + 20_000, rng, beta=1.0)
    shares = np.bincount(drawn, minlength=100) / len(drawn)
    wanted = (errors + 1e-6) ** 0.6
    wanted = wanted / wanted.sum()
    estimate = float((weights * values[drawn]).sum() / weights.sum())
    return [
        at_most("largest error of a share", float(np.abs(shares - wanted).max()), 0.002),
        at_most("relative error of the corrected mean", abs(estimate / values.mean() - 1), 0.02),
    ]
