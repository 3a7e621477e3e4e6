"""A team of cooperating agents as one environment: a PettingZoo parallel environment that rlx trains and evaluates.

The observation is the agents' observations one after another, the action holds one action per agent, and the reward is
the sum of the agents' rewards. Agents that ended observe zeros, and their actions are ignored. Agents that compete need
another tool: the sum of a zero-sum game says nothing.

    # envs/meet.py
    def team():
        return TeamEnv(MyParallelEnv())   # env.id: envs/meet.py:team
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlx.envs.reward_terms import TERMS
from rlx.errors import ConfigError


class TeamEnv(gymnasium.Env[Any, Any]):
    """All agents of a parallel environment as one. `possible_agents` gives their order."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  Gymnasium's API

    def __init__(self, parallel_env: Any) -> None:
        self.parallel_env = parallel_env
        self.possible_agents: list[str] = list(parallel_env.possible_agents)
        self.render_mode = getattr(parallel_env, "render_mode", None)
        seen = [parallel_env.observation_space(agent) for agent in self.possible_agents]
        acts = [parallel_env.action_space(agent) for agent in self.possible_agents]
        self.observation_space = _joined_boxes(seen, "observation")
        self.action_space = _joined_actions(acts)
        self._sizes = [int(np.prod(space.shape)) for space in seen]
        self._acts = acts

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        observations, _ = self.parallel_env.reset(seed=seed, options=options)
        return self._joined(observations), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        alive = list(self.parallel_env.agents)
        actions = {agent: part for agent, part in self._split(action).items() if agent in alive}
        observations, rewards, _, truncations, _ = self.parallel_env.step(actions)
        is_over = not self.parallel_env.agents
        is_truncated = is_over and any(truncations.values())
        terms = {agent: float(rewards.get(agent, 0.0)) for agent in self.possible_agents}
        joined = self._joined(observations)
        return joined, sum(terms.values()), is_over and not is_truncated, is_truncated, {TERMS: terms}

    def render(self) -> Any:
        return self.parallel_env.render()

    def close(self) -> None:
        self.parallel_env.close()

    def _joined(self, observations: dict[str, Any]) -> NDArray[np.float32]:
        parts = []
        for agent, size in zip(self.possible_agents, self._sizes, strict=True):
            part = observations.get(agent)
            parts.append(np.zeros(size) if part is None else np.asarray(part).reshape(-1))
        return np.concatenate(parts).astype(np.float32)

    def _split(self, action: Any) -> dict[str, Any]:
        """Return every agent's part of a joint action, in the form of its own space."""
        flat = np.asarray(action).reshape(-1)
        parts: dict[str, Any] = {}
        at = 0
        for agent, space in zip(self.possible_agents, self._acts, strict=True):
            if isinstance(space, spaces.Discrete):
                parts[agent] = int(flat[at]) + int(space.start)
                at += 1
            else:
                size = int(np.prod(space.shape))
                parts[agent] = flat[at : at + size].reshape(space.shape).astype(space.dtype)
                at += size
        return parts


def _joined_boxes(parts: list[spaces.Space[Any]], what: str) -> spaces.Box:
    if not all(isinstance(part, spaces.Box) for part in parts):
        raise ConfigError(f"a team needs Box spaces: an agent's {what} is another one", hint="wrap the agents first")
    # An agent that ended observes zeros, so zero lies inside the bounds.
    low = [np.minimum(part.low.reshape(-1), 0) for part in parts if isinstance(part, spaces.Box)]
    high = [np.maximum(part.high.reshape(-1), 0) for part in parts if isinstance(part, spaces.Box)]
    return spaces.Box(np.concatenate(low).astype(np.float32), np.concatenate(high).astype(np.float32))


def _joined_actions(parts: list[spaces.Space[Any]]) -> spaces.Space[Any]:
    if all(isinstance(part, spaces.Discrete) for part in parts):
        return spaces.MultiDiscrete([int(part.n) for part in parts if isinstance(part, spaces.Discrete)])
    if all(isinstance(part, spaces.Box) for part in parts):
        low = np.concatenate([part.low.reshape(-1) for part in parts if isinstance(part, spaces.Box)])
        high = np.concatenate([part.high.reshape(-1) for part in parts if isinstance(part, spaces.Box)])
        return spaces.Box(low.astype(np.float32), high.astype(np.float32))
    raise ConfigError("a team needs agents that all act by Discrete, or all by Box", hint="wrap the agents first")
