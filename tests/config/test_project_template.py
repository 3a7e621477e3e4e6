"""What a new project starts with loads, and its environment works."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest
from gymnasium.utils.env_checker import check_env

from rlx.config import catalog
from rlx.config.load import check
from rlx.config.project_template import ProjectEnv, config_name, config_text, env_text


@pytest.mark.parametrize(
    "world",
    [
        ProjectEnv("envs/my.py:My"),
        ProjectEnv("Hopper-v5", is_continuous=True),
        ProjectEnv("ALE/Pong-v5", policy="cnn"),
        ProjectEnv("Maze-v0", policy="multi", has_masks=True),
        ProjectEnv("odd: name #1.py:A"),
        *(ProjectEnv(entry.env_id) for entry in catalog.ENTRIES.values()),
    ],
    ids=lambda world: world.env_id,
)
def test_a_starting_config_loads_without_a_word(world: ProjectEnv, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(config_text(world), encoding="utf-8")
    checked = check(tmp_path / "a.yaml", devices=("cpu",))
    assert checked.problems == ()
    assert checked.experiment is not None
    assert checked.experiment.env.id == world.env_id


def test_it_follows_what_the_world_is_like(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(config_text(ProjectEnv("X", policy="cnn", is_continuous=True, has_masks=True)))
    experiment = check(tmp_path / "a.yaml").experiment
    assert experiment is not None
    assert (experiment.algo.name, experiment.policy.type) == ("maskable_ppo", "cnn")


def test_every_key_of_it_is_explained() -> None:
    lines = [line for line in config_text(ProjectEnv("X")).splitlines() if line.startswith("  ")]
    assert all("  # " in line for line in lines)


@pytest.mark.parametrize(
    ("env_id", "name"),
    [
        ("CartPole-v1", "cartpole"),
        ("MountainCarContinuous-v0", "mountain_car_continuous"),
        ("ALE/Pong-v5", "pong"),
        ("envs/boss fight.py:BossFight", "bossfight"),
        ("日本-v0", "日本"),
        ("???", "experiment"),
    ],
)
def test_the_config_is_named_after_the_environment(env_id: str, name: str) -> None:
    assert config_name(env_id) == name


def test_the_environment_template_is_a_proper_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("template_env")
    monkeypatch.setitem(sys.modules, "template_env", module)
    exec(compile(env_text("BossFight"), "template_env.py", "exec"), module.__dict__)
    env = module.BossFight(render_mode="rgb_array", size=5)
    check_env(env, skip_render_check=True)
    env.reset(seed=1)
    assert env.render().shape == (32, 160, 3)
    ends = [env.step(1)[2:4] for _ in range(env.max_episode_steps)]
    assert ends[-1] == (False, True)
    env.reset(seed=1)
    for _ in range(5):
        _, reward, terminated, _, info = env.step(2 if env.goal > env.position else 0)
        if terminated:
            break
    assert terminated
    assert info["is_success"]
    assert reward == pytest.approx(0.98)
