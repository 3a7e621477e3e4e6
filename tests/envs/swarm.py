"""Carts on a line, stepped as arrays: a vector environment of one's own, in NumPy and in torch."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

LIMIT = 1.5


class Swarm(VectorEnv):
    """Push each cart left or right to keep it near the middle; it falls off at ±1.5 or after `horizon` steps."""

    metadata: ClassVar[dict[str, Any]] = {
        "autoreset_mode": AutoresetMode.SAME_STEP,
        "render_modes": ["rgb_array"],
        "render_fps": 30,
    }

    def __init__(
        self, num_envs: int = 1, horizon: int = 40, push: float = 0.05, render_mode: str | None = None
    ) -> None:
        self.num_envs, self.horizon, self.push, self.render_mode = num_envs, horizon, push, render_mode
        self.single_observation_space = gymnasium.spaces.Box(-10, 10, (2,), np.float32)
        self.single_action_space = gymnasium.spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.carts = np.zeros((num_envs, 2), dtype=np.float32)
        self.ages = np.zeros(num_envs, dtype=np.int64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, bool))
        self._begin(mask)
        return self.carts.copy(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        self.carts[:, 1] += np.where(actions == 1, self.push, -self.push) + 0.02 * np.sign(self.carts[:, 0])
        self.carts[:, 0] += self.carts[:, 1]
        self.ages += 1
        terminated = np.abs(self.carts[:, 0]) > LIMIT
        truncated = (self.ages >= self.horizon) & ~terminated
        rewards = 1.0 - np.abs(self.carts[:, 0]).astype(np.float64)
        infos: dict[str, Any] = {}
        ended = terminated | truncated
        if self.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP and ended.any():
            infos = {"final_obs": self.carts.copy(), "_final_obs": ended}
            self._begin(ended)
        return self.carts.copy(), rewards, terminated, truncated, infos

    def render(self) -> Any:
        frames = []
        for place in self.carts[:, 0]:
            frame = np.zeros((32, 64, 3), np.uint8)
            frame[8:24, int(np.clip(32 + 20 * place, 4, 60)) - 4 :][:, :8] = (230, 160, 0)
            frames.append(frame)
        return tuple(frames)

    def _begin(self, mask: Any) -> None:
        self.carts[mask] = self.np_random.uniform(-0.5, 0.5, (int(np.sum(mask)), 2)).astype(np.float32) * (1.0, 0.1)
        self.ages[mask] = 0


class PatientSwarm(Swarm):
    """Waits to be told which carts begin anew."""

    metadata: ClassVar[dict[str, Any]] = {**Swarm.metadata, "autoreset_mode": AutoresetMode.DISABLED}


class TorchSwarm(Swarm):
    """Speaks in tensors."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        import torch

        observations, infos = super().reset(seed=seed, options=options)
        return torch.from_numpy(observations), infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        import torch

        assert isinstance(actions, torch.Tensor)
        *found, infos = super().step(actions.numpy())
        return *(torch.from_numpy(part) for part in found), infos


class Silent(Swarm):
    """Does not say how it resets."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}


class Late(Swarm):
    """The same carts, put back by the step after they fell: it takes no notice of its action."""

    metadata: ClassVar[dict[str, Any]] = {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.fallen = np.zeros(self.num_envs, bool)
        return super().reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        late = self.fallen
        _, rewards, terminated, truncated, infos = super().step(actions)
        self._begin(late)
        rewards[late], terminated[late], truncated[late] = 0.0, False, False
        self.fallen = terminated | truncated
        return self.carts.copy(), rewards, terminated, truncated, infos
