"""The map of a config tells which keys go where and what they take."""

from __future__ import annotations

import pytest

from rlx.config import schema
from rlx.config.schema_map import algorithms_with, all_keys, choices, expected, section


@pytest.mark.parametrize(
    ("path", "algorithm", "model"),
    [
        ((), "ppo", schema.Experiment),
        (("env",), "ppo", schema.Env),
        (("env", "wrappers"), "ppo", None),
        (("env", "wrappers", 0), "ppo", schema.Wrapper),
        (("env", "kwargs"), "ppo", None),
        (("algo",), "dqn", schema.Dqn),
        (("algo",), "mine.py:Mine", schema.CustomAlgo),
        (("algo", "learning_rate"), "ppo", None),
        (("log", "wandb"), "ppo", schema.Wandb),
    ],
)
def test_a_part_of_a_config_has_a_model(path: tuple[str | int, ...], algorithm: str, model: object) -> None:
    assert section(path, algorithm) is model


@pytest.mark.parametrize(
    ("model", "key", "words"),
    [
        (schema.Ppo, "gamma", "a number from 0 to 1"),
        (schema.Ppo, "learning_rate", "a number > 0 or a schedule `{linear: [from, to]}`"),
        (schema.Ppo, "use_sde", "true or false"),
        (schema.Ppo, "name", "ppo"),
        (schema.Dqn, "tau", "a number > 0 and ≤ 1"),
        (schema.Dqn, "gradient_steps", "a whole number ≥ -1"),
        (schema.Sac, "target_entropy", "a number or auto"),
        (schema.Env, "vectorization", "auto, sync or async"),
        (schema.Env, "kwargs", "a mapping"),
        (schema.Policy, "hidden_sizes", "a list (whole number ≥ 1 each)"),
        (schema.Log, "wandb", "true or false or a mapping"),
    ],
)
def test_what_a_key_takes_is_put_into_words(model: type[schema.Section], key: str, words: str) -> None:
    assert expected(model, key) == words


def test_a_key_takes_words_from_a_list() -> None:
    assert choices(schema.Env, "vectorization") == ["auto", "sync", "async"]
    assert choices(schema.Sac, "entropy_coef") == ["auto"]
    assert choices(schema.Ppo, "gamma") == []


def test_keys_are_found_by_their_last_part() -> None:
    known = all_keys("ppo")
    assert known["id"] == "env.id"
    assert known["clip_range"] == "algo.clip_range"
    assert known["seed"] == "seed"
    assert "buffer_size" not in known
    assert algorithms_with("clip_range") == ["ppo", "recurrent_ppo", "maskable_ppo"]
