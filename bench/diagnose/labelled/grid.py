"""A grid world: walk to a goal that moves to another place in every episode."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

MOVES = ((1, 0), (-1, 0), (0, 1), (0, -1))


class GoalGrid(gymnasium.Env[Any, Any]):
    """Pays 1 at the goal and costs 0.02 per step; shows both positions; at most 30 steps."""

    max_episode_steps = 30

    def __init__(self, size: int = 7) -> None:
        self.size = size
        self.observation_space = spaces.Box(0.0, 1.0, (4,), np.float32)
        self.action_space = spaces.Discrete(len(MOVES))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        here, there = self.np_random.choice(self.size**2, size=2, replace=False)
        self.place, self.goal = (np.array(divmod(int(cell), self.size)) for cell in (here, there))
        self.steps = 0
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.place = np.clip(self.place + MOVES[int(action)], 0, self.size - 1)
        self.steps += 1
        is_there = bool((self.place == self.goal).all())
        terms = {"goal": float(is_there), "step": -0.02}
        info = {"reward_terms": terms, "is_success": is_there}
        is_late = self.steps >= self.max_episode_steps and not is_there
        return self._observation(), sum(terms.values()), is_there, is_late, info

    def _observation(self) -> Any:
        seen = np.concatenate([self.place, self.goal])
        return (seen / (self.size - 1)).astype(np.float32)
