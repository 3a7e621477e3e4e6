"""The judge of a build lab: it plays an environment that an agent built, and pays 1 for a solved episode.

The person's subclass says when an observation counts as solved. The judge ignores the rewards and infos of the built
environment, so scaled or shifted rewards do not change the score. An episode ends once it is solved.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import gymnasium

from rlx.config.schema import Env
from rlx.envs.make import AnyEnv, make_env


class SuccessEnv(gymnasium.Env[Any, Any]):
    """Plays `built`, an environment of the tree, and pays for solved episodes only."""

    built = "candidate/env.py:TrainingEnv"
    max_episode_steps = 100

    def __init__(self) -> None:
        self.env = self.make_built()
        self.observation_space = self.env.observation_space
        self.action_space = self.env.action_space
        self.metadata = self.env.metadata
        self._steps = 0

    def make_built(self) -> AnyEnv:
        """Make the built environment from the tree that the person's file is in."""
        root = Path(inspect.getfile(type(self))).resolve().parents[1]
        return make_env(Env(id=self.built), root=root)

    def solved(self, observation: Any) -> bool:
        """Say whether an observation shows that the task is solved."""
        raise NotImplementedError("the person's subclass says when an observation is solved")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._steps = 0
        observation, _ = self.env.reset(seed=seed, options=options)
        return observation, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, _, terminated, truncated, _ = self.env.step(action)
        self._steps += 1
        is_solved = bool(self.solved(observation))
        is_over = truncated or self._steps >= self.max_episode_steps
        return observation, float(is_solved), is_solved or bool(terminated), bool(is_over), {"is_success": is_solved}

    def render(self) -> Any:
        return self.env.render()

    def close(self) -> None:
        self.env.close()
