"""Cross-play: agents of different training seeds play together. A drop below self-play shows private conventions.

Two players must choose the same of several equally good signals. Each seed settles on its own.
"""

from __future__ import annotations

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most
from rlx.design.recipes.small_worlds import Floats, softmax

SIGNALS = 5


def train_pair(rng: np.random.Generator, *, steps: int) -> tuple[Floats, Floats]:
    """Train two players by policy gradient on agreement; return their policies."""
    logits = 0.1 * rng.normal(size=(2, SIGNALS))
    for _ in range(steps):
        chances = softmax(logits)
        choices = [int(rng.choice(SIGNALS, p=row)) for row in chances]
        reward = float(choices[0] == choices[1])
        for player, choice in enumerate(choices):
            slope = -chances[player]
            slope[choice] += 1.0
            logits[player] += 0.5 * (reward - 1 / SIGNALS) * slope
    final = softmax(logits)
    return final[0], final[1]


def play_matrix(pairs: list[tuple[Floats, Floats]]) -> Floats:
    """Return the expected agreement of every first player with every second player."""
    return np.array([[float(first @ second) for _, second in pairs] for first, _ in pairs])


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Train several seeds, and compare the diagonal (self-play) with the rest (cross-play)."""
    rng = np.random.default_rng(seed)
    matrix = play_matrix([train_pair(rng, steps=600) for _ in range(int(6 * scale) + 6)])
    self_play = float(np.diag(matrix).mean())
    others = matrix[~np.eye(len(matrix), dtype=bool)]
    return [
        at_least("self-play", self_play, 0.9),
        at_most("cross-play", float(others.mean()), 0.6),
    ]
