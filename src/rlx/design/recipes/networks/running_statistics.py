"""Running mean and variance of observations (Welford, in batches), frozen in evaluation and stored with checkpoints.

Updating by batches (Chan's formula) gives the same result as one pass over all data, also far from zero.
"""

from __future__ import annotations

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_most
from rlx.design.recipes.small_worlds import Floats


class RunningStatistics:
    """Mean and variance per number; `is_frozen` stops updates in evaluation."""

    def __init__(self, size: int) -> None:
        self.mean = np.zeros(size)
        self.squares = np.zeros(size)
        self.count = 0
        self.is_frozen = False

    def update(self, batch: Floats) -> None:
        """Add a batch [samples, numbers]."""
        if self.is_frozen:
            return
        added = len(batch)
        difference = batch.mean(axis=0) - self.mean
        total = self.count + added
        self.squares += ((batch - batch.mean(axis=0)) ** 2).sum(axis=0) + difference**2 * self.count * added / total
        self.mean += difference * added / total
        self.count = total

    @property
    def variance(self) -> Floats:
        variance: Floats = self.squares / max(self.count, 1)
        return variance

    def normalize(self, batch: Floats, *, clip: float = 10.0) -> Floats:
        """Return observations of about size one, with outliers clipped."""
        return np.clip((batch - self.mean) / np.sqrt(self.variance + 1e-8), -clip, clip)


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Compare batches of random sizes with the result of one pass, on data far from zero."""
    rng = np.random.default_rng(seed)
    data = rng.normal([1e6, 0.0, -3.0], [2.0, 1e-3, 50.0], size=(int(20_000 * scale) + 100, 3))
    statistics = RunningStatistics(3)
    at = 0
    while at < len(data):
        step = int(rng.integers(1, 200))
        statistics.update(data[at : at + step])
        at += step
    error = np.abs(statistics.variance / data.var(axis=0) - 1).max()
    statistics.is_frozen = True
    before = statistics.mean.copy()
    statistics.update(np.zeros((10, 3)))
    return [
        at_most("relative error of the variance", float(error), 1e-6),
        at_most("relative error of the mean", float(np.abs(statistics.mean - data.mean(axis=0)).max() / 1e6), 1e-9),
        at_most("change of frozen statistics", float(np.abs(statistics.mean - before).max()), 0.0),
    ]
