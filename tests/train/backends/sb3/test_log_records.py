"""SB3's records come out under rlx's names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rlx.envs.global_rng import GlobalGenerators
from rlx.train.backends.sb3 import log_records
from rlx.train.backends.sb3.sb3_learner import Sb3Learner
from tests.train.backends.sb3_examples import rehearse, tiny


def test_names_and_signs_are_ours() -> None:
    values = log_records.SilentLogger()
    values.record("train/entropy_loss", -0.7)
    values.record("train/policy_gradient_loss", np.float32(0.5))
    values.record("train/n_updates", 3, exclude="tensorboard")
    values.record("rollout/exploration_rate", 0.1)
    values.record("time/fps", 100)
    values.record("video", object())
    row = log_records.canonical(values.values)
    assert row == {
        "train/entropy": 0.7,
        "train/policy_loss": 0.5,
        "train/updates": 3.0,
        "train/exploration_rate": 0.1,
    }


def test_an_objective_is_a_loss_with_the_other_sign() -> None:
    assert log_records.canonical({"train/policy_objective": 2.0}) == {"train/policy_loss": -2.0}


def test_custom_algorithms_may_call_the_rest_of_a_logger() -> None:
    values = log_records.SilentLogger()
    values.info("hello")
    values.record_mean("x", 1)
    values.dump(3)
    values.close()
    assert values.name_to_value == {"x": 1.0}


def test_nothing_is_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rehearse(tiny("ppo"), tmp_path / "ppo")
    rehearse(tiny("dqn"), tmp_path / "dqn")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["dqn", "qrdqn", "sac", "td3", "tqc"])
def test_the_mean_value_draws_no_random_number(name: str, tmp_path: Path) -> None:
    session = rehearse(tiny(name), tmp_path)
    learner = Sb3Learner(tiny(name), root=tmp_path, seed=0)
    learner.begin()
    assert log_records.q_row(learner.algorithm) == {}
    learner.restore(session.saved)
    before = GlobalGenerators.now().document()
    row = log_records.q_row(learner.algorithm)
    learner.close()
    assert row == pytest.approx({key: session.rows[-1][1][key] for key in ("train/q_mean", "train/value_abs")})
    np.testing.assert_array_equal(before["numpy"][1], GlobalGenerators.now().document()["numpy"][1])


def test_the_row_belongs_to_the_update_it_is_written_after(tmp_path: Path) -> None:
    rows = rehearse(tiny("ppo"), tmp_path).rows
    assert [row["train/updates"] for _, row in rows] == [2, 4, 6, 8]
    assert [step for step, _ in rows] == [32, 64, 96, 128]
