"""A key that does not exist is answered with the one that was meant."""

from __future__ import annotations

import pytest

from rlx.config.key_docs import MEANINGS, OTHER_NAMES
from rlx.config.schema import ALGORITHMS
from rlx.config.schema_map import all_keys
from rlx.config.unknown_key import unknown_key


@pytest.mark.parametrize(
    ("key", "algorithm", "hint"),
    [
        ("algo.learning_rte", "ppo", "did you mean `algo.learning_rate`?"),
        ("algo.n_steps", "ppo", "did you mean `algo.rollout_steps`?"),
        ("algo.ent_coef", "ppo", "did you mean `algo.entropy_coef`?"),
        ("algo.ent_coef", "sac", "did you mean `algo.entropy_coef`?"),
        ("algo.n_epochs", "ppo", "did you mean `algo.update_epochs`?"),
        ("algo.vf_coef", "a2c", "did you mean `algo.value_coef`?"),
        ("algo.clip-coef", "ppo", "did you mean `algo.clip_range`?"),
        ("algo.train_freq", "dqn", "did you mean `algo.train_every`?"),
        ("algo.LR", "dqn", "did you mean `algo.learning_rate`?"),
        ("algo.net_arch", "ppo", "did you mean `policy.hidden_sizes`?"),
        ("algo.n_envs", "ppo", "did you mean `env.num_envs`?"),
        ("algo.clip_range", "dqn", "`algo.clip_range` is a key of ppo, recurrent_ppo, maskable_ppo; this config"),
        ("algo.buffer_size", "ppo", "`algo.buffer_size` is a key of dqn, sac, td3, ddpg, tqc, qrdqn; this"),
        ("algo.train_freq", "ppo", "`algo.train_every` is a key of dqn, sac, td3, ddpg, tqc, qrdqn; this"),
        ("algo.hidden_sizes", "ppo", "did you mean `policy.hidden_sizes`?"),
        ("env.total_timesteps", "ppo", "did you mean `algo.total_timesteps`?"),
        ("env.num_env", "ppo", "did you mean `env.num_envs`?"),
        ("env.normalize.observation", "ppo", "did you mean `env.normalize.obs`?"),
        ("env.normalize.norm_obs", "ppo", "did you mean `env.normalize.obs`?"),
        ("learning_rate", "ppo", "did you mean `algo.learning_rate`?"),
        ("lerning_rate", "ppo", "did you mean `algo.learning_rate`?"),
        ("algorithm", "ppo", "did you mean `algo`?"),
        ("n_timesteps", "ppo", "did you mean `algo.total_timesteps`?"),
        ("extend", "ppo", "did you mean `extends`?"),
        ("inherits", "ppo", "did you mean `extends`?"),
        ("sed", "ppo", "did you mean `seed`?"),
        ("eval.freq", "ppo", "did you mean `eval.every`?"),
        ("eval.zzz", "ppo", "`eval` has: every, episodes, report_episodes, deterministic"),
        ("zzzz", "ppo", "a config has: run_name, seed"),
        ("algo.qqqq", "ars", "`algo` has: name, total_timesteps"),
        ("algo.clip_range", "file.py:Mine", "`algo.clip_range` is a key of ppo, recurrent_ppo"),
    ],
)
def test_what_was_meant(key: str, algorithm: str, hint: str) -> None:
    problem = unknown_key(tuple(key.split(".")), algorithm)
    assert problem.message == f"unknown key `{key}`"
    assert (problem.hint or "").startswith(hint)


def test_every_other_name_means_a_key_that_exists() -> None:
    known = {key for algorithm in ALGORITHMS for key in all_keys(algorithm).values()} | set(MEANINGS)
    assert {meant for meant in OTHER_NAMES.values() if meant not in known} == set()


def test_no_other_name_is_a_key_of_the_section_it_points_to() -> None:
    assert [name for name, meant in OTHER_NAMES.items() if meant.rsplit(".", 1)[-1] == name and "." in meant] == []
