"""Keys that do not fit each other are refused or noted, with a way out that works."""

from __future__ import annotations

from typing import Any

import pytest

from rlx.config.cross_check import cross_check
from rlx.config.defaults import resolve
from rlx.config.load import document, parse
from rlx.config.schema import ALGORITHMS, Problem
from rlx.config.validate import validate
from rlx.errors import ConfigError


def problems(data: dict[str, Any], devices: tuple[str, ...] = ("cpu",)) -> list[Problem]:
    experiment, wrong = validate({"env": {"id": "A"}, **data})
    assert experiment is not None, wrong
    return cross_check(resolve(experiment), devices=devices)


@pytest.mark.parametrize(
    ("data", "key", "message", "hint"),
    [
        (
            {"env": {"id": "A", "num_envs": 4}, "algo": {"rollout_steps": 100, "batch_size": 64}},
            "algo.batch_size",
            "64, which does not divide num_envs × rollout_steps = 4 × 100 = 400",
            "-s algo.batch_size=50 or -s algo.batch_size=80",
        ),
        (
            {"env": {"id": "A", "num_envs": 1}, "algo": {"rollout_steps": 32, "batch_size": 64}},
            "algo.batch_size",
            "64, more than num_envs × rollout_steps = 1 × 32 = 32",
            "-s algo.batch_size=32",
        ),
        ({"algo": {"name": "trpo", "batch_size": 300}}, "algo.batch_size", "300, which does not divide", "256"),
        ({"algo": {"name": "recurrent_ppo", "batch_size": 100}}, "algo.batch_size", "does not divide", "64"),
        (
            {"algo": {"batch_size": 1}},
            "algo.batch_size",
            "advantages cannot be normalised",
            "normalize_advantage=false",
        ),
        (
            {"algo": {"name": "dqn", "batch_size": 64, "buffer_size": 32}},
            "algo.batch_size",
            "64, more than `algo.buffer_size` (32) holds",
            "-s algo.batch_size=32",
        ),
        (
            {"algo": {"name": "sac", "total_timesteps": 1000, "learning_starts": 1000}},
            "algo.learning_starts",
            "a run of 1000 steps never learns",
            "-s algo.learning_starts=100",
        ),
        ({"algo": {"name": "td3", "gradient_steps": 0}}, "algo.gradient_steps", "never learn", "gradient_steps=1"),
        (
            {"algo": {"name": "tqc", "quantiles": 5, "dropped_quantiles": 5}},
            "algo.dropped_quantiles",
            "none is left",
            "=0",
        ),
        (
            {"algo": {"name": "ars", "deltas": 4, "top_deltas": 5}},
            "algo.top_deltas",
            "5, more than `algo.deltas` (4)",
            "=4",
        ),
        ({"device": "cuda"}, "device", "device `cuda` is not on this machine", "-s device=auto"),
        ({"device": "cuda:1"}, "device", "device `cuda:1` is not on this machine", "-s device=auto"),
        ({"device": "mps"}, "device", "device `mps` is not on this machine", "-s device=auto"),
        ({"device": "gpu"}, "device", "expected auto, cpu, cuda, cuda:N or mps", "did you mean `cuda`?"),
        ({"device": "cuda:x"}, "device", "expected auto", "did you mean `cuda`?"),
        ({"device": "CPU"}, "device", "expected auto", "did you mean `cpu`?"),
        ({"device": "tpu7"}, "device", "expected auto", ""),
        ({"seeds": [0, 1, 0]}, "seeds", "`seeds` has 0 more than once", "once"),
        ({"seeds": []}, "seeds", "empty list", "seeds: 5"),
        ({"seed": 2**32 - 2, "seeds": 5}, "seeds", "exceed", "lower `seed`"),
        ({"policy": {"type": "MlpPolicy"}}, "policy.type", "unknown policy type `MlpPolicy`", "did you mean `mlp`?"),
        ({"policy": {"type": "MultiInputPolicy"}}, "policy.type", "unknown policy type", "did you mean `multi`?"),
        (
            {"policy": {"type": "transformer"}},
            "policy.type",
            "expected mlp, cnn, multi or `file.py:Class`",
            "type: mlp",
        ),
        ({"backend": "sb4"}, "backend", "unknown backend `sb4`", "did you mean `sb3`?"),
        ({"backend": "rllib"}, "backend", "unknown backend `rllib`", "known: auto, fast, sb3"),
    ],
)
def test_what_cannot_train_is_an_error(data: dict[str, Any], key: str, message: str, hint: str) -> None:
    (problem,) = problems(data)
    assert problem.is_error
    assert problem.key == key
    assert message in problem.message
    assert hint in (problem.hint or "")


@pytest.mark.parametrize(
    ("data", "key", "message"),
    [
        (
            {"algo": {"total_timesteps": 1000}},
            "algo.total_timesteps",
            "less than one rollout: the run takes 2048 steps",
        ),
        ({"eval": {"every": 200_000}}, "eval.every", "200000, longer than the run (100000 steps): no evaluation"),
        ({"checkpoint": {"save_every": 200_000}}, "checkpoint.save_every", "no `step_N` checkpoint"),
        ({"log": {"every": 200_000}}, "log.every", "no metrics"),
        ({"algo": {"learning_rate": 3.0}}, "algo.learning_rate", "3, which is very large"),
        (
            {"algo": {"name": "dqn", "exploration_initial": 0.1, "exploration_final": 0.5}},
            "algo.exploration_final",
            "grows",
        ),
        ({"algo": {"name": "dqn", "total_timesteps": 5000}}, "algo.target_update_every", "never changes"),
        ({"env": {"id": "A", "vectorization": "async"}}, "env.vectorization", "on one core"),
        ({"device": "cpu", "resources": {"gpus": 1}}, "resources.gpus", "`resources.gpus` is 1, but `device` is cpu"),
        ({"policy": {"type": "cnn"}, "env": {"id": "A", "normalize": {"obs": True}}}, "env.normalize.obs", "cnn"),
    ],
)
def test_what_is_only_odd_is_a_note(data: dict[str, Any], key: str, message: str) -> None:
    (problem,) = problems(data)
    assert not problem.is_error
    assert problem.key == key
    assert message in problem.message


