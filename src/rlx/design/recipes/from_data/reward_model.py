"""A reward model from preferences (Bradley-Terry): −log σ(R(w) − R(l)), bounded by tanh, judged on held-out pairs.

R is the sum over a segment of tanh(features · weights). The bound keeps a policy from finding endless reward.
"""

from __future__ import annotations

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most
from rlx.design.recipes.small_worlds import Floats


class RewardModel:
    """A bounded linear reward per step."""

    def __init__(self, features: int) -> None:
        self.weights = np.zeros(features)

    def reward(self, features: Floats) -> Floats:
        """Return the reward of every step, between −1 and 1."""
        return np.tanh(features @ self.weights)

    def segment(self, features: Floats) -> Floats:
        """Return the summed reward of segments [segments, steps, features]."""
        total: Floats = self.reward(features).sum(axis=1)
        return total

    def fit(self, winners: Floats, losers: Floats, *, steps: int = 400, rate: float = 0.5) -> None:
        """Minimise the Bradley-Terry loss by gradient descent, with a small weight decay."""
        for _ in range(steps):
            gap = np.clip(self.segment(winners) - self.segment(losers), -30, 30)
            miss = 1 / (1 + np.exp(gap))  # σ(−gap)
            slope = self._slope(winners) - self._slope(losers)
            self.weights += rate * ((miss[:, None] * slope).mean(axis=0) - 1e-3 * self.weights)

    def _slope(self, features: Floats) -> Floats:
        inner = 1 - self.reward(features) ** 2
        slope: Floats = (inner[:, :, None] * features).sum(axis=1)
        return slope

    def accuracy(self, winners: Floats, losers: Floats) -> float:
        """Return the share of pairs that are ranked as the annotator did."""
        return float((self.segment(winners) > self.segment(losers)).mean())


def pairs(rng: np.random.Generator, count: int, true_weights: Floats) -> tuple[Floats, Floats]:
    """Return segments of 8 steps, the better one first, by a hidden reward. Near ties are left out."""
    first = rng.normal(size=(2 * count, 8, len(true_weights)))
    second = rng.normal(size=(2 * count, 8, len(true_weights)))
    gaps = ((first - second) @ true_weights).sum(axis=1)
    clear = np.argsort(-np.abs(gaps))[:count]
    first = first[clear]
    second = second[clear]
    is_first = gaps[clear] > 0
    winners = np.where(is_first[:, None, None], first, second)
    losers = np.where(is_first[:, None, None], second, first)
    return winners, losers


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Fit separable preferences, measure held-out accuracy, and the same with labels at random."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=5) * 0.3
    count = int(800 * scale) + 400
    model = RewardModel(5)
    model.fit(*pairs(rng, count, hidden))
    held_out = pairs(rng, 400, hidden)
    blind = RewardModel(5)
    blind.fit(*_swapped(rng, *pairs(rng, count, hidden)))
    chance = blind.accuracy(*_swapped(rng, *pairs(rng, 2000, hidden)))
    largest = float(np.abs(model.reward(100 * held_out[0])).max())
    return [
        at_least("held-out accuracy", model.accuracy(*held_out), 0.9),
        at_most("distance of the accuracy from chance with random labels", abs(chance - 0.5), 0.06),
        at_most("largest reward of any step", largest, 1.0),
    ]


def _swapped(rng: np.random.Generator, winners: Floats, losers: Floats) -> tuple[Floats, Floats]:
    """Return the pairs with labels at random."""
    is_swapped = rng.random(len(winners))[:, None, None] < 0.5
    return np.where(is_swapped, losers, winners), np.where(is_swapped, winners, losers)
