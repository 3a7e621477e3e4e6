"""Hyperparameters of RL Baselines3 Zoo become a valid config; nothing in the file is evaluated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rlx.adopt.zoo_config import zoo_config
from rlx.errors import NotFound, UsageError


def read(folder: Path, text: str, *, name: str = "ppo.yml", env: str = "CartPole-v1") -> Any:
    (folder / name).write_text(text)
    return zoo_config(folder / name, env)


def test_a_tuned_entry(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        """CartPole-v1: &cart
  n_envs: 8
  n_timesteps: !!float 1e5
  policy: 'MlpPolicy'
  n_steps: 32
  batch_size: 256
  learning_rate: lin_0.001
  clip_range: 0.2
  normalize: "dict(norm_obs=True, norm_reward=False)"
  policy_kwargs: "dict(log_std_init=-1, activation_fn=nn.ReLU, net_arch=dict(pi=[64, 32], vf=[64, 32]))"
  env_wrapper: gym.wrappers.Whatever
Other-v0:
  <<: *cart
  n_envs: 2
""",
    )
    assert config.sections == {
        "env": {"id": "CartPole-v1", "num_envs": 8, "normalize": {"obs": True, "reward": False}},
        "algo": {
            "name": "ppo", "total_timesteps": 100000, "rollout_steps": 32, "batch_size": 256,
            "learning_rate": {"linear": [0.001, 0.0]}, "clip_range": 0.2,
        },
        "policy": {"kwargs": {"log_std_init": -1}, "activation": "relu", "hidden_sizes": [64, 32]},
    }  # fmt: skip
    assert config.left_out == ["env_wrapper: gym.wrappers.Whatever"]
    assert yaml.safe_load(config.text("ppo.yml")) == config.sections
    assert zoo_config(tmp_path / "ppo.yml", "Other-v0").sections["algo"]["batch_size"] == 64


def test_an_unknown_environment_takes_the_default_entry(tmp_path: Path) -> None:
    config = read(tmp_path, "default: {n_timesteps: 5000, noise_type: normal, noise_std: 0.2}\n", name="td3.yml")
    assert config.entry == "default"
    assert config.sections["algo"] == {"name": "td3", "total_timesteps": 5000, "action_noise": 0.2}
    with pytest.raises(NotFound, match="has no hyperparameters for CartPole-v1"):
        read(tmp_path, "Other-v0: {n_timesteps: 5000}\n")


def test_texts_are_never_evaluated(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    attack = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    config = read(
        tmp_path,
        f'CartPole-v1: {{policy_kwargs: "dict(a={attack})", normalize: "{attack}", learning_rate: "{attack}"}}\n',
    )
    assert not mark.exists()
    assert len(config.left_out) == 3
    with pytest.raises(UsageError, match="is not YAML"):
        read(tmp_path, "CartPole-v1: !!python/object/apply:os.system ['true']\n")


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not name an algorithm"):
        read(tmp_path, "default: {}\n", name="her.yml")
    with pytest.raises(UsageError, match="is not a table"):
        read(tmp_path, "- 1\n")
    with pytest.raises(NotFound, match="no file"):
        zoo_config(tmp_path / "absent" / "ppo.yml", "CartPole-v1")
