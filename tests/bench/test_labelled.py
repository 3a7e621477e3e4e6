"""The labelled runs: every cell can be trained, lies on one side of the split, and names rules that exist."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from labelled.broken_rewards import Delayed, NotANumber
from labelled.broken_worlds import Bribed, DeadAction, EndsCalledCuts, Frozen, Shuffled
from labelled.cases import Case, cases, split
from labelled.grid import GoalGrid
from labelled.operators import OPERATORS
from labelled.tasks import TASKS, changed, times

from rlx.config.load import parse
from rlx.diagnose.rules import NAMES
from rlx.envs.make import make_env

CELLS = sorted({(case.task_name, case.operator_name) for case in cases() if case.operator_name})


def test_there_are_operators_worlds_algorithms_and_seeds_enough() -> None:
    seeds = Counter((case.task_name, case.operator_name) for case in cases() if not case.is_healthy)
    assert len(OPERATORS) >= 20
    assert len({task.world for task in TASKS.values()}) >= 4
    assert {task.algorithm for task in TASKS.values()} >= {"ppo", "dqn", "sac"}
    assert min(seeds.values()) >= 5
    assert len({case.seed for case in cases()}) == len(cases())


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_names_rules_and_tasks_that_exist(name: str) -> None:
    operator = OPERATORS[name]
    assert operator.right <= set(NAMES)
    assert operator.right
    assert set(operator.tasks) <= set(TASKS)


@pytest.mark.parametrize(("task", "operator"), CELLS)
def test_every_cell_has_a_config_that_differs_from_the_healthy_one_and_a_world_that_can_be_made(
    task: str, operator: str, tmp_path: Path
) -> None:
    case = Case(task, operator, "tuned", 0)
    for config in (case.config, case.scored_config):
        made = make_env(parse(config).env, root=tmp_path)
        made.reset(seed=0)
        made.step(made.action_space.sample())
        made.close()
    healthy = Case(task, "", "tuned", 0)
    assert case.plan != healthy.plan


def test_healthy_variants_are_configs() -> None:
    for name, task in TASKS.items():
        for variant in task.variants:
            parse(Case(name, "", variant, 0).config)


def test_the_split_follows_from_what_is_planted_in_which_world_and_nothing_else() -> None:
    sides: dict[tuple[str, str], set[str]] = {}
    for case in cases():
        sides.setdefault((case.operator_name or case.variant, case.task.world), set()).add(case.split)
    assert all(len(side) == 1 for side in sides.values())
    assert (split("net_tiny", "cartpole"), split("bribe", "grid")) == ("dev", "test")


def test_about_half_of_the_trainings_are_on_either_side() -> None:
    for is_healthy in (True, False):
        own = [case.split for case in cases() if case.is_healthy == is_healthy]
        assert 0.4 < own.count("dev") / len(own) < 0.6


def test_a_policy_is_scored_as_it_learned_to_see_and_act_but_by_the_tasks_own_reward_and_ends() -> None:
    seen, ended = (Case("cartpole_ppo", name, "tuned", 0) for name in ("obs_large", "end_called_cut"))
    assert seen.scored_config["env"]["wrappers"] == seen.config["env"]["wrappers"] != []
    assert ended.config["env"]["wrappers"] != []
    assert ended.scored_config["env"]["wrappers"] == []


def test_a_change_multiplies_replaces_and_adds_wrappers_and_leaves_the_config_it_was_made_from() -> None:
    config: dict[str, Any] = {"algo": {"rate": 0.5, "batch": 64}, "env": {"wrappers": ["flatten"]}}
    new = changed(config, {"algo.rate": times(10.0), "algo.batch": times(1 / 8), "env.wrappers": ["clip_action"]})
    assert new == {"algo": {"rate": 5.0, "batch": 8}, "env": {"wrappers": ["flatten", "clip_action"]}}
    assert isinstance(new["algo"]["batch"], int)
    assert config["env"]["wrappers"] == ["flatten"]


def test_the_grid_pays_at_the_goal_and_tells_its_terms() -> None:
    grid = GoalGrid()
    grid.reset(seed=3)
    grid.place, grid.goal = np.array([0, 0]), np.array([1, 0])
    _, reward, terminated, truncated, info = grid.step(0)
    assert (reward, terminated, truncated) == (0.98, True, False)
    assert info == {"reward_terms": {"goal": 1.0, "step": -0.02}, "is_success": True}


def test_the_grid_cuts_an_episode_that_takes_too_long() -> None:
    grid = GoalGrid()
    grid.reset(seed=3)
    grid.place, grid.goal = np.array([0, 0]), np.array([6, 6])
    ends = [grid.step(1)[2:4] for _ in range(30)]
    assert ends[-2:] == [(False, False), (False, True)]


def test_delayed_rewards_are_owed_and_paid() -> None:
    env = Delayed(gymnasium.make("CartPole-v1"), every=3)
    env.reset(seed=0)
    assert [env.step(step % 2)[1] for step in range(6)] == [0.0, 0.0, 3.0, 0.0, 0.0, 3.0]


def test_some_rewards_are_not_numbers() -> None:
    env = NotANumber(gymnasium.make("CartPole-v1"), chance=0.5)
    env.reset(seed=0)
    rewards = [env.step(step % 2)[1] for step in range(20)]
    assert 0 < sum(np.isnan(rewards)) < 20


def test_the_order_of_a_shuffled_observation_is_new_in_every_episode() -> None:
    env = Shuffled(gymnasium.make("CartPole-v1"))
    orders = []
    for _ in range(4):
        env.reset()
        orders.append(tuple(env.order))
    assert len(set(orders)) > 1


def test_frozen_parts_are_zero() -> None:
    env = Frozen(gymnasium.make("CartPole-v1"), parts=[1, 2])
    assert (env.reset(seed=0)[0][[1, 2]] == 0).all()


def test_a_dead_action_does_what_another_does() -> None:
    one, other = (DeadAction(gymnasium.make("CartPole-v1")) for _ in range(2))
    one.reset(seed=0), other.reset(seed=0)
    np.testing.assert_array_equal(one.step(0)[0], other.step(1)[0])


def test_a_dead_direction_of_a_continuous_action_does_nothing() -> None:
    env = DeadAction(gymnasium.make("Pendulum-v1"))
    assert env.action(np.array([1.5], np.float32)) == 0
    assert env.action(np.array([-1.5], np.float32)) == np.float32(-1.5)


def test_an_end_is_called_a_cut() -> None:
    env = EndsCalledCuts(gymnasium.make("CartPole-v1"))
    env.reset(seed=0)
    ends = [(False, False)]
    while not any(ends[-1]):
        ends.append(env.step(1)[2:4])
    assert ends[-1] == (False, True)


def test_a_bribe_is_a_term_of_its_own_and_the_reward_is_their_sum() -> None:
    env = Bribed(GoalGrid(), pay=0.1, part=0, at="edge")
    env.reset(seed=0)
    env.unwrapped.place, env.unwrapped.goal = np.array([0, 0]), np.array([6, 6])
    _, reward, *_, info = env.step(1)
    assert info["reward_terms"] == {"goal": 0.0, "step": -0.02, "bribe": 0.1}
    assert reward == pytest.approx(0.08)
    assert info["is_success"] is False
