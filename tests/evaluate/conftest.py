"""Small environments in files of a project, and policies written by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlx.config.schema import Env
from rlx.evaluate.protocol import Protocol, Purpose
from tests.evaluate.trained import Trained

MakeProtocol = Callable[..., Protocol]

WORLDS = '''
"""Environments whose right answer is known."""

import gymnasium
import numpy as np


class Lengths(gymnasium.Env):
    """An episode lasts 1 step, or 200 with one seed in five; every step pays 1. The observation is the length."""

    observation_space = gymnasium.spaces.Box(0, 1000, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, long=200):
        self.long = long

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = self.long if self.np_random.random() < 0.2 else 1
        return np.full(1, self.left, np.float32), {}

    def step(self, action):
        self.left -= 1
        return np.full(1, self.left, np.float32), 1.0, self.left == 0, False, {}


class Endless(Lengths):
    def step(self, action):
        return np.zeros(1, np.float32), 1.0, False, False, {}


class Reporting(Lengths):
    """Reports reward terms every step and, at the end, whether action 1 was taken last."""

    def step(self, action):
        observation, _, terminated, _, info = super().step(action)
        info["reward_terms"] = {"alive": 1.0, "energy": -0.5}
        if terminated:
            info["is_success"] = np.bool_(action == 1)
        return observation, 0.5, terminated, False, info


class NotANumber(Lengths):
    def step(self, action):
        observation, _, terminated, _, info = super().step(action)
        return observation, float("nan"), terminated, False, info


class Breaking(Lengths):
    def step(self, action):
        raise ZeroDivisionError("the floor is lava")


class BreakingReset(Lengths):
    def reset(self, *, seed=None, options=None):
        raise RuntimeError("no world today")


class Masked(Lengths):
    """Ends at once, with a fine, when the forbidden action is taken."""

    def action_masks(self):
        return np.array([False, True])

    def step(self, action):
        observation, _, terminated, _, info = super().step(action)
        return observation, 1.0 if action == 1 else -100.0, terminated, False, info


class Seen(Lengths):
    """Dict observations and Dict actions."""

    observation_space = gymnasium.spaces.Dict({"left": Lengths.observation_space, "kind": gymnasium.spaces.Discrete(3)})
    action_space = gymnasium.spaces.Dict(turn=gymnasium.spaces.Discrete(2), push=gymnasium.spaces.Box(-1, 1, (2,)))

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        return {"left": observation, "kind": 1}, info

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action["turn"])
        return {"left": observation, "kind": 1}, float(action["push"].shape == (2,)), terminated, truncated, info


class Drawn(Lengths):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(self, long=20, render_mode=None, odd=False):
        super().__init__(long)
        self.render_mode, self.odd = render_mode, odd

    def render(self):
        frame = np.zeros((33, 47, 3) if self.odd else (32, 48, 3), np.uint8)
        frame[:, : 1 + self.left % 30] = (200, 30, 30)
        return frame


class DrawnBadly(Drawn):
    def render(self):
        return "a picture"


class DrawnBlack(Drawn):
    def render(self):
        return np.zeros((32, 48, 3), np.uint8)


class DrawnNever(Drawn):
    def render(self):
        return None


class DrawnReporting(Drawn):
    """Lasts 20 steps on every seed and reports reward terms."""

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        self.left = self.long
        return observation, info

    def step(self, action):
        observation, _, terminated, _, info = super().step(action)
        return observation, 0.5, terminated, False, {"reward_terms": {"alive": 1.0, "energy": -0.5}}


class DrawnInText(Lengths):
    metadata = {"render_modes": ["ansi"]}

    def __init__(self, render_mode=None):
        super().__init__()
        self.render_mode = render_mode
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project that has `envs/worlds.py`."""
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs/worlds.py").write_text(WORLDS)
    return tmp_path


@pytest.fixture
def protocol(project: Path) -> MakeProtocol:
    """Return a maker of protocols: `protocol("Lengths", episodes=20)` for a world, or a registered id."""

    def make(
        world: str, *, episodes: int = 20, purpose: Purpose = "report", deterministic: bool = True, **settings: Any
    ) -> Protocol:
        name = world if "-v" in world else f"envs/worlds.py:{world}"
        return Protocol(Env(id=name, **settings), episodes, deterministic, purpose, project)

    return make


@pytest.fixture(scope="session")
def _trained_once(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return Trained.train(tmp_path_factory.mktemp("trained") / "project")


@pytest.fixture
def trained(_trained_once: Trained, tmp_path: Path) -> Trained:
    """Return a copy of a project whose run was really trained: one training for all tests."""
    return _trained_once.copy(tmp_path / "trained")


class Scripted:
    """A policy made of a function of the observations; remembers how it was called."""

    def __init__(self, act: Callable[[Any], Any]) -> None:
        self.act = act
        self.batches: list[int] = []
        self.resets: list[list[bool] | None] = []

    def predict(self, observations: Any, *, deterministic: bool = True, masks: Any = None) -> Any:
        self.batches.append(len(observations))
        return self.act(observations)

    def reset(self, finished: Any = None) -> None:
        self.resets.append(None if finished is None else finished.tolist())


def balance(observations: np.ndarray) -> np.ndarray:
    """Push CartPole's cart to where the pole falls: reaches 500."""
    return (observations[:, 2] + observations[:, 3] * 0.5 + 0.05 * observations[:, 1] > 0).astype(np.int64)


def zeros(observations: np.ndarray) -> np.ndarray:
    """Take action 0 always."""
    return np.zeros(len(observations), dtype=np.int64)
