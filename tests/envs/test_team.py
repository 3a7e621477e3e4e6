"""A team of agents as one environment: spaces, rewards, ends, and agents that end early."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env

from rlx.design.recipes.worlds.pettingzoo_checks import MeetOnLine
from rlx.envs.reward_terms import TERMS
from rlx.envs.team import TeamEnv
from rlx.errors import ConfigError


class OneLeaves(MeetOnLine):
    """The agent on the left ends at its second step, the other one goes on."""

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        acted = set(actions)
        self.acted = acted
        observations, rewards, terminated, truncated, infos = super().step(actions)
        if self.steps == 2 and self.agents:
            terminated["left"] = True
            self.agents = ["right"]
        kept = {name: value for name, value in observations.items() if name in acted}
        return kept, {name: rewards[name] for name in acted if name in rewards}, terminated, truncated, infos


def test_a_team_is_a_sound_gymnasium_environment() -> None:
    check_env(TeamEnv(MeetOnLine()), skip_render_check=True)


def test_the_spaces_join_those_of_the_agents() -> None:
    team = TeamEnv(MeetOnLine())
    assert isinstance(team.action_space, spaces.MultiDiscrete)
    assert team.action_space.nvec.tolist() == [3, 3]
    assert team.observation_space.shape == (4,)
    assert team.possible_agents == ["left", "right"]


def test_rewards_add_up_and_are_reported_per_agent() -> None:
    team = TeamEnv(MeetOnLine())
    team.reset(seed=0)
    _, reward, _, _, info = team.step(np.array([1, 1]))
    assert reward == pytest.approx(-0.1)
    assert info[TERMS] == {"left": pytest.approx(-0.05), "right": pytest.approx(-0.05)}


@pytest.mark.parametrize(("action", "ending"), [((2, 0), "terminated"), ((0, 2), "truncated")])
def test_meeting_terminates_and_the_limit_truncates(action: tuple[int, int], ending: str) -> None:
    team = TeamEnv(MeetOnLine())
    team.reset(seed=1)
    terminated = truncated = False
    while not (terminated or truncated):
        _, _, terminated, truncated, _ = team.step(np.array(action))
    assert {"terminated": terminated, "truncated": truncated} == {
        "terminated": ending == "terminated",
        "truncated": ending == "truncated",
    }


def test_an_agent_that_ended_sees_zeros_and_acts_no_more() -> None:
    world = OneLeaves()
    team = TeamEnv(world)
    team.reset(seed=0)
    for _ in range(2):
        team.step(np.array([1, 1]))
    observation, _, terminated, truncated, _ = team.step(np.array([1, 1]))
    assert world.acted == {"right"}
    assert observation[:2].tolist() == [0, 0]
    assert not terminated
    assert not truncated


def test_a_continuous_team_acts_by_a_box() -> None:
    class Pushers(MeetOnLine):
        def __init__(self) -> None:
            super().__init__()
            self.action_spaces = {name: spaces.Box(-1, 1, (2,), np.float32) for name in self.possible_agents}  # type: ignore[misc]

        def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
            self.got = actions
            return super().step({name: round(float(action[0])) + 1 for name, action in actions.items()})

    world = Pushers()
    team = TeamEnv(world)
    team.reset(seed=0)
    team.step(np.array([1, 0.5, -1, 0], np.float32))
    assert world.got["left"].tolist() == [1, 0.5]
    assert world.got["right"].tolist() == [-1, 0]


def test_other_spaces_are_refused() -> None:
    class Words(MeetOnLine):
        def observation_space(self, agent: str) -> Any:
            return spaces.Text(3)

    with pytest.raises(ConfigError, match="Box"):
        TeamEnv(Words())


def test_a_real_pettingzoo_environment_is_a_team() -> None:
    pettingzoo = pytest.importorskip("pettingzoo")

    class Registered(MeetOnLine, pettingzoo.ParallelEnv):  # type: ignore[misc, name-defined]
        """The recipe's environment as a real ParallelEnv."""

    team: gymnasium.Env[Any, Any] = TeamEnv(Registered())
    check_env(team, skip_render_check=True)
