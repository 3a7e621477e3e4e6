"""What is read of a Hydra program's files is what Hydra itself makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from rlx.study.task import hydra_configs, repo_configs
from tests.study.papers import write

TRAIN = """import hydra


@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    pass
"""
PLAIN = {
    "config": "defaults:\n  - reward: dense\n  - algo: ppo\n  - _self_\nsteps: 1000\nreward: {alive: 0.5}\n",
    "reward/dense": "alive: 0.1\nforward: 1.0\nterms: {energy: -0.01, names: [a, b]}\n",
    "reward/sparse": "alive: 0.0\ngoal: 10\n",
    "algo/ppo": "name: ppo\nlr: 3e-4\n",
    "experiment/fast": "# @package _global_\ndefaults: [override /algo: sac]\nsteps: 10\n",
    "algo/sac": "defaults: [ppo]\nname: sac\ntau: 0.005\n",
}
DEEP = {
    "config": "defaults: [base, env/robot: a1, optional missing: one, extra: null, experiment: null]\n",
    "base": "steps: 5\nsize: 3\n",
    "env/robot/a1": "defaults: [legs, /shared/noise, motor@left: slow, /motor@_global_.right: slow]\nmass: 12.0\n",
    "env/robot/legs": "legs: 4\nmass: 1.0\n",
    "env/robot/motor/slow": "speed: 1\n",
    "motor/slow": "speed: 2\n",
    "shared/noise": "noise: 0.1\n",
    "env/robot/b2": "mass: 30.0\n",
    "experiment/heavy": "# @package _global_\ndefaults: [override /env/robot: b2]\nsteps: 5\nenv: {robot: {push: 1}}\n",
    "experiment/placed": "# @package inner.part\ndepth: 7\n",
}
PRIMARY_FIRST = {
    "config": "defaults: [_self_, {reward: dense}]\nreward: {alive: 0.5}\n",
    "reward/dense": "alive: 0.1\n",
}
SEVERAL = {"config": "defaults: [{parts: [one, two]}]\n", "parts/one": "a: 1\nb: 1\n", "parts/two": "b: 2\n"}
PLACED = {
    "config": "defaults: [{part@body: one}, part/two@arm, part/two, {part@_here_: two}]\n",
    "part/one": "a: 1\n",
    "part/two": "b: 2\n",
}


def layout(root: Path, configs: dict[str, str]) -> None:
    write(root, "train.py", TRAIN)
    for name, text in configs.items():
        write(root, f"conf/{name}.yaml", text)


def theirs(root: Path, words: tuple[str, ...]) -> dict[str, Any]:
    with initialize_config_dir(str(root / "conf"), version_base=None):
        return dict(repo_configs.flat(OmegaConf.to_container(compose("config", list(words)))))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("configs", "words"),
    [
        (PLAIN, ()),
        (PLAIN, ("reward=sparse",)),
        (PLAIN, ("algo=sac", "reward=sparse")),
        (DEEP, ()),
        (PLAIN, ("+experiment=fast",)),
        (DEEP, ("experiment=heavy",)),
        (DEEP, ("experiment=placed",)),
        (DEEP, ("env/robot=b2",)),
        (PRIMARY_FIRST, ()),
        (SEVERAL, ()),
        (PLACED, ()),
    ],
)
def test_values_are_those_that_hydra_composes(tmp_path: Path, configs: dict[str, str], words: tuple[str, ...]) -> None:
    layout(tmp_path, configs)
    _, found = hydra_configs.composed("train.py", ("python", "train.py", *words), tmp_path)
    assert found == theirs(tmp_path, words)
    assert found


def test_the_files_that_were_put_together_are_named(tmp_path: Path) -> None:
    layout(tmp_path, PLAIN)
    files, _ = hydra_configs.composed("train.py", ("python", "train.py", "reward=sparse"), tmp_path)
    assert set(files) == {"conf/config.yaml", "conf/reward/sparse.yaml", "conf/algo/ppo.yaml"}


@pytest.mark.parametrize("words", [("-cn", "other"), ("--config-name=other",), ("--config-name", "other.yaml")])
def test_the_command_chooses_another_config(tmp_path: Path, words: tuple[str, ...]) -> None:
    layout(tmp_path, {**PLAIN, "other": "rate: 2\n"})
    assert hydra_configs.composed("train.py", ("python", "train.py", *words), tmp_path) == (
        ("conf/other.yaml",),
        {"rate": 2},
    )


def test_interpolated_and_missing_values_are_keys_without_one(tmp_path: Path) -> None:
    layout(tmp_path, {"config": "a: 1\nb: ${a}\nc: ???\nhydra: {run: {dir: out}}\n"})
    assert hydra_configs.composed("train.py", ("python", "train.py"), tmp_path)[1] == {"a": 1, "b": None, "c": None}


@pytest.mark.parametrize(
    "config",
    [
        "defaults: [config]\na: 1\n",
        "defaults: [{reward: ../../../etc/passwd}]\na: 1\n",
        "defaults: [7, [x], {3: 4}, {'': x}]\na: 1\n",
        "defaults: {x: y}\na: 1\n",
        "defaults: [nothing]\na: 1\n",
    ],
)
def test_an_odd_defaults_list_is_left_out(tmp_path: Path, config: str) -> None:
    layout(tmp_path, {"config": config})
    assert hydra_configs.composed("train.py", ("python", "train.py"), tmp_path)[1]["a"] == 1


def test_a_program_without_a_config_has_none(tmp_path: Path) -> None:
    write(tmp_path, "train.py", "import hydra\n\n\n@hydra.main(version_base=None)\ndef main(cfg):\n    pass\n")
    assert hydra_configs.composed("train.py", ("python", "train.py"), tmp_path) == ((), {})


def test_configs_outside_the_repository_are_not_read(tmp_path: Path) -> None:
    write(tmp_path, "conf/config.yaml", "a: 1\n")
    write(tmp_path, "repo/train.py", TRAIN.replace('"conf"', '"../conf"'))
    assert hydra_configs.composed("train.py", ("python", "train.py"), tmp_path / "repo") == ((), {})
