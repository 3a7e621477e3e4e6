"""What is found out about scenarios before anything is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlx.config.load import parse
from rlx.config.schema import Problem
from rlx.errors import ConfigError
from rlx.evaluate.scenarios import scenario_problems
from rlx.launch import launch


def problems(tmp_path: Path, **scenarios: Any) -> list[Problem]:
    return list(scenario_problems(parse(config(**scenarios)), root=tmp_path))


def config(**scenarios: Any) -> dict[str, Any]:
    return {"env": {"id": "CartPole-v1"}, "algo": {"name": "ppo"}, "eval": {"scenarios": scenarios}}


def test_scenarios_that_can_be_played_have_no_problems(tmp_path: Path) -> None:
    assert problems(tmp_path, easy={"pass": "length > 40 and not truncated"}, plain={}) == []


def test_arguments_that_the_environment_does_not_take_are_found(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, windy={"kwargs": {"wnd": 2}})
    assert found.key == "eval.scenarios.windy.kwargs"
    assert "wnd" in found.message


def test_a_name_that_no_episode_has_is_found(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, long={"pass": "lenght > 40"})
    assert "names `lenght`, which an episode of CartPole-v1 does not have" in found.message
    assert found.hint == "did you mean `length`?"
    (other,) = problems(tmp_path, long={"pass": "fuel > 40"})
    assert other.hint == "it has: return, length, terminated, truncated"


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"id": "Acrobot-v1"}, r"the actions of Acrobot-v1 are Discrete\(3\) in the evaluation, but Discrete\(2\)"),
        (
            {"wrappers": [{"name": "frame_stack", "kwargs": {"size": 2}}]},
            r"are float32 \(2, 4\) in the evaluation",
        ),
        ({"id": "Nowhere-v0"}, "`eval.env`: no environment `Nowhere-v0`"),
    ],
)
def test_an_evaluation_in_which_the_policy_cannot_act_is_refused(
    tmp_path: Path, env: dict[str, Any], message: str
) -> None:
    data = {"env": {"id": "CartPole-v1"}, "algo": {"name": "ppo"}, "eval": {"env": env}}
    with pytest.raises(ConfigError, match=message):
        launch.check(parse(data), root=tmp_path)


def test_an_evaluation_with_other_arguments_and_the_same_spaces_is_allowed(tmp_path: Path) -> None:
    env = {
        "kwargs": {"sutton_barto_reward": True},
        "wrappers": [{"name": "time_limit", "kwargs": {"max_steps": 9}}],
    }
    data = {"env": {"id": "CartPole-v1"}, "algo": {"name": "ppo"}, "eval": {"env": env}}
    assert not launch.check(parse(data), root=tmp_path).problems


def test_a_scenario_that_cannot_be_played_is_refused_before_there_is_a_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="lenght"):
        launch.check(parse(config(long={"pass": "lenght > 40"})), root=tmp_path)
