"""After loading, nothing is left open, and defaults fit what was written out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlx.config.defaults import LONGEST_NAME_BYTES, divisors, fitting_batch, resolve, slug
from rlx.config.load import parse
from rlx.config.schema import ALGORITHMS, Ars, Experiment, OffPolicy, Ppo, Trpo


def experiment(algorithm: str = "ppo", **sections: Any) -> Experiment:
    """Return a resolved experiment; `algo` and `env` are merged into the smallest ones."""
    algo = {"name": algorithm, **sections.pop("algo", {})}
    env = {"id": "CartPole-v1", **sections.pop("env", {})}
    return parse({"env": env, "algo": algo, **sections})


@pytest.mark.parametrize(
    ("algorithm", "num_envs", "hidden_sizes", "activation", "log_every"),
    [
        ("ppo", 8, (64, 64), "tanh", 1),
        ("recurrent_ppo", 8, (64, 64), "tanh", 1),
        ("maskable_ppo", 8, (64, 64), "tanh", 1),
        ("a2c", 8, (64, 64), "tanh", 1),
        ("trpo", 8, (64, 64), "tanh", 1),
        ("ars", 1, (64, 64), "tanh", 1),
        ("dqn", 1, (64, 64), "relu", 500),
        ("qrdqn", 1, (64, 64), "relu", 500),
        ("sac", 1, (256, 256), "relu", 500),
        ("tqc", 1, (256, 256), "relu", 500),
        ("td3", 1, (400, 300), "relu", 500),
        ("ddpg", 1, (400, 300), "relu", 500),
        ("mine.py:Mine", 1, (64, 64), "tanh", 500),
    ],
)
def test_open_values_follow_the_algorithm(
    algorithm: str, num_envs: int, hidden_sizes: tuple[int, ...], activation: str, log_every: int
) -> None:
    resolved = experiment(algorithm)
    assert resolved.env.num_envs == num_envs
    assert resolved.policy.hidden_sizes == hidden_sizes
    assert resolved.policy.activation == activation
    assert resolved.log.every == log_every


@pytest.mark.parametrize(("total", "every"), [(100_000, 10_000), (15, 1), (1, 1)])
def test_a_run_is_saved_and_evaluated_ten_times(total: int, every: int) -> None:
    resolved = experiment(algo={"total_timesteps": total})
    assert (resolved.checkpoint.save_every, resolved.eval.every) == (every, every)


def test_what_is_written_out_stays() -> None:
    resolved = experiment(env={"num_envs": 3}, algo={"rollout_steps": 8, "batch_size": 24}, policy={"hidden_sizes": []},
                          eval={"every": 7}, log={"every": 9})  # fmt: skip
    assert (resolved.env.num_envs, resolved.eval.every, resolved.log.every) == (3, 7, 9)
    assert resolved.policy.hidden_sizes == ()


@pytest.mark.parametrize(
    ("rollout_steps", "num_envs", "batch_size"), [(256, 8, 64), (32, 1, 32), (100, 3, 60), (5, 1, 5), (7, 101, 101)]
)
def test_a_batch_size_left_open_divides_the_rollout(rollout_steps: int, num_envs: int, batch_size: int) -> None:
    algo = experiment(env={"num_envs": num_envs}, algo={"rollout_steps": rollout_steps}).algo
    assert isinstance(algo, Ppo)
    assert algo.batch_size == batch_size


def test_trpo_batches_fit_too() -> None:
    algo = experiment("trpo", env={"num_envs": 1}, algo={"rollout_steps": 50}).algo
    assert isinstance(algo, Trpo)
    assert algo.batch_size == 50


def test_a_short_run_still_learns() -> None:
    algo = experiment("dqn", algo={"total_timesteps": 64}).algo
    assert isinstance(algo, OffPolicy)
    assert algo.learning_starts == 32


def test_all_directions_are_kept_unless_told() -> None:
    algo = experiment("ars", algo={"deltas": 5}).algo
    assert isinstance(algo, Ars)
    assert algo.top_deltas == 5


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "mine.py:Mine"])
def test_resolving_twice_changes_nothing(algorithm: str) -> None:
    once = experiment(algorithm)
    assert resolve(once) == once


@pytest.mark.parametrize(
    ("env_id", "algorithm", "name"),
    [
        ("CartPole-v1", "ppo", "cartpole_ppo"),
        ("ALE/Pong-v5", "QR-DQN", "pong_qrdqn"),
        ("envs/boss fight.py:BossFight", "ppo", "bossfight_ppo"),
        ("package.module:Maze-v10", "RecurrentPPO", "maze_recurrent_ppo"),
        ("Maze", "algos/mine.py:Mine", "maze_mine"),
        ("日本-v0", "ppo", "日本_ppo"),
    ],
)
def test_a_run_is_named_after_environment_and_algorithm(env_id: str, algorithm: str, name: str) -> None:
    assert experiment(algorithm, env={"id": env_id}).run_name == name


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("my_run", "my_run"),
        ("My Run/1", "My_Run_1"),
        ("../../etc/passwd", "etc_passwd"),
        (".hidden", "hidden"),
        ("-rf", "rf"),
        ("a\0b\nc", "a_b_c"),
        ("lr=1e-3, γ=.9", "lr_1e-3_γ_.9"),
        ("v1.2+x", "v1.2+x"),
        ("..", ""),
        ("", ""),
        ("e\u0301", "é"),
        ("x" * 300, "x" * LONGEST_NAME_BYTES),
    ],
)
def test_a_run_name_is_safe_as_a_folder(name: str, safe: str) -> None:
    assert slug(name) == safe


@given(st.text())
def test_every_name_becomes_a_safe_one(name: str) -> None:
    safe = slug(name)
    assert slug(safe) == safe
    assert len(safe.encode()) <= LONGEST_NAME_BYTES
    assert not set(safe) & set("/\\\0\n: ")
    assert not safe.startswith((".", "-"))


@given(st.integers(1, 5000))
def test_divisors_divide(number: int) -> None:
    assert divisors(number) == [n for n in range(1, number + 1) if number % n == 0]


def test_absurd_sizes_cost_no_time() -> None:
    assert divisors(10**18) == []
    assert fitting_batch(10**18, 64) == 64
