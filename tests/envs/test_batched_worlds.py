"""Batched classes in simverse's style train like Gymnasium's vectors, in NumPy and in torch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rlx.config.schema import Env
from rlx.envs.make import make_env
from rlx.envs.vector import is_batched, last_observation, make_vector, was_success
from rlx.errors import ConfigError
from rlx.loop.lab.new_lab import TEMPLATES

COUNTER = '''\
"""Worlds that count to three."""
import gymnasium
import numpy as np


class Count:
    observation_space = gymnasium.spaces.Box(0, 10, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    max_steps = 3

    def __init__(self, num_envs=1):
        self.n = np.zeros((num_envs, 1), np.float32)

    def reset(self):
        self.n[:] = 0
        return {"obs": self.n}

    def step(self, actions):
        self.n += 1
        success = (self.n[:, 0] == 2) & (np.asarray(actions) == 1)
        done = success | (self.n[:, 0] >= 3)
        reward = np.stack([np.ones(len(done)), np.ones(len(done))], 1)
        self.n[done] = 0
        return self.n, reward, done, {"success": success, "episode_return": np.full(len(done), 1e6)}


class Flat(Count):
    def step(self, actions):
        return self.n[0], 0, False, {}
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "count.py").write_text(COUNTER)
    for name in ("batched", "simverse"):
        text = (TEMPLATES / name / "candidate_env.txt").read_text().replace("@STEPS@", "6")
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def test_ends_and_limits_are_told_apart_and_observations_are_kept(project: Path) -> None:
    env = Env(id="count.py:Count")
    assert is_batched(env, root=project)
    worlds = make_vector(env, root=project, num_envs=2)
    first, _ = worlds.reset(seed=[1, 2])
    worlds.step(np.array([0, 0]))
    assert first.tolist() == [[0], [0]]
    _, rewards, terminated, truncated, infos = worlds.step(np.array([1, 0]))
    assert (rewards.tolist(), terminated.tolist(), truncated.tolist()) == ([2, 2], [True, False], [False, False])
    assert was_success(infos, 0) == 1.0
    assert last_observation(infos, 0).tolist() == [1]
    _, _, terminated, truncated, _ = worlds.step(np.array([0, 0]))
    assert (terminated.tolist(), truncated.tolist()) == ([False, False], [False, True])


@pytest.mark.parametrize("name", ["batched", "simverse"])
def test_the_templates_play_the_same_episodes_after_the_same_seed(project: Path, name: str) -> None:
    if name == "simverse":
        pytest.importorskip("torch")
    env = Env(id=f"{name}.py:TrainingEnv")
    actions = np.random.default_rng(0).integers(0, 4, (30, 5))
    played = []
    for _ in range(2):
        worlds = make_vector(env, root=project, num_envs=5)
        seen = [worlds.reset(seed=7)[0]]
        for row in actions:
            answer = worlds.step(row)
            seen.append(answer[0])
            assert answer[0] in worlds.observation_space
        played.append(np.array(seen))
        worlds.close()
    assert np.array_equal(*played)


def test_one_world_alone_is_a_plain_environment(project: Path) -> None:
    env = make_env(Env(id="batched.py:TrainingEnv"), root=project)
    observation, _ = env.reset(seed=3)
    assert observation in env.observation_space
    for _ in range(6):
        _, _, terminated, truncated, info = env.step(0)
        if terminated or truncated:
            break
    assert truncated or info["is_success"]


def test_a_batch_of_the_wrong_shape_is_an_error_of_one_line(project: Path) -> None:
    worlds = make_vector(Env(id="count.py:Flat"), root=project, num_envs=2)
    worlds.reset()
    with pytest.raises(ConfigError, match="shape"):
        worlds.step(np.array([0, 0]))
