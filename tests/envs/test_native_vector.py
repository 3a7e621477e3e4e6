"""Vector environments of one's own: many worlds for training, one world for evaluation, in NumPy and torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv

from rlx.config.schema import Env, Wrapper
from rlx.envs.make import inspect, make_env
from rlx.envs.native_vector import NativeVector, resets_late
from rlx.envs.snapshot import capture, restore
from rlx.envs.vector import is_batched, make_vector
from rlx.errors import ConfigError

HERE = "tests.envs.swarm"
ROOT = Path(__file__).parents[2]


def walk(env: Any, steps: int = 100) -> list[Any]:
    rng = np.random.default_rng(3)
    found = [env.reset(seed=5)[0]]
    for _ in range(steps):
        observations, rewards, terminated, truncated, infos = env.step(rng.integers(0, 2, env.num_envs))
        ended = np.flatnonzero(np.logical_or(terminated, truncated))
        finals = [np.asarray(infos["final_obs"][index]).tolist() for index in ended]
        found.append((np.asarray(observations).tolist(), np.asarray(rewards).tolist(), terminated.tolist(), finals))
    return found


@pytest.mark.parametrize("name", ["PatientSwarm", "TorchSwarm"])
def test_every_kind_gives_what_the_numpy_one_gives(name: str) -> None:
    plain = make_vector(Env(id=f"{HERE}:Swarm", num_envs=3), root=ROOT)
    other = make_vector(Env(id=f"{HERE}:{name}", num_envs=3), root=ROOT)
    assert isinstance(plain, NativeVector)
    assert isinstance(other, NativeVector)
    for ours, theirs in zip(walk(plain), walk(other), strict=True):
        assert str(ours) == str(theirs)


def test_one_world_is_a_plain_environment() -> None:
    env = make_env(Env(id=f"{HERE}:Swarm", kwargs={"horizon": 7}), root=ROOT)
    check_env(env, skip_render_check=True)
    observation, _ = env.reset(seed=1)
    ended = False
    steps = 0
    while not ended:
        observation, reward, terminated, truncated, _ = env.step(1)
        ended = terminated or truncated
        steps += 1
    assert steps <= 7
    assert isinstance(reward, float)
    assert observation in env.observation_space
    facts = inspect(Env(id=f"{HERE}:Swarm"), root=ROOT)
    assert facts.action_space.n == 2  # type: ignore[attr-defined]


def test_the_last_observation_of_an_episode_is_not_the_next_ones_first() -> None:
    env = make_env(Env(id=f"{HERE}:Swarm", kwargs={"horizon": 400, "push": 0.5}), root=ROOT)
    env.reset(seed=1)
    while True:
        observation, _, terminated, _, _ = env.step(1)
        if terminated:
            break
    assert abs(observation[0]) > 1.5


def test_one_world_renders_its_own_frame() -> None:
    env = make_env(Env(id=f"{HERE}:Swarm"), root=ROOT, render_mode="rgb_array")
    env.reset(seed=1)
    frame: Any = env.render()
    assert frame.shape == (32, 64, 3)
    assert frame.max() > 0


def test_wrappers_step_the_worlds_one_by_one() -> None:
    env = Env(id=f"{HERE}:Swarm", wrappers=(Wrapper(name="flatten"),))
    assert not isinstance(make_vector(env, root=ROOT, num_envs=2), NativeVector)


def test_the_worlds_go_on_exactly_where_they_were_captured() -> None:
    first = make_vector(Env(id=f"{HERE}:Swarm", num_envs=3), root=ROOT)
    walk(first, steps=30)
    state = capture(first)
    second = make_vector(Env(id=f"{HERE}:Swarm", num_envs=3), root=ROOT)
    restore(second, state)
    for _ in range(60):
        ours, theirs = (env.step(np.array([0, 1, 1])) for env in (first, second))
        assert str(ours) == str(theirs)


def test_worlds_that_do_not_say_how_they_reset_are_refused_with_what_to_write() -> None:
    with pytest.raises(ConfigError, match="does not say how") as caught:
        make_env(Env(id=f"{HERE}:Silent"), root=ROOT)
    assert "autoreset_mode" in str(caught.value.hint)


def test_an_unknown_argument_is_named() -> None:
    with pytest.raises(ConfigError, match="horzion"):
        make_env(Env(id=f"{HERE}:Swarm", kwargs={"horzion": 3}), root=ROOT)


def test_worlds_that_reset_late_are_taken_as_they_are_only_by_who_asks_for_it() -> None:
    env = Env(id="tests.envs.swarm:Late", num_envs=3)
    late = make_vector(env, root=ROOT, takes_late=True)
    assert isinstance(late, NativeVector)
    assert resets_late(late)
    copies = make_vector(env, root=ROOT)
    assert isinstance(copies, SyncVectorEnv)
    assert not resets_late(copies)
    assert not is_batched(env, root=ROOT)
    copies.reset(seed=1)
    for _ in range(60):
        observations, _, terminated, truncated, infos = copies.step(np.ones(3, np.int64))
        for index in np.flatnonzero(terminated | truncated):
            assert abs(infos["final_obs"][index][0]) > abs(observations[index][0])
    late.close()
    copies.close()
