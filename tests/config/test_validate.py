"""Every wrong key and value is one line that says what is expected, and what was meant."""

from __future__ import annotations

from typing import Any

import pytest

from rlx.config.validate import quote, validate

ENV = {"env": {"id": "CartPole-v1"}}


def problems(data: dict[str, Any]) -> dict[str, tuple[str, str]]:
    experiment, found = validate(data)
    assert experiment is None
    assert all(problem.is_error for problem in found.values())
    return {problem.key: (problem.message, problem.hint or "") for problem in found.values()}


@pytest.mark.parametrize(
    ("section", "key", "message", "hint"),
    [
        ({"algo": {"gamma": 1.7}}, "algo.gamma", "`algo.gamma` is 1.7; expected a number from 0 to 1", "discount"),
        (
            {"algo": {"gamma": "high"}},
            "algo.gamma",
            '`algo.gamma` is "high"; expected a number from 0 to 1',
            "discount",
        ),
        ({"algo": {"gamma": "0.9"}}, "algo.gamma", '`algo.gamma` is "0.9"', "without quotes: gamma: 0.9"),
        ({"algo": {"gamma": float("nan")}}, "algo.gamma", "`algo.gamma` is NaN", "discount"),
        ({"algo": {"batch_size": 2.5}}, "algo.batch_size", "is 2.5; expected a whole number ≥ 1", "samples"),
        ({"algo": {"batch_size": True}}, "algo.batch_size", "is true; expected a whole number ≥ 1", "samples"),
        ({"algo": {"total_timesteps": "100k"}}, "algo.total_timesteps", '"100k"', "total_timesteps: 100000"),
        ({"algo": {"total_timesteps": "1.5M"}}, "algo.total_timesteps", '"1.5M"', "total_timesteps: 1500000"),
        (
            {"algo": {"learning_rate": -1}},
            "algo.learning_rate",
            "expected a number > 0 or a schedule `{linear: [from, to]}`",
            "step",
        ),
        (
            {"algo": {"learning_rate": {"linear": [1]}}},
            "algo.learning_rate",
            'is {"linear": [1]}; expected a number > 0 or',
            "step",
        ),
        ({"algo": {"learning_rate": {"square": [1, 0]}}}, "algo.learning_rate", "or a schedule", "step"),
        (
            {"algo": {"gamma": {"linear": [1, 0]}}},
            "algo.gamma",
            "expected a number",
            "schedules work for `algo.learning_rate`",
        ),
        ({"algo": {"entropy_coef": -0.1}}, "algo.entropy_coef", "is -0.1; expected a number ≥ 0", "entropy"),
        (
            {"algo": {"name": "sac", "entropy_coef": "atuo"}},
            "algo.entropy_coef",
            "a number ≥ 0 or auto",
            "did you mean `auto`?",
        ),
        ({"algo": {"name": "sac", "tau": 0}}, "algo.tau", "is 0; expected a number > 0 and ≤ 1", "target"),
        ({"algo": {"name": "dqn", "gradient_steps": -2}}, "algo.gradient_steps", "a whole number ≥ -1", "gradient"),
        ({"algo": {"name": "maskable_ppo", "use_sde": True}}, "algo.use_sde", "is true; expected false", "noise"),
        ({"algo": {"name": 3}}, "algo.name", "`algo.name` is 3; expected text", "algorithm"),
        ({"algo": {"name": "file.py:Mine", "kwargs": 1}}, "algo.kwargs", "is 1; expected a mapping", "arguments"),
        ({"algo": "dqn"}, "algo", '`algo` is "dqn"; expected a mapping', "algo: {name: dqn}"),
        ({"algo": [1]}, "algo", "`algo` is [1]; expected a mapping", "how to learn"),
        ({"env": "CartPole-v1"}, "env", "expected a mapping", "env: {id: CartPole-v1}"),
        ({"env": {"id": ""}}, "env.id", '`env.id` is ""; expected text', "Gymnasium id"),
        ({"env": {"id": 3}}, "env.id", "`env.id` is 3; expected text", 'put it in quotes: id: "3"'),
        ({"env": {"num_envs": 2}}, "env.id", "`env.id` is missing", "rlx envs"),
        (
            {"env": {"id": "A", "vectorization": "asynch"}},
            "env.vectorization",
            "expected auto, sync or async",
            "`async`",
        ),
        ({"env": {"id": "A", "kwargs": [1]}}, "env.kwargs", "is [1]; expected a mapping", "arguments"),
        ({"env": {"id": "A", "wrappers": "flatten"}}, "env.wrappers", 'is "flatten"; expected a list', "inside out"),
        ({"env": {"id": "A", "wrappers": [{"x": 3}]}}, "env.wrappers.0", 'is {"x": 3}; expected a name', "inside out"),
        ({"env": {"id": "A", "wrappers": ["a", 5]}}, "env.wrappers.1", "is 5; expected a name", "inside out"),
        (
            {"env": {"id": "A", "wrappers": [{"name": "x", "args": {}}]}},
            "env.wrappers.0.args",
            "unknown key",
            "`env.wrappers.0.kwargs`",
        ),
        ({"env": {"id": "A", "normalize": True}}, "env.normalize", "is true; expected a mapping", "statistics"),
        ({"env": {"id": "A", "normalize": {"obs": 1}}}, "env.normalize.obs", "is 1; expected true or false", "mean"),
        ({"policy": "mlp"}, "policy", "expected a mapping", "policy: {type: mlp}"),
        (
            {"policy": {"hidden_sizes": 64}},
            "policy.hidden_sizes",
            "is 64; expected a list (whole number ≥ 1 each)",
            "units",
        ),
        ({"policy": {"hidden_sizes": [64, 0]}}, "policy.hidden_sizes", "is [64, 0]; expected a list", "units"),
        (
            {"policy": {"activation": "rleu"}},
            "policy.activation",
            "tanh, relu, elu, gelu or silu",
            "did you mean `relu`?",
        ),
        ({"seed": -1}, "seed", "is -1; expected a whole number from 0 to 4294967295", "training seed"),
        ({"seed": 2**32}, "seed", "expected a whole number from 0 to 4294967295", "training seed"),
        ({"seeds": "all"}, "seeds", 'is "all"; expected a whole number ≥ 1 or a list', "replicates"),
        ({"seeds": [0, -2]}, "seeds", "is [0, -2]; expected a whole number ≥ 1 or a list", "replicates"),
        ({"run_name": 2024}, "run_name", "is 2024; expected text", 'put it in quotes: run_name: "2024"'),
        ({"checkpoint": {"keep": -1}}, "checkpoint.keep", "is -1; expected a whole number ≥ 0", "keep"),
        ({"log": {"wandb": {"project": 3}}}, "log.wandb.project", "is 3; expected text", "W&B"),
        ({"log": {"wandb": "on"}}, "log.wandb", "true or false or a mapping", "Weights"),
        ({"resources": {"memory": "8GB"}}, "resources.memory", "expected a number > 0", "GB"),
        ({"schema": 2}, "schema", "config format 2 is not known", "newer rlx"),
        ({"schema": "x"}, "schema", 'config format "x" is not known', "schema: 1"),
    ],
)
def test_a_wrong_value_says_what_is_expected(section: dict[str, Any], key: str, message: str, hint: str) -> None:
    found = problems({**ENV, **section})
    assert list(found) == [key]
    assert message in found[key][0]
    assert hint in found[key][1]


