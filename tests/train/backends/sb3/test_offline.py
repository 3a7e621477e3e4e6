"""Offline learners: they fill the buffer from a dataset, never step the environment, and learn what they claim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv

from rlx.errors import ConfigError
from rlx.train.backends.sb3.offline import UPDATES, Cloning, ConservativeQ, Td3Cloning
from rlx.train.episode_dataset import EpisodeDataset


class Bandit(gymnasium.Env[Any, Any]):
    """One step. It must never be stepped here."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, action_space: Any) -> None:
        self.action_space = action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> Any:
        raise AssertionError("an offline learner stepped the environment")


def bandit_data(actions: Any, rewards: Any) -> EpisodeDataset:
    """Episodes of one step each."""
    count = len(actions)
    ends = np.ones(count, dtype=bool)
    seen = np.tile(np.array([[0.5, -0.5], [0.0, 0.0]], np.float32), (count, 1))
    return EpisodeDataset(seen, np.asarray(actions), np.asarray(rewards, float), ends, ~ends, 2 * np.arange(count + 1))


def trained(kind: Any, space: Any, data: EpisodeDataset, monkeypatch: Any, tmp_path: Path, **settings: Any) -> Any:
    data.save(tmp_path / "data.npz")
    monkeypatch.setenv("RLX_ROOT", str(tmp_path))
    torch.set_num_threads(1)  # tiny networks are slower on many threads
    torch.manual_seed(0)
    env = DummyVecEnv([lambda: Bandit(space)])
    algorithm = kind("MlpPolicy", env, dataset="data.npz", learning_rate=1e-2, batch_size=64, seed=0,
                     policy_kwargs={"net_arch": [16]}, **settings)  # fmt: skip
    algorithm.set_logger(Logger(None, []))
    rollout = algorithm.collect_rollouts(env, callback=type("Watch", (), {"on_step": lambda self: True})())
    assert rollout.episode_timesteps == algorithm.num_timesteps == UPDATES
    algorithm.train(gradient_steps=300, batch_size=64)
    return algorithm


SEEN = torch.tensor([[0.5, -0.5]])


def test_a_conservative_value_of_an_action_that_nobody_tried_is_low(tmp_path: Path, monkeypatch: Any) -> None:
    """Actions 0 and 1 pay −1 and −0.5, and 2 was never tried. Plain Q-learning knows nothing of it."""
    data = bandit_data([0, 1] * 50, [-1.0, -0.5] * 50)
    learner = trained(ConservativeQ, spaces.Discrete(3), data, monkeypatch, tmp_path, conservatism=1.0)
    values = learner.q_net(SEEN).detach().numpy()[0]
    assert values[2] < values[0] - 1
    assert values.argmax() == 1
    plain = trained(ConservativeQ, spaces.Discrete(3), data, monkeypatch, tmp_path, conservatism=0.0)
    np.testing.assert_allclose(plain.q_net(SEEN).detach().numpy()[0, :2], [-1.0, -0.5], atol=0.1)


def test_cloning_copies_the_shares_of_the_data(tmp_path: Path, monkeypatch: Any) -> None:
    data = bandit_data([0, 1, 1, 1] * 50, [0.0] * 200)
    learner = trained(Cloning, spaces.Discrete(2), data, monkeypatch, tmp_path)
    shares = learner.q_net(SEEN).softmax(dim=1).detach().numpy()[0]
    assert shares == pytest.approx([0.25, 0.75], abs=0.05)


def test_td3_with_cloning_prefers_the_better_action_of_the_data(tmp_path: Path, monkeypatch: Any) -> None:
    rng = np.random.default_rng(0)
    actions = rng.uniform(-2, 2, size=(400, 1)).astype(np.float32)
    rewards = -((actions[:, 0] - 1) ** 2)
    space = spaces.Box(-2, 2, (1,), np.float32)
    data = bandit_data(actions, rewards)
    clone = trained(Td3Cloning, space, data, monkeypatch, tmp_path, greed=0.0)
    learner = trained(Td3Cloning, space, data, monkeypatch, tmp_path)
    best = float(learner.predict(np.array([0.5, -0.5], np.float32), deterministic=True)[0][0])
    mean = float(clone.predict(np.array([0.5, -0.5], np.float32), deterministic=True)[0][0])
    assert mean == pytest.approx(0.0, abs=0.25)
    assert best > mean + 0.3


def test_a_time_limit_is_not_an_end(tmp_path: Path, monkeypatch: Any) -> None:
    data = bandit_data([0] * 10, [1.0] * 10)
    flags = np.zeros(10, dtype=bool)
    cut = EpisodeDataset(data.observations, data.actions, data.rewards, flags, ~flags, data.starts)
    learner = trained(ConservativeQ, spaces.Discrete(2), cut, monkeypatch, tmp_path)
    batch = learner.replay_buffer.sample(5)
    assert float(batch.dones.sum()) == 0


def test_a_dataset_of_another_environment_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    data = bandit_data(np.zeros((10, 3), np.float32), [0.0] * 10)
    with pytest.raises(ConfigError, match="actions have the shape"):
        trained(Td3Cloning, spaces.Box(-1, 1, (1,), np.float32), data, monkeypatch, tmp_path)
