"""CartPole-v1's dynamics for many carts at once, as arrays: the batched world that the benchmarks train on."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

GRAVITY, POLE_MASS, TOTAL_MASS, HALF_LENGTH, FORCE, SECONDS = 9.8, 0.1, 1.1, 0.5, 10.0, 0.02
FAR, TILTED = 2.4, 12 * 2 * np.pi / 360
MOST = np.array([FAR * 2, np.inf, TILTED * 2, np.inf], dtype=np.float32)


class Carts(VectorEnv):
    """Balances `num_envs` poles; truncates after `horizon` steps and starts the next episode in the same step."""

    metadata: ClassVar[dict[str, Any]] = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}

    def __init__(self, num_envs: int = 1, horizon: int = 500) -> None:
        self.num_envs, self.horizon = num_envs, horizon
        self.single_observation_space = Box(-MOST, MOST, dtype=np.float32)
        self.single_action_space = Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.state = np.zeros((4, num_envs))
        self.ages = np.zeros(num_envs, dtype=np.int64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._begin(np.ones(self.num_envs, dtype=bool))
        return self.state.T.astype(np.float32), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        self._push(np.where(actions == 1, FORCE, -FORCE))
        self.ages += 1
        terminated = (np.abs(self.state[0]) > FAR) | (np.abs(self.state[2]) > TILTED)
        truncated = (self.ages >= self.horizon) & ~terminated
        seen = self.state.T.astype(np.float32)
        ended = terminated | truncated
        rewards = np.ones(self.num_envs)
        if not ended.any():
            return seen, rewards, terminated, truncated, {}
        self._begin(ended)
        return self.state.T.astype(np.float32), rewards, terminated, truncated, {"final_obs": seen, "_final_obs": ended}

    def _push(self, force: Any) -> None:
        _, speed, angle, spin = self.state
        cosine, sine = np.cos(angle), np.sin(angle)
        pull = (force + POLE_MASS * HALF_LENGTH * spin**2 * sine) / TOTAL_MASS
        twist = (GRAVITY * sine - cosine * pull) / (HALF_LENGTH * (4 / 3 - POLE_MASS * cosine**2 / TOTAL_MASS))
        drive = pull - POLE_MASS * HALF_LENGTH * twist * cosine / TOTAL_MASS
        self.state += SECONDS * np.stack([speed, drive, spin, twist])

    def _begin(self, which: Any) -> None:
        self.state[:, which] = self.np_random.uniform(-0.05, 0.05, (4, int(which.sum())))
        self.ages[which] = 0
