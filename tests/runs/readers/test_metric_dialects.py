"""Names of training libraries become rlx's names, next to their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.config.schema import Source
from rlx.runs.readers.csv import CsvReader
from rlx.runs.readers.metric_dialects import dialect_of, rlx_name, with_rlx_names
from rlx.runs.readers.tail_metrics import MetricsTail


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("Train/mean_reward", "rollout/return_mean"),
        ("rollout/ep_rew_mean", "rollout/return_mean"),
        ("charts/episodic_return", "rollout/return_mean"),
        ("rewards/step", "rollout/return_mean"),
        ("Reward / Total reward (mean)", "rollout/return_mean"),
        ("losses/clipfrac", "train/clip_fraction"),
        ("Episode_Reward/track_vel", "reward/term/track_vel"),
        ("Episode/rew_torques", "reward/term/torques"),
        ("entropy", None),
        ("loss", None),
    ],
)
def test_names_that_belong_to_one_library(theirs: str, ours: str | None) -> None:
    assert rlx_name(theirs) == ours


def test_plain_names_are_translated_only_in_their_dialect() -> None:
    values = {"return_mean": 1.0, "entropy": 0.5, "num_frames_mean": 9.0}
    assert dialect_of(values) == "torch_ac"
    assert with_rlx_names(values, dialect="torch_ac")["train/entropy"] == 0.5
    assert with_rlx_names({"entropy": 0.5}) == {"entropy": 0.5}
    assert dialect_of(["entropy", "value_loss"]) == ""


def test_tags_by_seconds_are_left_out_and_own_names_keep_their_values() -> None:
    values = {"Train/mean_reward/time": 1.0, "Train/mean_reward": 2.0, "rollout/return_mean": 3.0}
    assert with_rlx_names(values) == {"Train/mean_reward": 2.0, "rollout/return_mean": 3.0}


def test_a_source_that_is_followed_has_both_names(tmp_path: Path) -> None:
    path = tmp_path / "progress.csv"
    path.write_text("step,charts/episodic_return\n10,1.5\nstep,charts/episodic_return\n20,2.5\n")
    source = Source(reader="csv", path=str(path))
    rows = MetricsTail(source, str(path)).rows(is_last=True)
    assert [(row.step, row.values["rollout/return_mean"]) for row in rows] == [(10, 1.5), (20, 2.5)]
    assert rows[0].values["charts/episodic_return"] == 1.5


def test_a_repeated_header_is_not_a_row(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("step,a\n1,1\nstep,a\n2,2\n")
    reader = CsvReader()
    assert [point.step for point in reader.read(path, is_last=True)] == [1, 2]
    assert reader.skipped == 0
