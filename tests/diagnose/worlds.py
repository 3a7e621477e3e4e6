"""Corridors with reward terms: in one a coin can be farmed instead of reaching the goal, in the other nothing can."""

CORRIDORS = '''
"""Corridors: start anywhere, the goal is at the right end."""

import gymnasium
import numpy as np


class Corridor(gymnasium.Env):
    """Nine cells; the goal pays and ends the episode, a step costs a little, progress is a difference of potentials."""

    observation_space = gymnasium.spaces.Box(0, 1, (9,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    max_episode_steps = 30
    coin = 0.0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(1, 8))
        return self._look(), {}

    def _look(self):
        return np.eye(9, dtype=np.float32)[self.cell]

    def step(self, action):
        before = self.cell
        self.cell = min(8, max(0, before + (1 if action == 1 else -1)))
        is_there = self.cell == 8
        terms = {
            "goal": float(is_there),
            "progress": 0.1 * (0.99 * self.cell - before),
            "time": -0.01,
            "coin": self.coin * (self.cell <= 1),
        }
        if not self.coin:
            del terms["coin"]
        info = {"reward_terms": terms, "is_success": is_there, "cell": self.cell}
        return self._look(), sum(terms.values()), is_there, False, info


class Farm(Corridor):
    """The same with a coin that the left end pays again and again."""

    coin = 0.5
'''
