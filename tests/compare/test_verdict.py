"""Verdicts on literal scores, and their error rates in simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlx.compare.stats import permutation_p
from rlx.compare.verdict import BETTER_LEVEL, WORSE_LEVEL, judge

TEN = np.array([310.0, 280, 355, 402, 298, 340, 366, 275, 330, 345])


def test_three_seeds_lean_and_never_decide() -> None:
    verdict = judge([100.0, 110, 120], [400.0, 410, 420])
    assert verdict.verdict == "inconclusive"
    assert verdict.line() == "inconclusive: leaning +300 [+280, +320], undecided at 3 v 3"
    assert verdict.settle == "10 seeds a side: 7 more for the baseline, 7 more for the candidate"


def test_a_leaning_shows_its_interval_in_matching_digits() -> None:
    assert (
        judge([90.0, 100, 110], [91.0, 111, 131]).line() == "inconclusive: leaning +11 [−19, +41], undecided at 3 v 3"
    )
    assert judge([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]).effect() == "+0.00 [−0.20, +0.20]"


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 2), (9, 10), (10, 9), (9, 30)])
def test_nothing_is_decided_below_ten_seeds_a_side(n: int, m: int) -> None:
    verdict = judge(np.arange(n), np.arange(m) + 1000)
    assert verdict.verdict == "inconclusive"
    assert verdict.settle.startswith("10 seeds a side: ")
    assert "0 more" not in verdict.settle


def test_one_seed_a_side_has_no_interval_and_says_so() -> None:
    assert judge([1.0], [2.0]).effect() == "+1.0 [−∞, +∞]"


def test_a_clear_improvement_at_ten_seeds_is_better_and_its_mirror_worse() -> None:
    better, worse = judge(TEN, TEN + 100), judge(TEN + 100, TEN)
    assert (better.verdict, worse.verdict) == ("better", "worse")
    assert better.interval.low > 0 > worse.interval.high
    assert better.settle == ""
    assert better.line().startswith("better: +100 [")


def test_equal_pools_are_inconclusive_and_not_worth_more_seeds() -> None:
    verdict = judge(TEN, TEN[::-1])
    assert verdict.verdict == "inconclusive"
    assert verdict.settle.startswith("nothing practical")
    assert judge([500.0] * 10, [500.0] * 10).settle.startswith("nothing practical")


def test_an_unsettled_leaning_asks_for_fresh_seeds_and_never_for_a_second_look() -> None:
    verdict = judge(TEN, TEN + 15)
    assert verdict.verdict == "inconclusive"
    assert "fresh seeds a side" in verdict.settle
    assert verdict.line().startswith("inconclusive: leaning +15 [")


def test_scores_without_a_number_are_invalid_never_dropped() -> None:
    verdict = judge(TEN, np.append(TEN[:9] + 100, math.nan))
    assert verdict.verdict == "invalid"
    assert verdict.line() == "invalid: 1 of the candidate's 10 seeds have no finite score"
    assert judge([], TEN).line() == "invalid: no baseline seeds"


@pytest.mark.parametrize(("scale", "shift"), [(1000.0, 0.0), (1.0, -500.0)])
def test_scaling_and_shifting_changes_no_verdict(scale: float, shift: float) -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        baseline, candidate = generator.normal(300, 50, 10), generator.normal(350, 50, 10)
        plain, moved = judge(baseline, candidate), judge(baseline * scale + shift, candidate * scale + shift)
        assert (plain.verdict, plain.p) == (moved.verdict, moved.p)


def test_the_same_scores_give_the_same_verdict_also_beyond_enumeration() -> None:
    generator = np.random.default_rng(0)
    baseline, candidate = generator.normal(0, 1, 16), generator.normal(0.7, 1, 16)
    assert judge(baseline, candidate) == judge(baseline, candidate)


def test_the_document_is_plain_data() -> None:
    document = judge(TEN, TEN + 100).document()
    assert document["verdict"] == "better"
    assert document["n"] == [10, 10]
    assert document["level"] == pytest.approx(0.95)


def test_better_and_worse_together_err_at_most_five_percent_and_half_between_equal_learners() -> None:
    generator = np.random.default_rng(7)
    shapes = (
        generator.normal(size=(2, 20_000, 10)),
        generator.normal(size=(2, 20_000, 10)) + 6 * (generator.random((2, 20_000, 10)) < 0.3),
        np.minimum(500, generator.normal(480, 60, (2, 20_000, 10))),
    )
    for baseline, candidate in shapes:
        assert np.mean(_decides(baseline, candidate)) <= 0.055


def test_a_shift_of_one_and_a_half_deviations_is_found_nine_times_in_ten() -> None:
    generator = np.random.default_rng(8)
    baseline, candidate = generator.normal(size=(4000, 10)), generator.normal(1.5, 1, (4000, 10))
    assert np.mean(_decides(baseline, candidate)) >= 0.9


def test_a_candidate_that_fails_on_every_fourth_seed_is_rarely_better() -> None:
    generator = np.random.default_rng(9)
    baseline = generator.normal(0.75, 0.1, (4000, 10))
    failing = generator.random((4000, 10)) < 0.25
    candidate = np.where(failing, generator.normal(0.0, 0.1, (4000, 10)), generator.normal(1.0, 0.1, (4000, 10)))
    p = permutation_p(baseline, candidate, alternative="greater", exact_splits=0, resamples=1999)
    assert np.mean(p <= BETTER_LEVEL) <= 0.10


def _decides(baseline: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    above = permutation_p(baseline, candidate, alternative="greater", exact_splits=0, resamples=999)
    below = permutation_p(baseline, candidate, alternative="less", exact_splits=0, resamples=999)
    return (above <= BETTER_LEVEL) | (below <= WORSE_LEVEL)
