"""The winner of a search is lucky: its score on the search's seeds is biased upwards, fresh seeds are not.

All configs are equal here. Still, the best of 20 looks clearly better than the rest until it is trained again.
"""

from __future__ import annotations

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most


def winners(rng: np.random.Generator, *, trials: int, seeds: int, repeats: int) -> tuple[float, float]:
    """Return the winner's mean score on the search's seeds and on as many fresh ones; the truth is 0."""
    searched = rng.normal(size=(repeats, trials, seeds)).mean(axis=2)
    claimed = searched.max(axis=1)
    fresh = rng.normal(size=(repeats, seeds)).mean(axis=1)
    return float(claimed.mean()), float(fresh.mean())


def log_uniform(rng: np.random.Generator, low: float, high: float, count: int) -> list[float]:
    """Return learning rates that are spread evenly over orders of magnitude."""
    return np.exp(rng.uniform(np.log(low), np.log(high), count)).tolist()


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Repeat a search among equals many times."""
    rng = np.random.default_rng(seed)
    claimed, fresh = winners(rng, trials=20, seeds=3, repeats=int(4000 * scale) + 2000)
    rates = np.array(log_uniform(rng, 1e-5, 1e-3, 4000))
    below = float((rates < 1e-4).mean())
    return [
        at_least("bias of the winner on the search's seeds, in standard deviations", claimed, 0.8),
        at_most("bias of the winner on fresh seeds", abs(fresh), 0.05),
        at_most("error of the share of rates below the geometric middle", abs(below - 0.5), 0.05),
    ]
