from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlx.config.schema import Env
from rlx.diagnose.env_checks.env_findings import check_env
from rlx.diagnose.finding import Finding
from rlx.envs.inspect.inspect_env import inspect

HERE = Path(__file__).parent.parent
SECONDS = 20.0
"""Ample: nothing is left out. `bench/check_env.py` has many more, with and without defects."""

CART, ACRO, PEND, CAR = "CartPole-v1", "Acrobot-v1", "Pendulum-v1", "MountainCar-v0"
LAKE, TAXI, LANDER, CHEETAH, HOPPER = "FrozenLake-v1", "Taxi-v4", "LunarLander-v3", "HalfCheetah-v5", "Hopper-v5"


def found(env: Env) -> tuple[Finding, ...]:
    return check_env(inspect(env, root=HERE, seconds=SECONDS))


def planted(env: str, defect: str = "", **settings: Any) -> Env:
    return Env(id="planted.py:plant", kwargs={"env": env, "defect": defect, **settings})


def rules(findings: tuple[Finding, ...]) -> set[str]:
    return {finding.rule for finding in findings if finding.severity != "low"}


@pytest.mark.parametrize("env", [CART, CAR, LANDER, "Grid", TAXI])
def test_a_termination_reported_as_truncation_is_found(env: str) -> None:
    assert "termination_as_truncation" in rules(found(planted(env, "EndsTruncated")))


@pytest.mark.parametrize("env", [CART, PEND])
def test_a_time_limit_reported_as_termination_is_found(env: str) -> None:
    assert "time_limit_as_termination" in rules(found(planted(env, "LimitTerminates")))


@pytest.mark.parametrize(("env", "after"), [(CART, 50), (CART, 100), (PEND, 30), (LANDER, 50), (LAKE, 50)])
def test_a_reward_whose_sign_turns_is_found(env: str, after: int) -> None:
    assert "reward_sign_flips" in rules(found(planted(env, "Flips", after=after)))


@pytest.mark.parametrize("env", [CART, PEND, LANDER, TAXI])
def test_a_reward_whose_sign_turns_by_a_hidden_counter_is_found(env: str) -> None:
    assert "reward_sign_flips" in rules(found(planted(env, "FlipsUnseen")))


@pytest.mark.parametrize(
    ("env", "source"),
    [(CART, "seed"), (CART, "own"), (CART, "global"), (ACRO, "seed"), (PEND, "seed"), (CAR, "seed"), (HOPPER, "seed")],
)
def test_a_shuffled_observation_is_found(env: str, source: str) -> None:
    assert "obs_shuffled" in rules(found(planted(env, "Shuffled", source=source)))


@pytest.mark.parametrize(
    ("env", "which"),
    [(CART, 1), (LAKE, 3), (TAXI, 5), (LANDER, 2), (PEND, 0), (CHEETAH, 4)],
)
def test_a_dead_action_is_found(env: str, which: int) -> None:
    assert "dead_action" in rules(found(planted(env, "DeadAction", which=which)))


@pytest.mark.parametrize("fixed", [None, 3])
@pytest.mark.parametrize("env", [CART, TAXI])
def test_an_ignored_seed_is_found(env: str, fixed: int | None) -> None:
    assert "seed_ignored" in rules(found(planted(env, "SeedIgnored", fixed=fixed)))


@pytest.mark.parametrize("env", [CART, LAKE])
def test_an_observation_outside_its_space_is_found(env: str) -> None:
    assert "obs_outside_space" in rules(found(planted(env, "Outside")))


@pytest.mark.parametrize("env", [CART, "Grid"])
def test_an_aliased_buffer_is_found(env: str) -> None:
    assert "obs_aliased" in rules(found(planted(env, "Aliased")))


SOUND = [CART, ACRO, PEND, CAR, LAKE, TAXI, HOPPER, "CliffWalking-v1", "Reacher-v5"]


def test_a_sound_environment_with_a_space_that_no_algorithm_reads_is_only_called_untrainable() -> None:
    assert rules(found(Env(id="Blackjack-v1"))) == {"cannot_train"}  # it observes a tuple


@pytest.mark.parametrize("env", SOUND)
def test_nothing_is_found_in_sound_environments(env: str) -> None:
    assert rules(found(Env(id=env))) == set()


@pytest.mark.parametrize(
    ("env", "true_ones"),
    [(LANDER, {"obs_outside_space"}), ("MountainCarContinuous-v0", {"obs_shared"})],
)
def test_only_true_defects_are_found_in_the_others(env: str, true_ones: set[str]) -> None:
    assert rules(found(Env(id=env))) == true_ones


def test_the_grid_of_the_tests_is_sound() -> None:
    assert rules(found(planted("Grid"))) == set()
