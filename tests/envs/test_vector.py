from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from rlx.config.schema import Env
from rlx.envs.make import make_env
from rlx.envs.snapshot import probe
from rlx.envs.snapshot.snapshot_diff import same
from rlx.envs.vector import FIRST_SEED, NativeVector, env_seeds, last_observation, make_vector, was_success
from rlx.errors import ConfigError

LENGTH = 3


class Counter(gymnasium.Env[Any, Any]):
    """Counts to three; its observation is one buffer, overwritten in place."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-100, 100, (1,), np.float64)
        self.action_space = spaces.Discrete(2)
        self.buffer = np.zeros(1)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.buffer[0] = 0.0
        return self.buffer, {"start": True}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.buffer[0] += 1
        return self.buffer, 1.0, bool(self.buffer[0] >= LENGTH), False, {"count": float(self.buffer[0])}


class Growing(Counter):
    """Shows one number more at every step."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.buffer = np.zeros(len(self.buffer) + 1)
        return super().step(action)


class CounterVector(VectorEnv[Any, Any, Any]):
    """The same, many at once; the caller resets."""

    metadata = {"autoreset_mode": AutoresetMode.DISABLED}  # noqa: RUF012

    def __init__(self, num_envs: int = 1) -> None:
        self.num_envs = num_envs
        self.single_observation_space = spaces.Box(-100, 100, (1,), np.float64)
        self.single_action_space = spaces.Discrete(2)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        self.counts = np.zeros((num_envs, 1))

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        mask = (options or {}).get("reset_mask", np.ones(self.num_envs, bool))
        self.counts[mask] = 0.0
        if not (options or {}):
            self.counts[:, 0] = np.arange(self.num_envs)  # out of step with one another
        return self.counts.copy(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        self.counts += 1
        ended = self.counts[:, 0] >= LENGTH
        infos = {"count": self.counts[:, 0].copy(), "_count": np.ones(self.num_envs, bool)}
        return self.counts.copy(), np.ones(self.num_envs), ended, np.zeros(self.num_envs, bool), infos


class SelfResetting(CounterVector):
    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012


class NextStep(CounterVector):
    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    native = {"Disabled": CounterVector, "Same": SelfResetting, "Next": NextStep}
    for name, vector in native.items():
        gymnasium.register(f"rlx/Counter{name}-v0", entry_point=Counter, vector_entry_point=vector)
    gymnasium.register("rlx/Growing-v0", entry_point=Growing, disable_env_checker=True)
    yield
    for name in (*(f"Counter{name}" for name in native), "Growing"):
        gymnasium.registry.pop(f"rlx/{name}-v0")


@pytest.mark.parametrize(
    "env",
    [
        Env(id="rlx/CounterNext-v0"),
        Env(id="rlx/CounterDisabled-v0"),
        Env(id="rlx/CounterDisabled-v0", vectorization="sync"),
        Env(id="rlx/CounterDisabled-v0", vectorization="async"),
        Env(id="rlx/CounterDisabled-v0", wrappers=["clip_reward"]),
    ],
    ids=["next-step", "native", "sync", "async", "wrapped"],
)
def test_resets_in_the_same_step_and_keeps_the_last_observation(env: Env, tmp_path: Path) -> None:
    vector = make_vector(env, root=tmp_path, num_envs=2)
    try:
        assert vector.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
        observations, _ = vector.reset(seed=env_seeds(0, 2))  # type: ignore[arg-type]
        last = observations[0, 0]
        for _ in range(2 * LENGTH):
            observations, rewards, terminated, _, infos = vector.step(np.zeros(2, np.int64))
            last += 1
            assert rewards[0] == 1.0
            assert terminated[0] == (last == LENGTH)
            if terminated[0]:
                assert infos["final_obs"][0][0] == LENGTH
                assert infos["_final_obs"][0]
                assert infos["final_info"]["count"][0] == LENGTH
                last = 0.0
            assert observations[0, 0] == last
    finally:
        vector.close()


def test_a_native_vector_is_used_where_it_can_reset_within_the_step(tmp_path: Path) -> None:
    for name in ("Disabled", "Same"):
        assert isinstance(make_vector(Env(id=f"rlx/Counter{name}-v0"), root=tmp_path, num_envs=2), NativeVector)


def test_a_native_vector_keeps_the_infos_of_episodes_that_go_on(tmp_path: Path) -> None:
    vector = make_vector(Env(id="rlx/CounterDisabled-v0"), root=tmp_path, num_envs=2)
    vector.reset(seed=3)
    vector.step(np.zeros(2, np.int64))
    _, _, terminated, _, infos = vector.step(np.zeros(2, np.int64))
    assert terminated.tolist() == [False, True]
    assert infos["count"][0] == 2.0
    assert infos["final_obs"][0] is None
    assert infos["final_obs"][1][0] == LENGTH


def test_a_native_vector_resumes_exactly(tmp_path: Path) -> None:
    assert probe(lambda: make_vector(Env(id="rlx/CounterDisabled-v0"), root=tmp_path, num_envs=3)).is_exact


def test_cartpoles_next_step_vector_is_not_used(tmp_path: Path) -> None:
    vector = make_vector(Env(id="CartPole-v1", num_envs=3), root=tmp_path)
    assert isinstance(vector, SyncVectorEnv)
    assert vector.num_envs == 3
    vector.close()


def test_async_is_used_only_when_asked(tmp_path: Path) -> None:
    vector = make_vector(Env(id="CartPole-v1", vectorization="async"), root=tmp_path, num_envs=2)
    try:
        assert isinstance(vector, AsyncVectorEnv)
    finally:
        vector.close()


def test_an_environment_that_cannot_be_made_is_one_clear_error_in_async_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="takes no argument `gravity`"):
        make_vector(Env(id="Pendulum-v1", vectorization="async", kwargs={"gravity": 1}), root=tmp_path, num_envs=2)


