"""The adapter hands SB3 what its own vector environments would."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv

from rlx.config.schema import Env
from rlx.envs.vector import make_vector
from rlx.train.backends.sb3.vec_env import SameStepVecEnv, SpacesOnly
from rlx.train.finite_checks import Diverged
from tests.train.backends.sb3_examples import TOYS

SEEDS = [11, 12]


def adapter(env: str, *, keep_infos: bool = False, **settings: Any) -> SameStepVecEnv:
    section = Env.model_validate({"id": env, "vectorization": "sync", **settings})
    return SameStepVecEnv(make_vector(section, root=Path(), num_envs=2), seeds=SEEDS, keep_infos=keep_infos)


def test_it_steps_as_sb3s_own_vector_environment() -> None:
    ours = adapter("CartPole-v1", kwargs={"max_episode_steps": 12})
    theirs = DummyVecEnv([lambda: gymnasium.make("CartPole-v1", max_episode_steps=12)] * 2)
    theirs._seeds = list(SEEDS)
    np.testing.assert_array_equal(ours.reset(), theirs.reset())
    actions = np.random.default_rng(0).integers(2, size=(60, 2))
    finished = cut = 0
    for action in actions:
        mine, his = ours.step(action), theirs.step(action)
        for one, other in zip(mine[:3], his[:3], strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
        for index in np.flatnonzero(mine[2]):
            finished += 1
            row, other_row = mine[3][index], his[3][index]
            np.testing.assert_array_equal(row["terminal_observation"], other_row["terminal_observation"])
            assert row["TimeLimit.truncated"] == other_row["TimeLimit.truncated"]
            assert row["episode"]["l"] == row["episode"]["r"] <= 12
            cut += row["TimeLimit.truncated"]
    assert finished > cut > 0
    assert (ours.steps, ours.episodes) == (120, finished)


def test_seeds_are_used_once_and_not_those_of_sb3() -> None:
    env = adapter("CartPole-v1")
    env.seed(5)
    first, second = env.reset(), env.reset()
    assert not np.array_equal(first, second)
    again = adapter("CartPole-v1")
    np.testing.assert_array_equal(again.reset(), first)
    assert not np.array_equal(first[0], first[1])


def test_dict_observations_and_their_last_ones_stay_dicts() -> None:
    env = adapter(f"{TOYS}:Mixed")
    assert set(env.reset()) == {"numbers", "choice", "bits"}
    for _ in range(7):
        observations, _, finished, rows = env.step(np.zeros(2, dtype=int))
    assert finished.all()
    assert observations["numbers"].shape == (2, 3)
    assert rows[0]["terminal_observation"]["numbers"].shape == (3,)


def test_masks_reach_through_and_are_missed_where_there_are_none() -> None:
    env = adapter(f"{TOYS}:Doors")
    env.reset()
    assert env.has_attr("action_masks")
    np.testing.assert_array_equal(np.stack(env.env_method("action_masks")), [[True, False, True, False]] * 2)
    assert not adapter("CartPole-v1").has_attr("action_masks")
    assert not adapter("CartPole-v1").has_attr("nonsense")
    assert adapter("CartPole-v1").get_attr("gravity") == [9.8, 9.8]


def test_infos_are_handed_on_only_to_algorithms_that_may_read_them() -> None:
    for keep, expected in ((False, {}), (True, {"is_success": False})):
        env = adapter(f"{TOYS}:Goal", keep_infos=keep)
        env.reset()
        assert env.step(np.zeros(2, dtype=int))[3][0] == expected


def test_bits_arrive_with_the_dtype_of_their_space() -> None:
    env = adapter(f"{TOYS}:Switches")
    env.reset()
    assert env.step(np.ones((2, 3), dtype=np.float32))[1].tolist() == [3, 3]


def test_what_is_not_finite_is_named_with_its_step() -> None:
    env = adapter(f"{TOYS}:Sick", kwargs={"after": 3})
    env.reset()
    env.step(np.zeros(2, dtype=int))
    env.step(np.zeros(2, dtype=int))
    with pytest.raises(Diverged) as caught:
        env.step(np.zeros(2, dtype=int))
    assert (caught.value.tensor, caught.value.step) == ("observation of environment 0", 6)


def test_spaces_only_has_the_spaces_of_an_environment() -> None:
    env = SpacesOnly(gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(3))
    assert env.num_envs == 1
    assert (env.observation_space.n, env.action_space.n) == (2, 3)  # type: ignore[attr-defined]
