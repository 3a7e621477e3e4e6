"""SB3's records come out under rlx's names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rlx.train.backends import sb3_metrics, sb3_state
from rlx.train.backends.sb3_learner import Learner
from tests.train.backends.sb3_examples import rehearse, tiny


def test_names_and_signs_are_ours() -> None:
    values = sb3_metrics.Values()
    values.record("train/entropy_loss", -0.7)
    values.record("train/policy_gradient_loss", np.float32(0.5))
    values.record("train/n_updates", 3, exclude="tensorboard")
    values.record("rollout/exploration_rate", 0.1)
    values.record("time/fps", 100)
    values.record("video", object())
    row = sb3_metrics.canonical(values.values)
    assert row == {
        "train/entropy": 0.7,
        "train/policy_loss": 0.5,
        "train/updates": 3.0,
        "train/exploration_rate": 0.1,
    }


def test_an_objective_is_a_loss_with_the_other_sign() -> None:
    assert sb3_metrics.canonical({"train/policy_objective": 2.0}) == {"train/policy_loss": -2.0}


def test_custom_algorithms_may_call_the_rest_of_a_logger() -> None:
    values = sb3_metrics.Values()
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
    learner = Learner(tiny(name), root=tmp_path, seed=0)
    learner.begin()
    assert sb3_metrics.q_row(learner.algorithm) == {}
    learner.restore(session.saved)
    before = sb3_state.random_state()
    row = sb3_metrics.q_row(learner.algorithm)
    learner.close()
    assert row == pytest.approx({key: session.rows[-1][1][key] for key in ("train/q_mean", "train/value_abs")})
    np.testing.assert_array_equal(before["numpy"]["state"]["key"], sb3_state.random_state()["numpy"]["state"]["key"])


def test_the_row_belongs_to_the_update_it_is_written_after(tmp_path: Path) -> None:
    rows = rehearse(tiny("ppo"), tmp_path).rows
    assert [row["train/updates"] for _, row in rows] == [2, 4, 6, 8]
    assert [step for step, _ in rows] == [32, 64, 96, 128]