def test_a_truncated_episode_is_marked_as_truncated(tmp_path: Path) -> None:
    env = Env(id="Pendulum-v1", wrappers=[{"time_limit": {"max_steps": 2}}])
    vector = make_vector(env, root=tmp_path, num_envs=1)
    vector.reset(seed=[1])  # type: ignore[arg-type]
    vector.step(np.zeros((1, 1), np.float32))
    _, _, terminated, truncated, infos = vector.step(np.zeros((1, 1), np.float32))
    assert (terminated[0], truncated[0]) == (False, True)
    assert infos["final_obs"][0].shape == (3,)


def test_spaces_that_differ_from_one_copy_to_the_next_are_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(
        "import itertools, gymnasium\nfrom gymnasium import spaces\nsizes = itertools.count(2)\n"
        "class Odd(gymnasium.Env):\n    def __init__(self):\n"
        "        self.observation_space = self.action_space = spaces.Discrete(next(sizes))\n"
    )
    with pytest.raises(ConfigError, match="not have the same spaces"):
        make_vector(Env(id="odd.py:Odd"), root=tmp_path, num_envs=2)


def test_seeds_never_coincide_between_training_seeds_nor_with_evaluation() -> None:
    drawn = [seed for training in range(200) for seed in env_seeds(training, 64)]
    assert len(set(drawn)) == len(drawn)
    assert min(drawn) >= FIRST_SEED
    assert max(drawn) < 2**31


def test_seeds_do_not_depend_on_how_many_there_are() -> None:
    assert env_seeds(5, 16)[:4] == env_seeds(5, 4)


def test_large_training_seeds_and_counts_have_seeds_too() -> None:
    for training, count in ((2**40, 8), (3, 2000)):
        seeds = env_seeds(training, count)
        assert len(seeds) == count
        assert all(FIRST_SEED <= seed < 2**31 for seed in seeds)


def plain(value: Any) -> Any:
    """Return arrays of objects, wherever they are, as lists."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)) or (isinstance(value, np.ndarray) and value.dtype == object):
        return [plain(item) for item in value]
    return value


@pytest.mark.parametrize(
    ("name", "wrappers"),
    [("CartPole-v1", []), ("Pendulum-v1", [{"time_limit": {"max_steps": 7}}]), ("LunarLander-v3", []),
     ("Hopper-v5", [{"time_limit": {"max_steps": 9}}]), ("FrozenLake-v1", []),
     ("CartPole-v1", [{"frame_stack": {"size": 4}}])],
)  # fmt: skip
def test_the_sync_vector_answers_as_gymnasiums(name: str, wrappers: list[Any], tmp_path: Path) -> None:
    env = Env.model_validate({"id": name, "wrappers": wrappers, "vectorization": "sync"})
    ours = make_vector(env, root=tmp_path, num_envs=3)
    theirs = SyncVectorEnv([partial(make_env, env, root=tmp_path)] * 3, autoreset_mode=AutoresetMode.SAME_STEP)
    seeds: Any = [5, 6, 7]
    assert same(plain(ours.reset(seed=seeds)), plain(theirs.reset(seed=seeds)))
    ours.action_space.seed(0)
    ended = 0
    for _ in range(150):
        actions = ours.action_space.sample()
        one, two = ours.step(actions), theirs.step(actions)
        ended += int((one[2] | one[3]).sum())
        assert same(plain(one), plain(two))
    assert ended
    ours.close()
    theirs.close()


def test_a_sync_vector_can_leave_out_the_infos_of_episodes_that_go_on(tmp_path: Path) -> None:
    limit = {"time_limit": {"max_steps": 3}}
    env = Env.model_validate({"id": "Hopper-v5", "wrappers": [limit], "vectorization": "sync"})
    vector: Any = make_vector(env, root=tmp_path, num_envs=2)
    vector.keeps_infos = False
    vector.reset(seed=1)
    infos = [vector.step(vector.action_space.sample())[-1] for _ in range(3)]
    assert infos[:2] == [{}, {}]
    assert set(infos[2]) == {"final_obs", "_final_obs", "final_info", "_final_info"}
    assert "x_position" in infos[2]["final_info"]
    vector.close()


def test_a_sync_vector_refuses_observations_that_do_not_fit(tmp_path: Path) -> None:
    vector = make_vector(Env(id="rlx/Growing-v0", vectorization="sync"), root=tmp_path, num_envs=2)
    vector.reset(seed=1)
    with pytest.raises(ValueError, match=r"shape|dimension|size"):
        vector.step(vector.action_space.sample())
    vector.close()


def test_the_last_observation_is_that_of_one_environment_whatever_its_structure() -> None:
    assert last_observation({"final_obs": np.array([3.0, 4.0])}, 1) == 4.0
    nested = {"final_obs": {"a": [1, 2], "b": {"c": [3, 4]}}}
    assert last_observation(nested, 0) == {"a": 1, "b": {"c": 3}}


def test_success_is_told_under_either_name_and_only_where_the_mask_says_so() -> None:
    told = {"is_success": np.array([True, False]), "_is_success": np.array([True, False])}
    assert was_success({"final_info": told}, 0) == 1.0
    assert was_success({"final_info": told}, 1) is None
    assert was_success({"final_info": {"success": np.array([0.0, 1.0])}}, 1) == 1.0
    assert was_success({"final_info": {"other": np.array([1.0])}}, 0) is None
    assert was_success({}, 0) is None
