"""Hindsight replay: relabel transitions with goals that were reached later in the same episode (future, k = 4).

A goal-conditioned table learns a sparse task on a large grid. Without relabelling it almost never sees a reward.
"""

from __future__ import annotations

import numpy as np

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least
from rlx.design.recipes.small_worlds import MOVES, Floats

WIDTH = 10
HORIZON = 20
FUTURE = 4
EPISODES = 3000
"""Enough with hindsight, too few without."""
GAMMA = 0.98
NEVER = -1 / (1 - GAMMA)
"""The value of never reaching the goal. Untried actions start there, so that the greedy policy follows known paths."""


def moved(cell: int, action: int) -> int:
    """Return the cell after a move; walls stop."""
    row = min(max(cell // WIDTH + MOVES[action][0], 0), WIDTH - 1)
    column = min(max(cell % WIDTH + MOVES[action][1], 0), WIDTH - 1)
    return row * WIDTH + column


def relabelled(episode: list[tuple[int, int, int]], rng: np.random.Generator) -> list[tuple[int, int, int, int]]:
    """Return (cell, action, next cell, goal) with goals that the episode reached at or after each step."""
    rows = []
    for index, (cell, action, after) in enumerate(episode):
        for later in rng.integers(index, len(episode), size=FUTURE):
            rows.append((cell, action, after, episode[later][2]))
    return rows


def learn(rng: np.random.Generator, *, episodes: int, has_hindsight: bool) -> Floats:
    """Learn action values [cell, goal, action] from episodes with random starts and goals; reward 0 at the goal."""
    cells = WIDTH * WIDTH
    values = np.full((cells, cells, 4), NEVER)
    for _ in range(episodes):
        cell, goal = (int(number) for number in rng.integers(cells, size=2))
        episode = []
        rows = []
        for _ in range(HORIZON):
            action = int(values[cell, goal].argmax())
            if rng.random() < 0.3 or values[cell, goal].max() == NEVER:
                action = int(rng.integers(4))
            after = moved(cell, action)
            episode.append((cell, action, after))
            rows.append((cell, action, after, goal))
            cell = after
            if cell == goal:
                break
        if has_hindsight:
            rows += relabelled(episode, rng)
        for cell, action, after, wanted in reversed(rows):
            future = 0.0
            if after != wanted:
                future = -1.0 + GAMMA * float(values[after, wanted].max())
            values[cell, wanted, action] = future  # the world is deterministic: a full step is exact
    return values


def success(values: Floats, rng: np.random.Generator, *, episodes: int) -> float:
    """Return the share of random pairs of start and goal that the greedy policy connects."""
    reached = 0
    for _ in range(episodes):
        cell, goal = (int(number) for number in rng.integers(WIDTH * WIDTH, size=2))
        for _ in range(HORIZON):
            if cell == goal:
                break
            cell = moved(cell, int(values[cell, goal].argmax()))
        reached += cell == goal
    return reached / episodes


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Train the same number of episodes with and without relabelling."""
    rng = np.random.default_rng(seed)
    tests = int(600 * scale) + 300
    plain = success(learn(rng, episodes=EPISODES, has_hindsight=False), rng, episodes=tests)
    hindsight = success(learn(rng, episodes=EPISODES, has_hindsight=True), rng, episodes=tests)
    return [
        at_least("success with hindsight", hindsight, 0.9),
        at_least("gain over plain replay", hindsight - plain, 0.15),
    ]
