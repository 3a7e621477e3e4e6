"""Checks of multi-agent environments with PettingZoo's two APIs: parallel (all act at once) and AEC (turns).

The checks need only the methods of the API, so they run without the package. `MeetOnLine` is a sound environment.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from rlx.design.recipes.recipe_claim import RecipeClaim, at_least, at_most

LENGTH = 7


class MeetOnLine:
    """Two agents on a line are paid together when they meet; a parallel environment."""

    metadata: dict[str, Any] = {"name": "meet_on_line_v0", "render_modes": []}  # noqa: RUF012  PettingZoo's API
    render_mode = None

    def __init__(self) -> None:
        self.possible_agents = ["left", "right"]
        self.agents: list[str] = []
        self.observation_spaces = {name: spaces.Box(0.0, 1.0, (2,), np.float32) for name in self.possible_agents}
        self.action_spaces = {name: spaces.Discrete(3) for name in self.possible_agents}
        self.places: dict[str, int] = {}
        self.steps = 0

    def observation_space(self, agent: str) -> Any:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        rng = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        self.places = {"left": int(rng.integers(0, 3)), "right": int(rng.integers(LENGTH - 3, LENGTH))}
        self.steps = 0
        return self._seen(), {name: {} for name in self.agents}

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        for name, action in actions.items():
            self.places[name] = min(max(self.places[name] + int(action) - 1, 0), LENGTH - 1)
        self.steps += 1
        has_met = self.places["left"] >= self.places["right"]
        is_late = self.steps >= 12 and not has_met
        names = list(self.agents)
        reward = 1.0 if has_met else -0.05
        answer: tuple[dict[str, Any], ...] = (
            self._seen(),
            dict.fromkeys(names, reward),
            dict.fromkeys(names, has_met),
            dict.fromkeys(names, is_late),
            {name: {} for name in names},
        )
        if has_met or is_late:
            self.agents = []
        return answer

    def _seen(self) -> dict[str, Any]:
        other = {"left": "right", "right": "left"}
        return {
            name: np.array([self.places[name], self.places[other[name]]], np.float32) / (LENGTH - 1)
            for name in self.agents
        }

    def close(self) -> None:
        """Nothing to close."""


def check_parallel(env: Any, *, episodes: int = 5, seed: int = 0) -> set[str]:
    """Play a parallel environment at random and return its defects."""
    defects: set[str] = set()
    rng = np.random.default_rng(seed)
    for episode in range(episodes):
        observations, _ = env.reset(seed=episode)
        again, _ = env.reset(seed=episode)
        if any(not np.array_equal(observations[name], again.get(name)) for name in observations):
            defects.add("seed ignored")
        if set(again) != set(env.agents):
            defects.add("reset: observations are not those of the agents")
        for _ in range(200):
            before = set(env.agents)
            if not before:
                break
            answer = env.step({name: int(rng.integers(env.action_space(name).n)) for name in before})
            defects |= _step_defects(env, before, answer)
        else:
            defects.add("never ends")
    return defects


def _step_defects(env: Any, before: set[str], answer: Any) -> set[str]:
    if not isinstance(answer, tuple) or len(answer) != 5:
        return {"step: not five dictionaries"}
    observations, rewards, terminated, truncated, _ = answer
    defects = set()
    for name, part in (("rewards", rewards), ("terminations", terminated), ("truncations", truncated)):
        if set(part) != before:
            defects.add(f"step: {name} are not those of the agents that acted")
    for agent, observation in observations.items():
        if observation not in env.observation_space(agent):
            defects.add("observation outside its space")
    ended = {agent for agent in before if terminated.get(agent) or truncated.get(agent)}
    if ended & set(env.agents):
        defects.add("an agent that ended is still asked to act")
    if set(env.agents) - before:
        defects.add("an agent came back")
    return defects


def check_aec(env: Any, *, seed: int = 0, most_steps: int = 500) -> set[str]:
    """Play a turn-based environment at random and return its defects."""
    defects: set[str] = set()
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    for _ in range(most_steps):
        if not env.agents:
            return defects
        agent = env.agent_selection
        if agent not in env.agents:
            return defects | {"the selected agent is not in play"}
        observation, _, terminated, truncated, _ = env.last()
        if observation not in env.observation_space(agent):
            defects.add("observation outside its space")
        action = None
        if not (terminated or truncated):
            action = int(rng.integers(env.action_space(agent).n))
        env.step(action)
        if action is None and agent in env.agents:
            return defects | {"an agent that ended is still asked to act"}
    return defects | {"never ends"}


class _KeepsDeadAgents(MeetOnLine):
    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        names = list(self.agents)
        answer = super().step(actions)
        self.agents = names
        return answer


class _LosesRewards(MeetOnLine):
    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        observations, rewards, *rest = super().step(actions)
        rewards.pop("right")
        return (observations, rewards, *rest)


class _LeavesItsSpace(MeetOnLine):
    def _seen(self) -> dict[str, Any]:
        return {name: 3 * value + 2 for name, value in super()._seen().items()}


class _IgnoresSeeds(MeetOnLine):
    def reset(self, seed: int | None = None, options: Any = None) -> tuple[dict[str, Any], dict[str, Any]]:
        return super().reset(seed=None)


PLANTED = {
    _KeepsDeadAgents: "an agent that ended is still asked to act",
    _LosesRewards: "step: rewards are not those of the agents that acted",
    _LeavesItsSpace: "observation outside its space",
    _IgnoresSeeds: "seed ignored",
}


class TakeTurns:
    """A turn-based counting game: the agent that reaches 5 wins; an AEC environment."""

    def __init__(self) -> None:
        self.possible_agents = ["one", "two"]
        self.agents: list[str] = []
        self.agent_selection = ""
        self.count = 0

    def observation_space(self, agent: str) -> Any:
        return spaces.Box(0.0, 10.0, (1,), np.float32)

    def action_space(self, agent: str) -> Any:
        return spaces.Discrete(2)

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.agents = list(self.possible_agents)
        self.agent_selection = "one"
        self.count = 0

    def last(self) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        is_over = self.count >= 5
        return np.array([min(self.count, 10)], np.float32), float(is_over), is_over, False, {}

    def step(self, action: int | None) -> None:
        agent = self.agent_selection
        if action is None:
            self.agents.remove(agent)
        else:
            self.count += 1 + int(action)
        others = [name for name in self.agents if name != agent]
        self.agent_selection = (others or self.agents or [""])[0]


def run(scale: float = 1.0, seed: int = 0) -> list[RecipeClaim]:
    """Check a sound environment of each API, and environments with planted defects."""
    episodes = int(10 * scale) + 5
    found = sum(defect in check_parallel(kind(), episodes=episodes) for kind, defect in PLANTED.items())
    return [
        at_most("defects in the sound parallel environment", len(check_parallel(MeetOnLine(), episodes=episodes)), 0.0),
        at_most("defects in the sound turn-based environment", len(check_aec(TakeTurns())), 0.0),
        at_least("planted defects that were found", found, len(PLANTED)),
    ]
