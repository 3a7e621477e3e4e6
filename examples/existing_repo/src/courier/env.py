"""One courier as a Gymnasium environment."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from courier.reward import RewardWeights, terms
from courier.world import ACTION_SIZE, OBSERVATION_SIZE, Square


class Courier(gymnasium.Env[np.ndarray, np.ndarray]):
    """Cross the square; `info["is_success"]` says at the end whether it stopped at the door."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (OBSERVATION_SIZE,), np.float64)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (ACTION_SIZE,), np.float64)

    def __init__(self, weights: RewardWeights | None = None) -> None:
        self.weights = weights or RewardWeights()
        self.square: Square | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.square = Square(1, np.random.default_rng(self.np_random.integers(2**63)))
        return self.square.observe()[0], {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        assert self.square is not None
        parts = terms(self.square.step(np.asarray(action)[None]), self.weights)
        is_over, is_ended = self.square.is_over, not self.square.alive.any()
        info = {"is_success": bool(self.square.success[0])} if is_over else {}
        reward = float(sum(part[0] for part in parts.values()))
        return self.square.observe()[0], reward, is_ended, is_over and not is_ended, info
