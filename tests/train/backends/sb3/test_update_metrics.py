"""What the SB3 backend says about the data it learns from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.train.backends.sb3_examples import ALGORITHMS, CONTINUOUS, TOYS, rehearse, tiny

REWARD = {"reward/mean_abs", "reward/std", "reward/max_abs", "reward/nonzero_share"}
OFF_POLICY = ("dqn", "qrdqn", *CONTINUOUS)


def last_row(folder: Path, *arguments: Any, **options: Any) -> dict[str, float]:
    return rehearse(tiny(*arguments, **options), folder).rows[-1][1]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_says_what_applies_to_it(name: str, tmp_path: Path) -> None:
    row = last_row(tmp_path, name)
    assert set(row) >= REWARD
    if name == "ars":
        return
    assert row["obs/constant_share"] == 0.0
    assert {"obs/max_abs", "obs/std_ratio", "train/gradient_norm", "train/value_abs"} <= set(row)
    assert ("action/saturation" in row) == (name in CONTINUOUS)
    assert ("action/top_share" in row) == (name not in CONTINUOUS)
    assert ("replay/size" in row) == (name in OFF_POLICY)
    assert ("train/target_abs" in row) == (name not in OFF_POLICY)
    assert ("train/entropy_share" in row) == (name in ("ppo", "a2c", "recurrent_ppo", "maskable_ppo"))


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_rewards_are_raw_and_their_terms_are_means_a_step(name: str, tmp_path: Path) -> None:
    env = {"id": f"{TOYS}:Terms", "normalize": {"obs": True, "reward": True}}
    algo = {"ppo": {"rollout_steps": 28, "batch_size": 28, "total_timesteps": 112}, "dqn": {"buffer_size": 500}}
    row = last_row(tmp_path, name, env=env, **algo[name])
    assert row["reward/max_abs"] == 6.5
    assert row["reward/nonzero_share"] == 1.0
    assert row["reward/term/cost"] == -row["reward/term_abs/cost"] == -0.5
    assert row["reward/term/prize"] >= 0
    assert row["obs/constant_share"] == pytest.approx(1 / 3)
    assert row["rollout/truncated_share"] == 0.0


def test_terms_between_two_rows_survive_a_stop(tmp_path: Path) -> None:
    experiment = tiny("dqn", env={"id": f"{TOYS}:Terms"})
    whole = rehearse(experiment, tmp_path / "whole")
    stopped = rehearse(experiment, tmp_path / "part", stop_at_poll=whole.polls // 2)
    rest = rehearse(experiment, tmp_path / "part", checkpoint=stopped.saved)
    assert rest.rows == whole.rows[-len(rest.rows) :]


def test_a_gradient_is_measured_before_it_is_scaled_down(tmp_path: Path) -> None:
    row = last_row(tmp_path, "ppo", max_grad_norm=1e-6)
    assert row["train/gradient_norm"] > 1e-3


def test_masked_actions_leave_less_entropy_to_have_a_share_of(tmp_path: Path) -> None:
    assert last_row(tmp_path, "maskable_ppo")["train/entropy_share"] == pytest.approx(1.0, abs=0.02)


def test_images_are_not_judged_pixel_by_pixel(tmp_path: Path) -> None:
    row = last_row(tmp_path, "ppo", env={"id": f"{TOYS}:Pictures"}, policy={"type": "cnn"})
    assert not [key for key in row if key.startswith("obs/")]


def test_choices_and_bits_among_the_observations_are_looked_at(tmp_path: Path) -> None:
    row = last_row(tmp_path, "ppo", env={"id": f"{TOYS}:Mixed"}, policy={"type": "multi"})
    assert row["obs/constant_share"] == 0.0


def test_a_replay_buffer_says_how_full_it_is(tmp_path: Path) -> None:
    row = last_row(tmp_path, "dqn")
    assert row["replay/size"] == row["replay/capacity"] == 60.0
