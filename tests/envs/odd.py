"""Small environments, most of them with something wrong."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv

Result = tuple[Any, Any, Any, Any, dict[str, Any]]


class Plain(gymnasium.Env[Any, Any]):
    """A point that is pushed left or right until it is far out; the others build on it."""

    observation_space: Any = spaces.Box(-5, 5, (2,), np.float32)
    action_space: Any = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.elapsed = 0
        self.point = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self.shown(), {}

    def step(self, action: Any) -> Any:
        self.elapsed += 1
        self.move(action)
        return self.shown(), self.reward(), bool(abs(self.point[0]) > 2), self.elapsed >= 40, {}

    def move(self, action: Any) -> None:
        self.point = np.clip(self.point + np.float32([0.1, 0.05]) * (2 * int(action) - 1), -5, 5)

    def shown(self) -> Any:
        return self.point.copy()

    def reward(self) -> Any:
        return float(-abs(self.point[0]))


class DeadComponent(Plain):
    observation_space = spaces.Dict(
        {"point": Plain.observation_space, "late": spaces.Discrete(2), "bits": spaces.MultiBinary(2)}
    )
    action_space = spaces.MultiDiscrete([2, 3])

    def move(self, action: Any) -> None:
        super().move(action[0])

    def shown(self) -> Any:
        bits = np.array(self.point > 0, dtype=np.int8)
        return {"point": self.point.copy(), "late": int(self.elapsed > 10), "bits": bits}


class DeadNumber(Plain):
    action_space = spaces.Tuple((spaces.Discrete(2), spaces.Box(-1, 1, (2,), np.float32)))

    def move(self, action: Any) -> None:
        super().move(action[0])
        self.point[1] = np.clip(self.point[1] + 0.1 * action[1][0], -5, 5)


class Pictures(Plain):
    observation_space = spaces.Box(0, 255, (24, 24, 3), np.uint8)

    def shown(self) -> Any:
        picture = np.zeros((24, 24, 3), np.uint8)
        row, column = (int(12 + 2 * number) for number in self.point)
        picture[row, column] = 255
        return picture


class Masked(Plain):
    action_space = spaces.Discrete(3)

    def action_masks(self) -> Any:
        return np.arange(3) != self.elapsed % 3

    def move(self, action: Any) -> None:
        if action == (self.elapsed - 1) % 3:
            raise ValueError("that is not allowed now")
        super().move(action)


class EmptyMask(Plain):
    def action_masks(self) -> Any:
        return np.full(2, self.elapsed < 5)


class GlobalChance(Plain):
    def move(self, action: Any) -> None:
        super().move(action)
        self.point[0] += np.random.normal() * 0.01


class OwnChance(Plain):
    def move(self, action: Any) -> None:
        super().move(action)
        self.point[0] += np.random.default_rng().normal() * 0.01


class NanReward(Plain):
    def reward(self) -> Any:
        return float("nan") if self.elapsed == 9 else 1.0


class NanObservation(Plain):
    def shown(self) -> Any:
        return np.where(self.elapsed == 9, np.nan, self.point).astype(np.float32)


class ListObservation(Plain):
    def shown(self) -> Any:
        return [float(number) for number in self.point]


class OldStep(Plain):
    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated or truncated, info


class OldReset(Plain):
    def reset(self, **settings: Any) -> Any:
        return super().reset(**settings)[0]


class NoSeed(Plain):
    def reset(self) -> Any:  # type: ignore[override]
        return super().reset()


class ClassState(Plain):
    count = 0

    def reset(self, **settings: Any) -> Any:
        ClassState.count = 0
        return super().reset(**settings)

    def move(self, action: Any) -> None:
        super().move(action)
        ClassState.count += 1
        self.point[1] = (ClassState.count % 50) / 50


class Leaks(Plain):
    bonus = 0.0

    def reset(self, **settings: Any) -> Any:
        self.bonus += 0.1
        return super().reset(**settings)

    def reward(self) -> Any:
        return self.bonus


class Live(Plain):
    def move(self, action: Any) -> None:
        self.point += np.float32([0.1, 0.05]) * (2 * int(action) - 1)

    def shown(self) -> Any:
        return self.point


class ChangesAction(Plain):
    action_space = spaces.Box(-2, 2, (1,), np.float32)

    def move(self, action: Any) -> None:
        action *= 0.5
        self.point = np.clip(self.point + action, -5, 5)


class Endless(Plain):
    def step(self, action: Any) -> Any:
        observation, reward, _, _, info = super().step(action)
        return observation, reward, False, False, info


class Blind(Plain):
    def shown(self) -> Any:
        return np.zeros(2, np.float32)


class FixedLength(Plain):
    def step(self, action: Any) -> Any:
        observation, reward, _, _, info = super().step(action)
        return observation, reward, self.elapsed >= 25, False, info


class Sinking(Plain):
    def reward(self) -> Any:
        return 1 - 0.9 * self.elapsed / 40


class Carts(VectorEnv[Any, Any, Any]):
    """Worlds as arrays; `leak` of the first world's place goes to the others."""

    metadata: ClassVar = {"autoreset_mode": AutoresetMode.SAME_STEP}
    leak = 0.0

    def __init__(self, num_envs: int = 1) -> None:
        self.num_envs = num_envs
        self.single_observation_space = spaces.Box(-9, 9, (2,), np.float32)
        self.single_action_space = spaces.Discrete(2)
        self.observation_space = spaces.Box(-9, 9, (num_envs, 2), np.float32)
        self.action_space = spaces.MultiDiscrete([2] * num_envs)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.elapsed = np.zeros(self.num_envs, int)
        self.points = self.np_random.uniform(-1, 1, (self.num_envs, 2)).astype(np.float32)
        return self.points.copy(), {}

    def step(self, actions: Any) -> Result:
        self.elapsed += 1
        pushed = self.points + np.float32([0.1, 0.05]) * (2 * np.asarray(actions)[:, None] - 1)
        self.points = np.clip(pushed + self.leak * self.points[0], -9, 9).astype(np.float32)
        last, far, late = self.points.copy(), np.abs(self.points[:, 0]) > 2, self.elapsed >= 40
        ended = far | late
        self.points[ended] = self.np_random.uniform(-1, 1, (int(ended.sum()), 2))
        self.elapsed[ended] = 0
        infos = {"final_obs": last, "_final_obs": ended} if ended.any() else {}
        return self.points.copy(), -np.abs(last[:, 0]), far, late, infos


class Crosstalk(Carts):
    leak = 0.1
