"""How many episodes an evaluation needs: n = (1.96 σ / half-width)², and what intervals of too few episodes cover."""

from __future__ import annotations

import math

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most
from rlx.design.recipes.small_worlds import Floats

Z = 1.959964


def episodes_for(spread: float, half_width: float) -> int:
    """Return the episodes that give a 95 % interval of this half-width."""
    return math.ceil((Z * spread / half_width) ** 2)


def coverage(returns: Floats, truth: float) -> float:
    """Return the share of rows whose normal interval contains the truth."""
    error = Z * returns.std(axis=1, ddof=1) / math.sqrt(returns.shape[1])
    return float((np.abs(returns.mean(axis=1) - truth) <= error).mean())


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Simulate evaluations with returns that fail now and then, of 3 and of enough episodes."""
    rng = np.random.default_rng(seed)
    rows = int(6000 * scale) + 4000
    mean = 0.8 * 200
    spread = 200 * math.sqrt(0.8 * 0.2)
    count = episodes_for(spread, 20.0)
    enough = np.where(rng.random((rows, count)) < 0.8, 200.0, 0.0)
    few = np.where(rng.random((rows, 3)) < 0.8, 200.0, 0.0)
    half_width = float(Z * enough.std(axis=1, ddof=1).mean() / math.sqrt(count))
    return [
        at_least("coverage of intervals with enough episodes", coverage(enough, mean), 0.92),
        at_most("coverage of intervals with 3 episodes", coverage(few, mean), 0.7),
        at_most("error of the half-width of 20", abs(half_width - 20.0), 1.0),
    ]