@pytest.mark.parametrize("data", [{}, {"env": None}, {"algo": {"name": "dqn"}}])
def test_only_the_environment_has_no_default(data: dict[str, Any]) -> None:
    assert problems(data) == {"env": ("`env` is missing", "env: {id: CartPole-v1}")}


def test_all_problems_are_found_at_once() -> None:
    found = problems({"env": {"num_envs": 0}, "algo": {"gamma": 2, "gama": 1}, "sed": 1, "eval": {"episodes": 0}})
    assert set(found) == {"env.id", "env.num_envs", "algo.gamma", "algo.gama", "sed", "eval.episodes"}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("pppo", "did you mean `ppo`?"),
        ("rainbow-dqn-x", "known: ppo, a2c"),
        ("", "known"),
        ("TD-3x", "did you mean `td3`?"),
    ],
)
def test_of_an_unknown_algorithm_nothing_else_is_said(name: str, hint: str) -> None:
    found = problems({**ENV, "algo": {"name": name, "whatever": 1, "gamma": 7}, "sed": 1})
    assert list(found) == ["algo.name", "sed"]
    assert found["algo.name"][0] == f"unknown algorithm `{name}`"
    assert hint in found["algo.name"][1]


@pytest.mark.parametrize(
    "extra",
    [
        {"algo": None},
        {"algo": {"name": None}},
        {"algo": {"target_kl": None, "batch_size": None}},
        {"seeds": None, "run_name": None, "schema": 1},
        {"policy": {"hidden_sizes": None}},
        {"log": {"wandb": {"entity": None}}},
        {"eval": None},
    ],
)
def test_null_means_the_default(extra: dict[str, Any]) -> None:
    experiment, found = validate({**ENV, **extra})
    assert found == {}
    assert experiment is not None
    assert experiment.algo.name == "ppo"


def test_null_under_an_unknown_key_is_still_refused() -> None:
    assert list(problems({**ENV, "algo": {"learning_rte": None}})) == ["algo.learning_rte"]


def test_null_inside_kwargs_is_a_value() -> None:
    experiment, _ = validate({"env": {"id": "A", "kwargs": {"desc": None}}})
    assert experiment is not None
    assert experiment.env.kwargs == {"desc": None}


def test_a_key_that_is_not_text_is_unknown() -> None:
    assert problems({**ENV, 1: 2})["1"][0] == "unknown key `1`"  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.0, "1.0"), ("é", '"é"'), ([1], "[1]"), (True, "true"), ("x" * 100, '"' + "x" * 58 + "…"), ({1, 2}, '"{1, 2}"')],
)
def test_a_value_is_quoted_on_one_line(value: object, text: str) -> None:
    assert quote(value) == text
