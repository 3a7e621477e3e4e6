"""The noise of a pool, on literal scores."""

from __future__ import annotations

import pytest

from rlx.compare.interim_plan import PLAN
from rlx.compare.seed_noise import noise

POOL = [310.0, 330.0, 290.0, 320.0, 300.0, 305.0, 295.0, 315.0, 325.0, 310.0]
BIMODAL = [10.0, 12.0, 11.0, 300.0, 310.0, 305.0, 298.0, 302.0, 307.0, 303.0]


def test_a_tight_pool_finds_small_gains_and_a_wide_one_does_not() -> None:
    tight, wide = noise(POOL, random=20.0), noise([100.0, 500.0, *POOL[2:]], random=20.0)
    assert tight.gain == pytest.approx(290.0)
    assert [one.seeds for one in tight.detections] == [24, 10, 10]
    assert [one.effect for one in tight.detections] == pytest.approx([14.5, 29.0, 58.0])
    assert [one.seeds for one in wide.detections] == [None, None, None]


def test_a_number_of_seeds_is_always_one_at_which_a_decision_is_possible() -> None:
    deciding = {stage.seeds for stage in PLAN.deciding}
    for spread in (0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0):
        pool = noise([300.0 + spread * (score - 310.0) for score in POOL], random=20.0, shares=[0.01, 0.05, 0.1, 0.5])
        assert {one.seeds for one in pool.detections} <= deciding | {None}
        assert set(pool.finds) <= deciding


def test_more_seeds_find_less() -> None:
    finds = noise(POOL).finds
    assert list(finds) == [10, 24]
    assert finds[10] > finds[24] > 0


@pytest.mark.parametrize("random", [None, 400.0])
def test_without_a_gain_over_the_random_policy_shares_of_it_are_undefined(random: float | None) -> None:
    pool = noise(POOL, random=random)
    assert pool.gain is None
    assert pool.detections == ()
    assert pool.finds[10] > 0


def test_a_seed_fails_that_gains_less_than_half_of_the_best() -> None:
    failing = noise([*POOL[:9], 100.0], random=20.0).failing
    assert (failing.count, failing.threshold) == (1, 175.0)
    assert failing.bound == pytest.approx(0.394, abs=1e-3)
    assert noise(POOL, random=20.0).failing.count == 0


def test_without_a_random_policy_a_wide_gap_parts_failing_seeds() -> None:
    assert noise(BIMODAL).failing.count == 3
    assert noise(POOL).failing.count == 0
    assert noise([1.0, 2.0]).failing.threshold is None


def test_without_a_random_policy_a_share_begins_at_zero() -> None:
    failing = noise([0.0, 0.05, 0.02, 0.45, 0.5]).failing
    assert (failing.count, failing.threshold) == (3, 0.25)
    assert noise([0.9, 0.95, 1.0]).failing.count == 0
    assert noise([0.0, 0.0, 0.0]).failing.threshold is None


def test_crashed_seeds_fail() -> None:
    failing = noise(POOL, random=20.0, crashed=2).failing
    assert failing.count == 2
    assert failing.bound > noise(POOL, random=20.0).failing.bound


@pytest.mark.parametrize(("scale", "shift"), [(1000.0, 0.0), (1.0, -500.0), (0.001, 7.0)])
@pytest.mark.parametrize("random", [20.0, None])
def test_scale_and_shift_change_no_count(scale: float, shift: float, random: float | None) -> None:
    for pool in (POOL, BIMODAL):
        before = noise(pool, random=random)
        moved = noise(
            [scale * score + shift for score in pool], random=None if random is None else scale * random + shift
        )
        assert moved.failing.count == before.failing.count
        assert [one.seeds for one in moved.detections] == [one.seeds for one in before.detections]
        assert moved.finds[10] == pytest.approx(scale * before.finds[10])


def test_equal_seeds_have_no_noise() -> None:
    pool = noise([5.0, 5.0, 5.0], random=1.0)
    assert pool.sd == 0.0
    assert [one.seeds for one in pool.detections] == [10, 10, 10]
    assert pool.failing.count == 0
