"""A time limit is a truncation: bootstrap the value after it. Treated as an end, values become far too small.

The task pays 1 per step and never ends, so its value is 1 / (1 − γ). Episodes are cut after 10 steps.
"""

from __future__ import annotations

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_most

GAMMA = 0.95
LIMIT = 10
STATES = 5


def learned_value(rng: np.random.Generator, *, episodes: int, bootstraps: bool) -> float:
    """Learn values by TD(0) on a ring of states; return their mean."""
    values = np.zeros(STATES)
    for episode in range(episodes):
        state = int(rng.integers(STATES))
        rate = 0.5 / (1 + episode / 100)
        for step in range(LIMIT):
            after = (state + int(rng.choice((-1, 1)))) % STATES
            is_truncated = step == LIMIT - 1
            future = values[after]
            if is_truncated and not bootstraps:
                future = 0.0
            values[state] += rate * (1.0 + GAMMA * future - values[state])
            state = after
    return float(values.mean())


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Learn the same task with and without bootstrapping at the limit."""
    rng = np.random.default_rng(seed)
    true_value = 1 / (1 - GAMMA)
    episodes = int(1500 * scale) + 1500
    right = learned_value(rng, episodes=episodes, bootstraps=True)
    wrong = learned_value(rng, episodes=episodes, bootstraps=False)
    return [
        at_most("relative error with bootstrapping", abs(right / true_value - 1), 0.01),
        at_most("value without bootstrapping / true value", wrong / true_value, 0.6),
    ]
