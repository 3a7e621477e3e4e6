"""Rewards that differ from the task's, as reward wrappers, which rlx leaves out of evaluations."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

AnyEnv = gymnasium.Env[Any, Any]


class Delayed(gymnasium.RewardWrapper[Any, Any]):
    """Pays the collected reward only every so many steps, even in the next episode."""

    def __init__(self, env: AnyEnv, every: int) -> None:
        super().__init__(env)
        self.every, self.count, self.owed = every, 0, 0.0

    def reward(self, reward: Any) -> float:
        self.count += 1
        self.owed += float(reward)
        if self.count % self.every:
            return 0.0
        paid, self.owed = self.owed, 0.0
        return paid


class Random(gymnasium.RewardWrapper[Any, Any]):
    """Draws from its own generator, so that the world's generator runs as in evaluations."""

    def __init__(self, env: AnyEnv) -> None:
        super().__init__(env)
        self.generator = np.random.default_rng(0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            self.generator = np.random.default_rng(seed)
        return self.env.reset(seed=seed, options=options)


class Noisy(Random):
    """Adds noise of a standard deviation."""

    def __init__(self, env: AnyEnv, std: float) -> None:
        super().__init__(env)
        self.std = std

    def reward(self, reward: Any) -> float:
        return float(reward) + self.std * float(self.generator.normal())


class NotANumber(Random):
    """Is NaN now and then."""

    def __init__(self, env: AnyEnv, chance: float) -> None:
        super().__init__(env)
        self.chance = chance

    def reward(self, reward: Any) -> float:
        return float("nan") if self.generator.random() < self.chance else float(reward)


class Constant(gymnasium.RewardWrapper[Any, Any]):
    """Is always the same."""

    def __init__(self, env: AnyEnv, value: float = 0.0) -> None:
        super().__init__(env)
        self.value = value

    def reward(self, reward: Any) -> float:
        return self.value
