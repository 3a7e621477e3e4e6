"""What SB3 cannot train is said before it is tried, with what to use instead."""

from __future__ import annotations

from dataclasses import replace
from importlib import util
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rlx.config.schema import Problem
from rlx.envs.make import EnvFacts
from rlx.errors import MissingExtra
from rlx.train.backends.sb3 import requirements
from rlx.train.backends.sb3.sb3_trainer import Sb3Trainer
from tests.train.backends.sb3_examples import ALGORITHMS, CONTINUOUS, tiny

BOX = spaces.Box(-1, 1, (3,), np.float32)
IMAGE = spaces.Box(0, 255, (84, 84, 3), np.uint8)
TWO = spaces.Discrete(2)
FACTS = EnvFacts(BOX, TWO, horizon=None, reward_threshold=None, has_masks=False, source="test")


def found(
    algorithm: str, *, observation: Any = BOX, action: Any = TWO, masks: bool = False, **settings: Any
) -> list[Problem]:
    facts = replace(FACTS, observation_space=observation, action_space=action, has_masks=masks)
    return requirements.problems(tiny(algorithm, **settings), facts)


def one(*arguments: Any, **settings: Any) -> Problem:
    (problem,) = found(*arguments, **settings)
    assert problem.hint or not problem.is_error
    assert "\n" not in problem.message
    return problem


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_passes_with_the_actions_it_is_made_for(name: str) -> None:
    action = BOX if name in CONTINUOUS else TWO
    assert found(name, action=action, masks=name == "maskable_ppo") == []


@pytest.mark.parametrize(
    ("name", "action", "hint"),
    [
        ("dqn", BOX, "ppo, sac or td3"),
        ("qrdqn", BOX, "ppo, sac or td3"),
        ("dqn", spaces.MultiDiscrete([2, 2]), "ppo"),
        ("sac", TWO, "ppo or dqn"),
        ("td3", TWO, "ppo or dqn"),
        ("ddpg", TWO, "ppo or dqn"),
        ("tqc", TWO, "ppo or dqn"),
        ("ars", spaces.MultiBinary(2), "ppo"),
    ],
)
def test_actions_an_algorithm_cannot_take_come_with_one_that_can(name: str, action: Any, hint: str) -> None:
    problem = one(name, action=action)
    assert (problem.key, problem.is_error) == ("algo.name", True)
    assert problem.hint == f"use {hint}: -s algo.name=ppo"


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (spaces.Dict({"a": TWO}), "Dict action spaces"),
        (spaces.Tuple([TWO]), "Tuple action spaces"),
        (spaces.Box(-np.inf, np.inf, (1,)), "no finite bounds"),
        (spaces.MultiBinary([2, 2]), "several dimensions"),
        (spaces.Discrete(2, start=1), "counts actions from 0"),
        (spaces.MultiDiscrete([2, 2], start=[0, 1]), "counts actions from 0"),
    ],
    ids=str,
)
def test_action_spaces_sb3_does_not_know_are_refused(action: Any, message: str) -> None:
    assert message in one("ppo", action=action).message


@pytest.mark.parametrize(
    ("observation", "kind", "key", "hint"),
    [
        (spaces.Dict({"a": BOX}), "mlp", "policy.type", "-s policy.type=multi"),
        (spaces.Dict({"a": BOX}), "cnn", "policy.type", "-s policy.type=multi"),
        (BOX, "multi", "policy.type", "-s policy.type=mlp"),
        (IMAGE, "multi", "policy.type", "-s policy.type=cnn"),
        (BOX, "cnn", "policy.type", "-s policy.type=mlp"),
        (spaces.Box(0, 255, (20, 84, 3), np.uint8), "cnn", "policy.type", "resize them in a wrapper"),
        (spaces.Tuple([BOX]), "mlp", "env.id", "flatten it"),
        (spaces.Text(4), "mlp", "env.id", "flatten it"),
        (spaces.Dict({"a": spaces.Dict({"b": BOX})}), "multi", "env.id", "flatten it"),
        (spaces.Discrete(3, start=1), "mlp", "env.id", "flatten it"),
    ],
    ids=str,
)
def test_observations_a_policy_cannot_read_come_with_one_that_can(
    observation: Any, kind: str, key: str, hint: str
) -> None:
    problem = one("ppo", observation=observation, policy={"type": kind})
    assert (problem.key, problem.is_error) == (key, True)
    assert (problem.hint or "").startswith(hint)


def test_an_image_read_by_an_mlp_is_a_note() -> None:
    problem = one("ppo", observation=IMAGE)
    assert (problem.is_error, problem.hint) == (False, "-s policy.type=cnn")


def test_a_policy_of_ones_own_is_not_second_guessed() -> None:
    assert found("ppo", observation=spaces.Dict({"a": BOX}), policy={"type": "mine.py:Mine"}) == []


def test_random_search_has_mlps_only() -> None:
    assert "no cnn policy" in one("ars", observation=IMAGE, policy={"type": "cnn"}).message
    assert "dict observations" in one("ars", observation=spaces.Dict({"a": BOX}), policy={"type": "multi"}).message


def test_masks_are_asked_for_where_needed_and_mentioned_where_unused() -> None:
    assert "action_masks" in one("maskable_ppo").message
    problem = one("ppo", masks=True)
    assert (problem.is_error, problem.hint) == (False, "maskable_ppo uses them")


def test_normalisation_is_refused_where_nothing_has_a_scale() -> None:
    normalised = {"normalize": {"obs": True}}
    assert one("ppo", observation=spaces.Discrete(3), env=normalised).key == "env.normalize.obs"
    assert (
        "the network scales images itself"
        in one("ppo", observation=IMAGE, env=normalised, policy={"type": "cnn"}).message
    )
    assert found("ppo", observation=BOX, env=normalised) == []


def test_settings_without_effect_are_notes() -> None:
    assert one("trpo", entropy_coef=0.1).is_error is False
    assert one("ars", env={"normalize": {"reward": True}}).is_error is False


def test_state_dependent_noise_needs_continuous_actions() -> None:
    assert one("ppo", use_sde=True).key == "algo.use_sde"


def test_a_torch_without_cuda_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements.metadata, "version", lambda _: "2.13.0+cpu")
    experiment = tiny("ppo").model_copy(update={"device": "cuda:1"})
    (problem,) = requirements.problems(experiment, FACTS)
    assert (problem.key, "without CUDA" in problem.message) == ("device", True)


@pytest.mark.parametrize("package", ["torch", "stable_baselines3", "sb3_contrib"])
def test_a_missing_package_is_one_line_with_the_extra_to_install(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = util.find_spec
    monkeypatch.setattr(requirements.util, "find_spec", lambda name: None if name == package else real(name))
    problem = one("tqc", action=BOX)
    assert problem.message == f"`tqc` needs `{package}`, which is not installed"
    assert problem.hint == "pip install 'rlx[sb3]'"
    with pytest.raises(MissingExtra) as caught:
        Sb3Trainer().load(None)  # type: ignore[arg-type]
    assert caught.value.message == f"a policy trained with sb3 needs `{package}`, which is not installed"
