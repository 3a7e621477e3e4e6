"""A pipeline for preference data: pairs by episode, labels of several annotators, agreement beyond chance, hold-out.

Pairs are split by episode, so that no segment of a held-out episode is trained on. Cohen's κ corrects for chance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most


@dataclass(frozen=True)
class LabelledPair:
    """Two segments by their episodes, and which one each annotator preferred (0 or 1)."""

    episodes: tuple[int, int]
    labels: tuple[int, ...]

    @property
    def majority(self) -> int | None:
        """The label of most annotators, or None if they are split."""
        votes = 2 * sum(self.labels) - len(self.labels)
        if votes == 0:
            return None
        return int(votes > 0)


def kappa(first: list[int], second: list[int]) -> float:
    """Return Cohen's κ: agreement beyond chance, 1 is perfect and 0 is chance."""
    observed = float(np.mean([a == b for a, b in zip(first, second, strict=True)]))
    rates = (np.mean(first), np.mean(second))
    by_chance = rates[0] * rates[1] + (1 - rates[0]) * (1 - rates[1])
    return float((observed - by_chance) / (1 - by_chance))


def split(pairs: list[LabelledPair], *, hold_out: float, seed: int) -> tuple[list[LabelledPair], list[LabelledPair]]:
    """Split by episode. A pair with one episode on each side belongs to neither half."""
    rng = np.random.default_rng(seed)
    episodes = sorted({episode for pair in pairs for episode in pair.episodes})
    held = set(rng.permutation(episodes)[: int(hold_out * len(episodes))].tolist())
    training = [pair for pair in pairs if not held & set(pair.episodes)]
    testing = [pair for pair in pairs if set(pair.episodes) <= held]
    return training, testing


def annotated(rng: np.random.Generator, *, count: int, error: float) -> list[LabelledPair]:
    """Return pairs of 60 episodes with hidden qualities; two annotators err independently."""
    quality = rng.normal(size=60)
    pairs = []
    for _ in range(count):
        first, second = (int(number) for number in rng.choice(60, 2, replace=False))
        truth = int(quality[second] > quality[first])
        labels = tuple(truth ^ int(rng.random() < error) for _ in range(2))
        pairs.append(LabelledPair((first, second), labels))
    return pairs


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Measure the agreement of annotators with a known error rate, and look for shared episodes."""
    rng = np.random.default_rng(seed)
    error = 0.1
    pairs = annotated(rng, count=int(6000 * scale) + 6000, error=error)
    measured = kappa([pair.labels[0] for pair in pairs], [pair.labels[1] for pair in pairs])
    planted = (1 - 2 * error) ** 2
    training, testing = split(pairs, hold_out=0.3, seed=seed)
    shared = {episode for pair in training for episode in pair.episodes} & {
        episode for pair in testing for episode in pair.episodes
    }
    return [
        at_most("error of κ", abs(measured - planted), 0.05),
        at_most("episodes in both halves", len(shared), 0.0),
        at_least("held-out pairs", len(testing), 50.0),
    ]
