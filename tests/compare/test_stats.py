"""Aggregates, profiles and bootstrap intervals checked against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlx.compare import stats


def test_iqm_is_the_mean_of_the_middle_half_over_runs_and_tasks() -> None:
    assert float(stats.iqm([0.0, 1.0, 2.0, 3.0, 100.0])) == 2.0
    assert float(stats.iqm(np.array([[0.0, 10.0], [1.0, 11.0], [2.0, 12.0], [3.0, 500.0]]))) == (2 + 3 + 10 + 11) / 4
    assert float(stats.mean([[0.0, 10.0], [1.0, 11.0]])) == 5.5


def test_the_bootstrap_interval_of_a_mean_has_the_textbook_width() -> None:
    scores = np.random.default_rng(0).normal(10, 2, 50)
    interval = stats.bootstrap_interval(stats.mean, scores)
    half = 1.96 * scores.std() / math.sqrt(50)
    assert interval.low == pytest.approx(scores.mean() - half, abs=0.05)
    assert interval.high == pytest.approx(scores.mean() + half, abs=0.05)
    assert interval == stats.bootstrap_interval(stats.mean, scores)
    assert interval != stats.bootstrap_interval(stats.mean, scores, seed=1)


def test_the_bootstrap_redraws_within_each_task() -> None:
    scores = np.array([[0.0, 100.0], [0.0, 100.0], [0.0, 100.0]])
    assert stats.bootstrap_interval(stats.mean, scores, resamples=500) == stats.Interval(50.0, 50.0, 0.95)


def test_the_bootstrap_takes_two_groups_and_large_inputs_in_blocks() -> None:
    generator = np.random.default_rng(0)
    baseline, candidate = generator.normal(0, 1, (20, 30)), generator.normal(1, 1, (10, 30))
    difference = stats.bootstrap_interval(
        lambda a, b: stats.iqm(b) - stats.iqm(a), baseline, candidate, resamples=20_000
    )
    assert difference.low < 1 < difference.high


def test_a_performance_profile_falls_from_one_to_zero() -> None:
    profile = stats.performance_profile([[0.0, 1.0], [2.0, 3.0]], [-1.0, 0.0, 1.5, 3.0])
    assert profile.tolist() == [1.0, 0.75, 0.5, 0.0]


def test_the_median_is_over_task_means_and_over_runs_where_there_is_one_task() -> None:
    assert float(stats.median([[0.0, 10.0, 5.0], [2.0, 30.0, 5.0]])) == 5.0
    assert float(stats.median([1.0, 9.0, 2.0])) == 2.0


def test_every_aggregate_takes_many_data_sets_at_once() -> None:
    scores = np.random.default_rng(0).normal(size=(7, 5, 3))
    for aggregate in (stats.mean, stats.median, stats.iqm):
        assert aggregate(scores) == pytest.approx(np.array([float(aggregate(one)) for one in scores]))
    assert stats.performance_profile(scores, [0.0, 1.0]).shape == (7, 2)


def test_a_profile_band_holds_the_profile_and_is_narrow_where_all_runs_agree() -> None:
    scores = np.random.default_rng(1).normal(size=(12, 4))
    thresholds = [-10.0, -0.5, 0.0, 0.5, 10.0]
    band = stats.profile_band(scores, thresholds)
    profile = stats.performance_profile(scores, thresholds)
    assert (band.low <= profile).all()
    assert (profile <= band.high).all()
    assert (band.low[0], band.high[0], band.low[-1], band.high[-1]) == (1.0, 1.0, 0.0, 0.0)
    assert 0.1 < band.high[2] - band.low[2] < 0.6


@pytest.mark.parametrize("scores", [[], [1.0, math.nan], [math.inf, 1.0]])
def test_scores_that_are_not_finite_or_absent_are_refused(scores: list[float]) -> None:
    with pytest.raises(ValueError, match="scores"):
        stats.iqm(scores)


def test_the_band_of_a_mean_curve_redraws_whole_runs() -> None:
    curves = np.array([[0.0, 10.0], [2.0, 8.0], [4.0, 6.0]])
    band = stats.mean_band(curves)
    assert band.low.tolist() == [0.0, 6.0]
    assert band.high.tolist() == [4.0, 10.0]
    assert np.allclose(band.low + band.high, curves.mean(axis=0) * 2, atol=0.2)
    many = stats.mean_band(np.random.default_rng(0).normal(size=(40, 3)))
    assert ((many.high - many.low) < 1.0).all()
    with pytest.raises(ValueError, match="finite"):
        stats.mean_band([[np.nan], [1.0]])
