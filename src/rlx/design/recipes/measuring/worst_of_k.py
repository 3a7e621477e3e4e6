"""The worst of k episodes: a tail measure that depends on k, so compare only at equal k.

From n > k episodes, the expected worst of k has a closed form over the sorted returns. It uses all of them, and is less
noisy than looking at one group of k.
"""

from __future__ import annotations

from math import comb

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_most
from rlx.design.recipes.small_worlds import Floats


def expected_worst(returns: Floats, k: int) -> float:
    """Return the mean of the smallest of k, over all groups of k of these returns."""
    ordered = np.sort(returns)
    count = len(ordered)
    weights = np.array([comb(count - 1 - index, k - 1) / comb(count, k) for index in range(count)])
    return float(weights @ ordered)


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Compare with the known answer for exponential returns (1/k), and with single groups of k."""
    rng = np.random.default_rng(seed)
    k = 5
    repeats = int(1500 * scale) + 500
    data = rng.exponential(size=(repeats, 50))
    estimates = np.array([expected_worst(row, k) for row in data])
    single = data[:, :k].min(axis=1)
    tiny = np.array([3.0, 1.0, 2.0])
    return [
        at_most("error of the mean estimate", abs(float(estimates.mean()) - 1 / k), 0.02),
        at_most("noise / noise of one group", float(estimates.std() / single.std()), 0.6),
        at_most("error for the worst of all", abs(expected_worst(tiny, 3) - 1.0), 1e-12),
    ]
