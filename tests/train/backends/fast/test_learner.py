"""What the fast backend says about the data it learns from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from rlx.config.load import parse
from rlx.testing import RecordingSession
from rlx.train.backends.fast.fast_trainer import FastTrainer
from tests.train.backends.sb3_examples import TOYS


def last_row(folder: Path, env: dict[str, Any], **algo: Any) -> dict[str, float]:
    small = {"name": "ppo", "total_timesteps": 112, "rollout_steps": 28, "batch_size": 28, "update_epochs": 2}
    experiment = parse({
        "env": {"num_envs": 2, **env}, "algo": {**small, **algo}, "policy": {"hidden_sizes": [8]}, "backend": "fast",
    })  # fmt: skip
    session = RecordingSession(experiment, folder, root=folder)
    FastTrainer().train(cast("Any", session))
    return session.rows[-1][1]


def test_rewards_are_raw_and_their_terms_are_means_a_step(tmp_path: Path) -> None:
    row = last_row(tmp_path, {"id": f"{TOYS}:Terms", "normalize": {"obs": True, "reward": True}})
    assert row["reward/max_abs"] == 6.5
    assert row["reward/mean_abs"] == pytest.approx((6 * 0.5 + 6.5) / 7)
    assert row["reward/nonzero_share"] == 1.0
    assert row["reward/term/cost"] == -row["reward/term_abs/cost"] == -0.5
    assert row["reward/term/prize"] == pytest.approx(1.0)
    assert row["obs/constant_share"] == pytest.approx(1 / 3)
    assert row["rollout/truncated_share"] == row["rollout/return_std"] == 0.0
    assert row["train/gradient_norm"] > 0
    assert row["train/target_abs"] > 0
    assert row["train/value_abs"] > 0


def test_discrete_actions_have_a_share_of_entropy_and_of_use(tmp_path: Path) -> None:
    row = last_row(tmp_path, {"id": f"{TOYS}:Dials"})
    assert 0.99 < row["train/entropy_share"] <= 1.0
    assert 0.5 <= row["action/top_share"] < 0.9
    assert row["action/unused_share"] == 0.0
    assert "action/saturation" not in row


def test_masked_actions_leave_less_entropy_to_have_a_share_of(tmp_path: Path) -> None:
    row = last_row(tmp_path, {"id": f"{TOYS}:Doors"}, name="maskable_ppo")
    assert row["train/entropy_share"] == pytest.approx(1.0, abs=0.01)


def test_numbers_saturate_and_cut_episodes_are_counted(tmp_path: Path) -> None:
    row = last_row(tmp_path, {"id": "Pendulum-v1", "wrappers": [{"time_limit": {"max_steps": 10}}]})
    assert 0 < row["action/saturation"] < 0.3
    assert row["rollout/truncated_share"] == 1.0
    assert not {"train/entropy_share", "action/top_share"} & set(row)


def test_choices_and_bits_among_the_observations_are_looked_at(tmp_path: Path) -> None:
    row = last_row(tmp_path, {"id": f"{TOYS}:Mixed"})
    assert row["obs/constant_share"] == 0.0
    assert row["obs/std_ratio"] > 1
