"""Configs load with all their problems told at once, come back from YAML unchanged, and hash by what they mean."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rlx.config.cross_check import cross_check
from rlx.config.load import check, config_error, config_hash, document, dump, group_hash, load, parse, read
from rlx.config.schema import ALGORITHMS, Ppo, Schedule
from rlx.errors import ConfigError, NotFound

WORKBENCH = """\
run_name: bossfight_ppo
seed: 42
device: cuda

env:
  id: BossFight-v0
  num_envs: 8

algo:
  name: ppo
  total_timesteps: 500000
  rollout_steps: 128
  batch_size: 256
  learning_rate: 0.0003
  gamma: 0.99
  gae_lambda: 0.95
  clip_range: 0.2
  entropy_coef: 0.01
  value_coef: 0.5
  update_epochs: 4

policy:
  type: mlp
  hidden_sizes: [256, 256]

checkpoint:
  save_every: 50000

eval:
  every: 25000
  episodes: 20
  deterministic: true
"""


def write(folder: Path, text: str, name: str = "ppo.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_config_of_rlx_workbench_loads_unchanged(tmp_path: Path) -> None:
    experiment = load(write(tmp_path, WORKBENCH), devices=("cpu", "cuda"))
    assert isinstance(experiment.algo, Ppo)
    assert (experiment.run_name, experiment.seed, experiment.device) == ("bossfight_ppo", 42, "cuda")
    assert (experiment.algo.rollout_steps, experiment.algo.update_epochs) == (128, 4)
    assert experiment.policy.hidden_sizes == (256, 256)
    assert (experiment.checkpoint.save_every, experiment.eval.every) == (50_000, 25_000)
    written = yaml.safe_load(WORKBENCH)
    resolved = document(experiment)
    assert all(
        resolved[section][key] == value
        for section in ("env", "algo", "eval")
        for key, value in written[section].items()
    )


def test_a_device_that_is_not_here_stops_loading_but_not_looking(tmp_path: Path) -> None:
    path = write(tmp_path, WORKBENCH)
    with pytest.raises(ConfigError, match=r"ppo.yaml:3: device `cuda` is not on this machine") as caught:
        load(path, devices=("cpu",))
    assert "-s device=auto" in (caught.value.hint or "")
    assert read(path).device == "cuda"
    assert load(path, overrides=["device=auto"], devices=("cpu",)).device == "auto"


def test_the_smallest_config_has_an_environment_only(tmp_path: Path) -> None:
    experiment = load(write(tmp_path, "env: {id: CartPole-v1}"))
    assert (experiment.algo.name, experiment.run_name, experiment.seed) == ("ppo", "cartpole_ppo", 0)


def test_an_unknown_key_is_refused_with_file_line_and_suggestion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    write(tmp_path / "configs", "env: {id: A}\nalgo:\n  name: ppo\n  learning_rte: 3e-4\n")
    with pytest.raises(ConfigError) as caught:
        load(Path("configs/ppo.yaml"))
    assert caught.value.message == "configs/ppo.yaml:4: unknown key `algo.learning_rte`"
    assert caught.value.hint == "did you mean `algo.learning_rate`?"
    assert caught.value.exit_code == 2


def test_several_problems_are_all_told_in_the_order_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "eval: {episodes: 0}\nenv:\n  id: A\n  n_envs: 2\nalgo:\n  gamma: 3\n")
    with pytest.raises(ConfigError) as caught:
        load(Path("ppo.yaml"), overrides=["sed=3"])
    assert caught.value.message.splitlines() == [
        "ppo.yaml:1: `eval.episodes` is 0; expected a whole number ≥ 1",
        "  also ppo.yaml:4: unknown key `env.n_envs` (did you mean `env.num_envs`?)",
        "  also ppo.yaml:6: `algo.gamma` is 3; expected a number from 0 to 1 (`algo.gamma`: discount of future reward)",
        "  also -s sed=3: unknown key `sed` (did you mean `seed`?)",
    ]
    assert caught.value.hint == "`eval.episodes`: episodes in one evaluation"


def test_a_problem_in_a_base_points_to_the_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "env: {id: A}\nalgo:\n  gamma: 3\n", "base.yaml")
    write(tmp_path, "extends: base.yaml\nseed: 1\n")
    with pytest.raises(ConfigError, match=r"^base.yaml:3: `algo.gamma` is 3"):
        load(Path("ppo.yaml"))


def test_an_override_that_does_not_fit_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "env: {id: A}")
    with pytest.raises(ConfigError, match=r"^-s algo.batch_size=100: `algo.batch_size` is 100, which does not divide"):
        load(path, overrides=["algo.batch_size=100"])


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        load(tmp_path / "nope.yaml")
    assert caught.value.exit_code == 3


def test_checking_returns_notes_beside_the_experiment(tmp_path: Path) -> None:
    checked = check(write(tmp_path, "run_name: a/b\nenv: {id: A}\neval: {every: 1000000}\n"))
    assert checked.experiment is not None
    assert checked.experiment.run_name == "a_b"
    assert [(found.problem.key, found.place.line) for found in checked.notes] == [("run_name", 1), ("eval.every", 3)]
    assert checked.errors == []


def test_a_change_of_algorithm_is_noted() -> None:
    checked = check(Path("catalog:cartpole"), overrides=["algo.name=dqn"])
    assert checked.experiment is not None
    assert (checked.experiment.algo.name, checked.experiment.algo.gamma) == ("dqn", 0.98)
    (note,) = [found for found in checked.notes if found.problem.key == "algo.name"]
    assert str(note).startswith("-s algo.name=dqn: `dqn` replaces")


def test_a_name_without_letters_is_refused() -> None:
    with pytest.raises(ConfigError, match=r'config: `run_name` is ".."'):
        parse({"env": {"id": "A"}, "run_name": ".."})


def test_the_source_of_plain_data_can_be_named() -> None:
    with pytest.raises(ConfigError, match=r"^runs/a_001: unknown key `x`"):
        parse({"env": {"id": "A"}, "x": 1}, source="runs/a_001")


def test_python_values_are_read_as_yaml_would_give_them() -> None:
    experiment = parse(
        {
            "env": {"id": "A", "kwargs": {"path": Path("a/b"), "grid": np.arange(3), "pair": (1, 2)}},
            "seeds": (np.int64(3), 4),
            "algo": {"gamma": np.float32(0.5), "learning_rate": {"linear": (1e-3, 0)}},
        }
    )
    assert experiment.env.kwargs == {"path": "a/b", "grid": [0, 1, 2], "pair": [1, 2]}
    assert experiment.seeds == (3, 4)
    assert experiment.algo.gamma == 0.5
    assert experiment.algo.learning_rate == Schedule(linear=(1e-3, 0.0))


def test_a_dump_is_readable_and_has_no_nulls() -> None:
    text = dump(parse({"env": {"id": "A"}, "algo": {"learning_rate": {"linear": [1e-5, 0]}}}))
    assert text.startswith("schema: 1\nrun_name: a_ppo\nseed: 0\n")
    assert "null" not in text
    assert "hidden_sizes: [64, 64]\n" in text
    assert "    linear: [1.0e-05, 0.0]\n" in text


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
RATE = st.floats(1e-12, 1e3) | st.builds(lambda kind, a, b: {kind: [a, b]}, st.sampled_from(["linear", "cosine"]),
                                         st.floats(0, 10), st.floats(0, 10))  # fmt: skip


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    name = draw(st.sampled_from([*ALGORITHMS, "a b.py:Mine"]))
    algo: dict[str, Any] = {"name": name, "gamma": draw(st.floats(0, 1)), "learning_rate": draw(RATE)}
    algo["total_timesteps"] = draw(st.integers(1, 10**12))
    if name.endswith("Mine"):
        algo["kwargs"] = draw(st.dictionaries(st.text(max_size=5), PLAIN, max_size=3))
    wrappers = st.lists(st.builds(lambda name, kwargs: {"name": name, "kwargs": kwargs}, st.text(max_size=5),
                                  st.dictionaries(st.text(max_size=5), PLAIN, max_size=2)), max_size=2)  # fmt: skip
    return {
        "run_name": draw(st.text(max_size=30)),
        "seed": draw(st.integers(0, 2**31)),
        "seeds": draw(st.none() | st.integers(1, 9) | st.lists(st.integers(0, 99), min_size=1, unique=True)),
        "env": {
            "id": draw(st.text(min_size=1, max_size=20)),
            "kwargs": draw(st.dictionaries(st.text(max_size=5), PLAIN, max_size=3)),
            "wrappers": draw(wrappers),
            "num_envs": draw(st.none() | st.integers(1, 64)),
        },
        "algo": algo,
        "policy": {"hidden_sizes": draw(st.none() | st.lists(st.integers(1, 512), max_size=3))},
        "log": {"wandb": draw(st.booleans() | st.builds(lambda text: {"project": text}, st.text(max_size=5)))},
    }


@settings(deadline=None, max_examples=100)
@given(configs())
def test_what_is_dumped_is_parsed_back_equal(data: dict[str, Any]) -> None:
    try:
        experiment = parse(data)
    except ConfigError:
        assume(False)
    text = dump(experiment)
    again = parse(yaml.safe_load(text))
    assert again == experiment
    assert dump(again) == text
    assert config_hash(again) == config_hash(experiment)


@settings(deadline=None, max_examples=50)
@given(configs())
def test_a_dump_on_disk_loads_equal(tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any]) -> None:
    try:
        experiment = parse(data)
    except ConfigError:
        assume(False)
    path = tmp_path_factory.mktemp("dump") / "config_snapshot.yaml"
    path.write_text(dump(experiment), encoding="utf-8")
    assert read(path) == experiment


@pytest.mark.parametrize(
    "text",
    [
        "3e4",
        "1e-3",
        "on",
        "null",
        "1_0",
        "2024-01-01",
        "0x1",
        "a: b",
        "#x",
        " x ",
        "~",
        "=",
        "<<",
        "\x85",
        "a\u2028b",
        "\ufeffx",
        "a\n b\n",
        "é\t",
    ],
)
def test_text_that_looks_like_something_else_stays_text(tmp_path: Path, text: str) -> None:
    experiment = parse({"env": {"id": "A", "kwargs": {"x": text, text: 1}}})
    assert parse(yaml.safe_load(dump(experiment))) == experiment
    assert read(write(tmp_path, dump(experiment))) == experiment


@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e300, 5e-324, {1: "a", "1": "b"}, {True: [None]}, [[], {}]])
def test_odd_values_in_kwargs_survive(value: object) -> None:
    experiment = parse({"env": {"id": "A", "kwargs": {"x": value}}})
    assert parse(yaml.safe_load(dump(experiment))) == experiment
    assert len(config_hash(experiment)) == 64


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_resolved_experiment_has_no_problems(algorithm: str) -> None:
    assert cross_check(parse({"env": {"id": "A"}, "algo": {"name": algorithm}}), devices=("cpu",)) == []


def test_the_hash_follows_the_meaning_not_the_writing(tmp_path: Path) -> None:
    one = read(write(tmp_path, "env: {id: A}\nalgo: {gamma: 1, name: PPO}\nseed: 0\n"))
    other = read(write(tmp_path, "algo:\n  name: ppo\n  gamma: 1.0\nenv:\n  id: A\n"))
    assert config_hash(one) == config_hash(other)


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"seeds": 5},
        {"run_name": "x"},
        {"device": "cpu"},
        {"resources": {"cores": 2}},
        {"log": {"tensorboard": True}},
    ],
)
def test_replicates_share_a_group_but_not_a_hash(change: dict[str, Any]) -> None:
    one, other = parse({"env": {"id": "A"}}), parse({"env": {"id": "A"}, **change})
    assert group_hash(one) == group_hash(other)
    assert config_hash(one) != config_hash(other)


@pytest.mark.parametrize(
    "change",
    [
        {"algo": {"gamma": 0.5}},
        {"env": {"id": "B"}},
        {"env": {"id": "A", "kwargs": {"x": 1}}},
        {"eval": {"episodes": 3}},
        {"policy": {"hidden_sizes": [8]}},
    ],
)
def test_another_experiment_is_another_group(change: dict[str, Any]) -> None:
    assert group_hash(parse({"env": {"id": "A"}})) != group_hash(parse({"env": {"id": "A"}, **change}))


def test_the_hash_is_that_of_canonical_json() -> None:
    experiment = parse({"env": {"id": "A", "kwargs": {"é": [1, 2.5, None, {}]}}})
    canonical = json.dumps(document(experiment), sort_keys=True, separators=(",", ":"))
    assert config_hash(experiment) == hashlib.sha256(canonical.encode()).hexdigest()


def test_one_error_alone_is_one_line(tmp_path: Path) -> None:
    checked = check(write(tmp_path, "env: {id: A}\nseed: -1\n"))
    assert "\n" not in config_error(checked.errors).message
