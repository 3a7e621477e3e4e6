"""What is kept of a gain, whatever the unit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlx.compare.robustness.retained_gain import retained_gain

NOMINAL = {0: 500.0, 1: 480.0, 2: 460.0}


def test_nothing_changed_keeps_everything_and_random_keeps_nothing() -> None:
    same = retained_gain(NOMINAL, NOMINAL, random=20.0)
    assert (same.share, same.n) == (1.0, 3)
    assert same.share_interval is not None
    assert (same.share_interval.low, same.share_interval.high) == (1.0, 1.0)
    assert retained_gain(NOMINAL, dict.fromkeys(NOMINAL, 20.0), random=20.0).share == 0.0
    assert retained_gain(NOMINAL, dict.fromkeys(NOMINAL, -440.0), random=20.0).share == -1.0


def test_seeds_are_paired_so_a_common_loss_has_a_narrow_interval() -> None:
    common = retained_gain(NOMINAL, {seed: score - 46 for seed, score in NOMINAL.items()}, random=20.0)
    assert common.share == pytest.approx(0.9)
    assert common.share_interval is not None
    assert common.share_interval.high - common.share_interval.low < 0.01
    assert common.interval is not None
    assert common.interval.high - common.interval.low > 20


def test_one_seed_has_no_interval() -> None:
    one = retained_gain({4: 100.0}, {4: 60.0}, random=0.0)
    assert (one.share, one.interval, one.share_interval) == (pytest.approx(0.6), None, None)


def test_without_a_gain_there_is_no_share() -> None:
    assert retained_gain(NOMINAL, NOMINAL, random=None).share is None
    assert retained_gain(NOMINAL, NOMINAL, random=480.0).share is None
    assert retained_gain(NOMINAL, NOMINAL, random=490.0).document()["kept_interval"] is None


@settings(max_examples=30, deadline=None)
@given(scale=st.floats(1e-3, 1e3), shift=st.floats(-1e4, 1e4))
def test_scaling_and_shifting_changes_no_share(scale: float, shift: float) -> None:
    scores = {0: 300.0, 1: 440.0, 2: 90.0}

    def moved(values: dict[int, float]) -> dict[int, float]:
        return {seed: scale * value + shift for seed, value in values.items()}

    before, after = (
        retained_gain(NOMINAL, scores, random=20.0),
        retained_gain(moved(NOMINAL), moved(scores), random=scale * 20 + shift),
    )
    assert after.share == pytest.approx(before.share, rel=1e-6)
    assert before.share_interval is not None
    assert after.share_interval is not None
    assert after.share_interval.low == pytest.approx(before.share_interval.low, rel=1e-6, abs=1e-6)
