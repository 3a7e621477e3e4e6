"""The interquartile mean with a bootstrap interval: less noise than the mean when single seeds fail."""

from __future__ import annotations

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most
from rlx.design.recipes.small_worlds import Floats


def interquartile_mean(scores: Floats) -> Floats:
    """Return the mean of the middle half over the last axis."""
    ordered = np.sort(scores, axis=-1)
    cut = scores.shape[-1] // 4
    middle: Floats = ordered[..., cut : scores.shape[-1] - cut].mean(axis=-1)
    return middle


def bootstrap_interval(scores: Floats, rng: np.random.Generator, *, draws: int = 1000) -> tuple[float, float]:
    """Return a 95 % percentile interval."""
    drawn = rng.choice(scores, size=(draws, len(scores)))
    low, high = np.quantile(interquartile_mean(drawn), [0.025, 0.975])
    return float(low), float(high)


def scores_of(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return scores of seeds: most near 100, some failures near 0."""
    is_failed = rng.random(shape) < 0.1
    return np.where(is_failed, rng.normal(0, 5, shape), rng.normal(100, 5, shape))


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Compare the noise of both estimates over many repeated experiments, and the interval's coverage."""
    rng = np.random.default_rng(seed)
    many = scores_of(rng, (4000, 12))
    ratio = float(interquartile_mean(many).std() / many.mean(axis=1).std())
    truth = float(interquartile_mean(scores_of(rng, (200_000,))))
    repeats = int(200 * scale) + 150
    hits = 0
    for _ in range(repeats):
        low, high = bootstrap_interval(scores_of(rng, (20,)), rng, draws=400)
        hits += low <= truth <= high
    return [
        at_most("noise of the interquartile mean / of the mean", ratio, 0.6),
        at_least("coverage of the bootstrap interval", hits / repeats, 0.85),
    ]
