"""A config with a grid stands for several configs, and is refused where one is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.config import load
from rlx.config.config_grid import cells
from rlx.errors import ConfigError
from tests.conftest import Project

GRID = """
algo: {total_timesteps: 512}
grid:
  env.id: [CartPole-v1, Acrobot-v1]
  algo: [{name: ppo, rollout_steps: 64}, {name: a2c}]
"""


def test_every_combination_is_a_config(tmp_path: Path) -> None:
    path = tmp_path / "bench.yaml"
    path.write_text(GRID)
    grid = cells(path)
    assert len(grid) == 4
    found = [load.load(path, overrides=cell.overrides) for cell in grid]
    assert [(one.env.id, one.algo.name) for one in found] == [
        ("CartPole-v1", "ppo"), ("CartPole-v1", "a2c"), ("Acrobot-v1", "ppo"), ("Acrobot-v1", "a2c"),
    ]  # fmt: skip
    assert {one.algo.total_timesteps for one in found} == {512}


def test_a_grid_is_refused_as_one_config(tmp_path: Path) -> None:
    path = tmp_path / "bench.yaml"
    path.write_text(GRID)
    with pytest.raises(ConfigError, match="is a grid of several configs") as raised:
        load.load(path)
    assert "rlx train" in str(raised.value.hint)


@pytest.mark.parametrize("grid", ["[1, 2]", "{env.id: CartPole-v1}", "{seed: [1, 2]}", "{algo.name: []}"])
def test_a_grid_that_makes_no_sense_is_named(tmp_path: Path, grid: str) -> None:
    path = tmp_path / "bench.yaml"
    path.write_text(f"env: {{id: CartPole-v1}}\ngrid: {grid}\n")
    with pytest.raises(ConfigError, match="grid"):
        cells(path)


@pytest.mark.slow
def test_one_command_trains_a_grid_and_continues_it(project: Project) -> None:
    text = """
seeds: 1
eval: {every: 256, episodes: 1}
algo: {total_timesteps: 256, rollout_steps: 64}
grid: {env.id: [CartPole-v1, Acrobot-v1]}
"""
    project.write("configs/bench.yaml", text)
    first = project.rlx("train", "configs/bench.yaml")
    assert "rlx compare --tasks 'bench_*'" in first.stdout
    assert project.runs() == ["bench_acrobot_ppo_001", "bench_cartpole_ppo_001"]
    again = project.rlx("train", "configs/bench.yaml", "--seeds", "2")
    assert project.runs() == ["bench_acrobot_ppo_001", "bench_cartpole_ppo_001"]
    assert [len(project.run(name).seeds) for name in project.runs()] == [2, 2]
    assert "completed" in again.stdout
