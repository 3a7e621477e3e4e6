"""Tiny experiments and environments for the SB3 tests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import gymnasium
import numpy as np
from gymnasium import spaces

from rlx.config.load import parse
from rlx.config.schema import Experiment
from rlx.testing import RecordingSession
from rlx.train.backends.sb3.sb3_trainer import Sb3Trainer

ON_POLICY = {"rollout_steps": 16, "batch_size": 16, "update_epochs": 2, "total_timesteps": 128}
OFF_POLICY = {"learning_starts": 20, "buffer_size": 60, "batch_size": 8, "train_every": 2, "total_timesteps": 96}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "ppo": ON_POLICY,
    "a2c": {"total_timesteps": 80},
    "dqn": {**OFF_POLICY, "target_update_every": 16},
    "sac": OFF_POLICY,
    "td3": OFF_POLICY,
    "ddpg": OFF_POLICY,
    "tqc": {**OFF_POLICY, "quantiles": 5},
    "qrdqn": {**OFF_POLICY, "target_update_every": 16, "quantiles": 5},
    "trpo": {"rollout_steps": 16, "batch_size": 16, "total_timesteps": 128},
    "ars": {"total_timesteps": 200, "deltas": 2},
    "recurrent_ppo": {**ON_POLICY, "lstm_size": 8},
    "maskable_ppo": ON_POLICY,
}
TOYS = __name__
CONTINUOUS = ("sac", "td3", "ddpg", "tqc")


def tiny(algorithm: str = "ppo", *, env: Any = None, policy: Any = None, **algo: Any) -> Experiment:
    """Return a resolved experiment that trains in a fraction of a second."""
    home = "Pendulum-v1" if algorithm in CONTINUOUS else f"{TOYS}:Doors" if "mask" in algorithm else "CartPole-v1"
    return parse(
        {
            "env": {"id": home, "num_envs": 2, "vectorization": "sync", **(env or {})},
            "algo": {"name": algorithm, **ALGORITHMS.get(algorithm, {}), **algo},
            "policy": {"hidden_sizes": [8], **(policy or {})},
        }
    )


def rehearse(experiment: Experiment, folder: Path, *, root: Path | None = None, **settings: Any) -> RecordingSession:
    """Train once with the SB3 backend and return the session."""
    session = RecordingSession(experiment, folder, root=root or folder, **settings)
    Sb3Trainer().train(cast("Any", session))
    return session


class Toy(gymnasium.Env[Any, Any]):
    """The base of the toys: a short episode whose state is one number and one generator."""

    length = 7

    def __init__(self) -> None:
        self.observation_space: Any = spaces.Box(-10, 10, (3,), np.float32)
        self.action_space: Any = spaces.Discrete(2)
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.steps = 0
        return self.observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        return self.observe(), self.reward(action), self.steps >= self.length, False, {}

    def observe(self) -> Any:
        return self.np_random.normal(size=3).astype(np.float32)

    def reward(self, action: Any) -> float:
        return 1.0


class Doors(Toy):
    """Four doors, some closed; entering a closed one raises."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.Discrete(4)

    def action_masks(self) -> Any:
        return np.array([(self.steps + door) % 2 == 0 for door in range(4)])

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if not self.action_masks()[action]:
            raise ValueError(f"door {action} is closed")
        return super().step(action)


class Mixed(Toy):
    """Dict observations: numbers, a choice and bits."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Dict(
            {
                "numbers": spaces.Box(-10, 10, (3,), np.float32),
                "choice": spaces.Discrete(3),
                "bits": spaces.MultiBinary(2),
            }
        )

    def observe(self) -> Any:
        return {
            "numbers": self.np_random.normal(3, 2, size=3).astype(np.float32),
            "choice": int(self.np_random.integers(3)),
            "bits": self.np_random.integers(2, size=2, dtype=np.int8),
        }


class Switches(Toy):
    """MultiDiscrete observations and MultiBinary actions."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.MultiDiscrete([2, 3])
        self.action_space = spaces.MultiBinary(3)

    def observe(self) -> Any:
        return self.np_random.integers([2, 3])

    def reward(self, action: Any) -> float:
        assert action.dtype == np.int8
        return float(action.sum())


class Dials(Toy):
    """MultiDiscrete actions."""

    def __init__(self) -> None:
        super().__init__()
        self.action_space = spaces.MultiDiscrete([2, 3])


class Pictures(Toy):
    """Image observations, channels last."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = spaces.Box(0, 255, (36, 40, 1), np.uint8)

    def observe(self) -> Any:
        return self.np_random.integers(256, size=(36, 40, 1), dtype=np.uint8)


class Constant(Toy):
    """Always the same observation and reward 1; ends by termination, or is cut by a time limit."""

    def __init__(self, terminates: bool = False) -> None:
        super().__init__()
        self.observation_space = spaces.Box(0, 1, (1,), np.float32)
        self.length = 5 if terminates else 10**9

    def observe(self) -> Any:
        return np.ones(1, dtype=np.float32)


class Goal(Toy):
    """Says at the end whether it was a success: always, from the second episode on."""

    def __init__(self) -> None:
        super().__init__()
        self.episode = -1

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.episode += 1
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, {**info, "is_success": terminated and self.episode > 0}


class Opaque(Toy):
    """Holds a running iterator, which nothing can capture."""

    def __init__(self, after: int = 0) -> None:
        super().__init__()
        self.left = after
        self.stream: Iterator[int] | None = None

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        if self.left < 0 and self.stream is None:
            self.stream = (number for number in range(10**9))
        if self.stream is not None:
            next(self.stream)
        return super().step(action)


class Sick(Toy):
    """Observes something that is not a number after some steps."""

    def __init__(self, after: int = 10) -> None:
        super().__init__()
        self.left = after

    def observe(self) -> Any:
        self.left -= 1
        values = super().observe()
        return values if self.left >= 0 else values * np.float32(np.inf)


class Terms(Toy):
    """Rewards made of terms: a cost at every step, a prize at the end; one of its three inputs never changes."""

    def observe(self) -> Any:
        return super().observe() * np.array([1, 1, 0], dtype=np.float32)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, _, terminated, truncated, info = super().step(action)
        terms = {"cost": -0.5} | ({"prize": 7.0} if terminated else {})
        return observation, sum(terms.values()), terminated, truncated, {**info, "reward_terms": terms}


def weights_of(arrays: dict[str, Any]) -> str:
    """Return the sha256 of some arrays."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        total.update(np.asarray(arrays[name], order="C").tobytes())
    return total.hexdigest()
