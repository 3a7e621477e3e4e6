"""Worlds with wrong observations, dynamics or episode ends; their defects are in evaluations too."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

AnyEnv = gymnasium.Env[Any, Any]
Step = tuple[Any, float, bool, bool, dict[str, Any]]


class Seen(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Shows observations without the bounds that they may leave."""

    def __init__(self, env: AnyEnv) -> None:
        super().__init__(env)
        shape = env.observation_space.shape
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float32)


class Shuffled(Seen):
    """Shows the parts of an observation in an order that is new in every episode."""

    def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(**arguments)
        self.order = self.np_random.permutation(len(observation))
        return self.observation(observation), info

    def observation(self, observation: Any) -> Any:
        return observation[self.order]


class Frozen(Seen):
    """Shows some parts of an observation as zero."""

    def __init__(self, env: AnyEnv, parts: Sequence[int]) -> None:
        super().__init__(env)
        self.parts = list(parts)

    def observation(self, observation: Any) -> Any:
        seen = np.array(observation)
        seen[self.parts] = 0.0
        return seen


class Scaled(Seen):
    """Shows observations in another unit."""

    def __init__(self, env: AnyEnv, scale: float) -> None:
        super().__init__(env)
        self.scale = np.float32(scale)

    def observation(self, observation: Any) -> Any:
        return observation * self.scale


class Noisy(Seen):
    """Adds noise with a given standard deviation to observations."""

    def __init__(self, env: AnyEnv, std: float) -> None:
        super().__init__(env)
        self.std = std

    def observation(self, observation: Any) -> Any:
        return (observation + self.std * self.np_random.normal(size=observation.shape)).astype(np.float32)


class DeadAction(gymnasium.ActionWrapper[Any, Any, Any]):
    """Does `instead` if the first action is chosen; for continuous actions, only negative values act."""

    def __init__(self, env: AnyEnv, instead: int = 1) -> None:
        super().__init__(env)
        self.instead = instead

    def action(self, action: Any) -> Any:
        if isinstance(self.action_space, gymnasium.spaces.Box):
            return np.minimum(action, np.float32(0.0))
        return self.instead if int(action) == 0 else action


class Disobedient(gymnasium.ActionWrapper[Any, Any, Any]):
    """Does a random action with some probability."""

    def __init__(self, env: AnyEnv, chance: float) -> None:
        super().__init__(env)
        self.chance = chance

    def action(self, action: Any) -> Any:
        return self.action_space.sample() if self.np_random.random() < self.chance else action

    def reset(self, **arguments: Any) -> tuple[Any, dict[str, Any]]:
        answer = self.env.reset(**arguments)
        self.action_space.seed(int(self.np_random.integers(2**31)))
        return answer


class EndsCalledCuts(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Reports a true end as truncation."""

    def step(self, action: Any) -> Step:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(reward), False, terminated or truncated, info


class EndsAtRandom(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Ends an episode at any step with some probability."""

    def __init__(self, env: AnyEnv, chance: float) -> None:
        super().__init__(env)
        self.chance = chance

    def step(self, action: Any) -> Step:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(reward), terminated or self.np_random.random() < self.chance, truncated, info


class Slow(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Is slow at every step."""

    def __init__(self, env: AnyEnv, seconds: float) -> None:
        super().__init__(env)
        self.seconds = seconds

    def step(self, action: Any) -> Step:
        time.sleep(self.seconds)
        return self.env.step(action)


class Bribed(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Adds a reward term that can be exploited without doing the task; still reports success honestly.

    It pays for standing at the edge (`GoalGrid`) or for speed (the others), whose place in the observation is given.
    """

    def __init__(self, env: AnyEnv, pay: float, part: int, at: str = "speed") -> None:
        super().__init__(env)
        self.pay, self.part, self.at = pay, part, at

    def step(self, action: Any) -> Step:
        observation, reward, terminated, truncated, info = self.env.step(action)
        seen = abs(float(observation[self.part]))
        bribe = self.pay * (seen if self.at == "speed" else float(seen == 0.0))
        terms = {**info.get("reward_terms", {"task": float(reward)}), "bribe": bribe}
        told = {"is_success": self._is_done(observation, terminated), **info, "reward_terms": terms}
        return observation, float(reward) + bribe, terminated, truncated, told

    def _is_done(self, observation: Any, terminated: bool) -> bool:
        is_pendulum = "Pendulum" in type(self.unwrapped).__name__
        return bool(observation[0] > 0.95) if is_pendulum else bool(terminated)


class Told(gymnasium.Wrapper[Any, Any, Any, Any]):
    """No defect: reports the reward in two terms and whether the pendulum is up."""

    def step(self, action: Any) -> Step:
        observation, reward, terminated, truncated, info = self.env.step(action)
        torque = -0.001 * float(np.clip(action, -2.0, 2.0)[0]) ** 2
        terms = {"swing": float(reward) - torque, "torque": torque}
        told = {**info, "reward_terms": terms, "is_success": bool(observation[0] > 0.95)}
        return observation, float(reward), terminated, truncated, told
