"""Defects planted into sound environments, and a goal grid of one's own."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

AnyEnv = gymnasium.Env[Any, Any]


class Grid(gymnasium.Env[Any, Any]):
    """A walk on a grid to a goal that lies elsewhere in every episode; numbers as observation."""

    def __init__(self, size: int = 6, max_steps: int = 100) -> None:
        self.size, self.max_steps = size, max_steps
        self.observation_space = spaces.Box(0, size - 1, (4,), np.float32)
        self.action_space = spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.agent, self.goal = self.np_random.integers(0, self.size, (2, 2))
        self.elapsed = 0
        return self._shown(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.elapsed += 1
        move = ((0, 1), (1, 0), (0, -1), (-1, 0))[int(action)]
        self.agent = np.clip(self.agent + move, 0, self.size - 1)
        is_there = bool((self.agent == self.goal).all())
        return self._shown(), 1.0 if is_there else -0.01, is_there, self.elapsed >= self.max_steps, {}

    def _shown(self) -> Any:
        return np.concatenate([self.agent, self.goal]).astype(np.float32)


class Planted(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Counts the steps of an episode; the defects build on it."""

    def __init__(self, env: AnyEnv) -> None:
        super().__init__(env)
        self.count = 0

    def reset(self, **settings: Any) -> tuple[Any, dict[str, Any]]:
        self.count = 0
        return self.env.reset(**settings)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.count += 1
        return self.env.step(action)


class EndsTruncated(Planted):
    """Reports every end as a truncation."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, False, terminated or truncated, info


class LimitTerminates(Planted):
    """Reports every end as a termination."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated or truncated, False, info


class Flips(Planted):
    """Negates the reward after some steps."""

    def __init__(self, env: AnyEnv, after: int = 50) -> None:
        super().__init__(env)
        self.after = after

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, *rest = super().step(action)
        return observation, -reward if self.count > self.after else reward, *rest  # type: ignore[return-value]


class FlipsUnseen(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Negates the reward after some steps, counted where no attribute shows it."""

    def __init__(self, env: AnyEnv, after: int = 50) -> None:
        super().__init__(env)
        self.after = after
        self.steps: list[None] = []

    def reset(self, **settings: Any) -> tuple[Any, dict[str, Any]]:
        self.steps.clear()
        return self.env.reset(**settings)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.steps.append(None)
        observation, reward, *rest = self.env.step(action)
        return observation, -reward if len(self.steps) > self.after else reward, *rest  # type: ignore[return-value, operator]


class Shuffled(Planted):
    """Puts the numbers of the observation in another order in every episode, drawn as `source` says."""

    def __init__(self, env: AnyEnv, source: str = "seed") -> None:
        super().__init__(env)
        self.source = source
        self.rng = np.random.default_rng(0)

    def reset(self, **settings: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = super().reset(**settings)
        if self.source == "seed":
            self.rng = np.random.default_rng(settings.get("seed"))
        size = observation.size
        self.order = np.random.permutation(size) if self.source == "global" else self.rng.permutation(size)
        return observation[self.order], info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, *rest = super().step(action)
        return observation[self.order], *rest  # type: ignore[return-value]


class DeadAction(Planted):
    """Takes one discrete action for another, or one number of a Box for 0."""

    def __init__(self, env: AnyEnv, which: int = 0) -> None:
        super().__init__(env)
        self.which = which

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        if isinstance(self.action_space, spaces.Discrete):
            action = (self.which + 1) % int(self.action_space.n) if action == self.which else action
        else:
            action = np.array(action)
            action[self.which] = 0
        return super().step(action)


class SeedIgnored(Planted):
    """Resets without the seed, or always with the same one."""

    def __init__(self, env: AnyEnv, fixed: int | None = None) -> None:
        super().__init__(env)
        self.fixed = fixed

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return super().reset(seed=self.fixed, options=options)


class Outside(Planted):
    """Shows observations that its space does not have, now and then."""

    def __init__(self, env: AnyEnv, every: int = 10) -> None:
        super().__init__(env)
        self.every = every

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, *rest = super().step(action)
        if self.count % self.every == 0:
            space: Any = self.observation_space
            observation = space.n + 3 if isinstance(space, spaces.Discrete) else _beyond(space)
        return observation, *rest  # type: ignore[return-value]


def _beyond(space: Any) -> Any:
    high = np.where(np.isfinite(space.high), space.high, 0)
    return (high + 5).astype(space.dtype)


class Aliased(Planted):
    """Returns one buffer again and again."""

    def __init__(self, env: AnyEnv) -> None:
        super().__init__(env)
        self.buffer = np.zeros(self.observation_space.shape, self.observation_space.dtype)  # type: ignore[arg-type]

    def reset(self, **settings: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = super().reset(**settings)
        self.buffer[...] = observation
        return self.buffer, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, *rest = super().step(action)
        self.buffer[...] = observation
        return self.buffer, *rest  # type: ignore[return-value]


DEFECTS = {each.__name__: each for each in (
    EndsTruncated, LimitTerminates, Flips, FlipsUnseen, Shuffled, DeadAction, SeedIgnored, Outside, Aliased,
)}  # fmt: skip


def plant(env: str = "CartPole-v1", defect: str = "", **settings: Any) -> AnyEnv:
    """Make an environment with a defect in it."""
    made: AnyEnv = (
        gymnasium.wrappers.TimeLimit(Grid(), 100) if env == "Grid" else gymnasium.make(env, disable_env_checker=True)
    )
    return DEFECTS[defect](made, **settings) if defect else made
