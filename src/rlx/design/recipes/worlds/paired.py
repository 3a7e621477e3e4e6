"""PAIRED: an adversary proposes levels with high regret, the antagonist's return minus the protagonist's.

Each level hides the right one of four actions. Some levels cannot be solved: nobody gains there, so their regret is 0
and the adversary avoids them. An adversary that minimises the protagonist's return would choose exactly those.
"""

from __future__ import annotations

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most
from rlx.design.recipes.small_worlds import Floats, softmax

LEVELS = 12
UNSOLVABLE = 4
ACTIONS = 4


class LevelAgent:
    """A table of logits [level, action], trained by policy gradient."""

    def __init__(self, rate: float) -> None:
        self.logits = np.zeros((LEVELS, ACTIONS))
        self.rate = rate

    def chance_of(self, level: int, answer: int) -> float:
        return float(softmax(self.logits[level])[answer])

    def play(self, level: int, answers: Floats, rng: np.random.Generator) -> float:
        """Play one episode, learn from it, and return its reward."""
        chances = softmax(self.logits[level])
        action = int(rng.choice(ACTIONS, p=chances))
        reward = float(action == answers[level])
        slope = -chances
        slope[action] += 1.0
        self.logits[level] += self.rate * (reward - 0.25) * slope
        return reward


def train(rng: np.random.Generator, *, rounds: int, by_regret: bool) -> tuple[Floats, Floats]:
    """Return the regret of every round and the adversary's last choice of levels."""
    answers = rng.integers(ACTIONS, size=LEVELS).astype(float)
    answers[-UNSOLVABLE:] = -1
    protagonist = LevelAgent(rate=0.2)
    antagonist = LevelAgent(rate=0.8)
    preferences = np.zeros(LEVELS)
    regrets = []
    for _ in range(rounds):
        choice = softmax(preferences)
        level = int(rng.choice(LEVELS, p=choice))
        best = max(antagonist.play(level, answers, rng) for _ in range(4))
        mean = float(np.mean([protagonist.play(level, answers, rng) for _ in range(4)]))
        regrets.append(best - mean)
        score = 1 - mean
        if by_regret:
            score = best - mean
        slope = -choice
        slope[level] += 1.0
        preferences = 0.995 * preferences + 0.3 * (score - 0.3) * slope
    return np.array(regrets), softmax(preferences)


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Train with regret and with the worst return, and compare regret and the share of unsolvable levels."""
    rng = np.random.default_rng(seed)
    rounds = int(600 * scale) + 600
    regrets, choice = train(rng, rounds=rounds, by_regret=True)
    worst_choice = train(rng, rounds=rounds, by_regret=False)[1]
    tenth = rounds // 10
    return [
        at_least("regret in the first tenth", float(regrets[:tenth].mean()), 0.15),
        at_most(
            "regret in the last tenth / in the first", float(regrets[-tenth:].mean() / regrets[:tenth].mean()), 0.5
        ),
        at_most("unsolvable levels chosen by regret", float(choice[-UNSOLVABLE:].sum()), UNSOLVABLE / LEVELS + 0.1),
        at_least("unsolvable levels chosen by the worst return", float(worst_choice[-UNSOLVABLE:].sum()), 0.5),
    ]