@pytest.mark.parametrize(
    "data",
    [
        {"device": "cpu"},
        {"device": "auto"},
        {"algo": {"batch_size": 2048}},
        {"algo": {"batch_size": 1, "normalize_advantage": False}},
        {"algo": {"name": "a2c"}},
        {"algo": {"name": "ars", "learning_rate": 0.5}},
        {"algo": {"learning_rate": {"linear": [0.5, 0]}}},
        {"policy": {"type": "nets.py:Mine"}},
        {"backend": "sb3"},
        {"seeds": [3, 1]},
        *({"algo": {"name": name}} for name in ALGORITHMS),
    ],
)
def test_what_fits_is_silent(data: dict[str, Any]) -> None:
    assert problems(data) == []


@pytest.mark.parametrize("device", ["cuda", "cuda:3"])
def test_a_device_that_is_there_is_fine(device: str) -> None:
    assert problems({"device": device}, devices=("cpu", "cuda")) == []


def test_a_device_is_not_asked_for_when_a_snapshot_is_read() -> None:
    assert cross_check(parse({"env": {"id": "A"}, "device": "cuda"})) == []


@pytest.mark.parametrize("size", [10**18, 10**9 + 7])
def test_absurd_sizes_are_answered_at_once(size: int) -> None:
    found = problems(
        {
            "algo": {"rollout_steps": size, "batch_size": 64, "total_timesteps": 10**20},
            "env": {"id": "A", "num_envs": 1},
        }
    )
    assert [problem.key for problem in found] in ([], ["algo.batch_size"])


@pytest.mark.parametrize(
    ("wanted", "hint"), [(3, "-s algo.batch_size=2 or -s algo.batch_size=4"), (3000, "-s algo.batch_size=2048")]
)
def test_the_hint_of_a_bad_batch_works(wanted: int, hint: str) -> None:
    (problem,) = problems({"algo": {"batch_size": wanted}})
    assert problem.hint == hint
    for word in hint.split(" or "):
        size = int(word.rpartition("=")[2])
        assert problems({"algo": {"batch_size": size}}) == []


TRAIN = ["python", "train.py", "{seed}", "{overrides}"]


def command(**section: Any) -> list[tuple[str, str]]:
    config = {"backend": "command", "command": {"train": TRAIN, **section}}
    return [(one.key, one.message) for one in cross_check(parse(config)) if one.is_error]


def test_a_command_needs_no_env_and_no_algorithm_and_is_named_after_its_script() -> None:
    experiment = parse({"backend": "command", "command": {"train": ["bash", "tools/run_it.sh", "{seed}"]}})
    assert (experiment.env.id, experiment.algo.name, experiment.run_name) == ("command", "command", "run_it")
    assert cross_check(experiment) == []
    again = parse(document(experiment))
    assert again == experiment
    assert set(document(experiment)["algo"]) == {"name", "total_timesteps"}


@pytest.mark.parametrize(
    ("section", "key", "message"),
    [
        ({"train": ["a", "{overrides}"]}, "command.train", "no {seed}"),
        ({"train": ["a", "{seed}"], "overrides": {"x": 1}}, "command.train", "no {overrides}"),
        ({"train": [*TRAIN, "{sed}"]}, "command.train", "{sed}, which is not a placeholder"),
        ({"train": [*TRAIN, "--x={overrides}"]}, "command.train", "a separate argument"),
        ({"override": "--{key}"}, "command.override", "no {value}"),
        ({"checkpoint": "{checkpoint}"}, "command.checkpoint", "is not a placeholder"),
        ({"metrics": {"reader": "csv"}}, "command.metrics.path", "is missing"),
        ({"metrics": {"reader": "stdout", "pattern": "("}}, "command.metrics.pattern", "cannot be read"),
        ({"metrics": {"reader": "stdout", "pattern": "(?P<a>.)"}}, "command.metrics.pattern", "no group `step`"),
    ],
)
def test_a_command_that_cannot_work_is_named(section: dict[str, Any], key: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        command(**section)
    assert f"`{key}`" in str(caught.value) or key in str(caught.value)
    assert message in str(caught.value)


def test_a_command_belongs_to_its_backend_and_the_backend_to_a_command() -> None:
    with pytest.raises(ConfigError, match="the backend auto ignores"):
        parse({"env": {"id": "A"}, "command": {"train": TRAIN}})
    with pytest.raises(ConfigError, match="needs a `command` section"):
        parse({"backend": "command"})
    with pytest.raises(ConfigError, match="unknown algorithm `command`"):
        parse({"env": {"id": "A"}, "algo": {"name": "command"}})
    with pytest.raises(ConfigError, match=r"`command.metrics.reader` is \"xml\""):
        command(metrics={"reader": "xml"})
