"""The plan of looks: what it decides at which size, and what it costs in simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlx.compare.interim_plan import (
    PLAN,
    InterimLook,
    InterimPlan,
    LookStage,
    available,
    holm_shares,
    look,
    take,
    with_failures,
)
from rlx.compare.permutation import permutation_tails

TEN = np.array([310.0, 280, 355, 402, 298, 340, 366, 275, 330, 345])
SIZES = [3, 6, 10, 16, 24]


def test_the_plan_cannot_err_more_often_than_five_percent_whatever_the_returns() -> None:
    assert PLAN.error == pytest.approx(0.05)
    assert [stage.seeds for stage in PLAN.deciding] == [10, 16, 24]
    assert [stage.seeds for stage in PLAN.stages] == SIZES


def test_the_next_look_that_decides_is_never_one_that_was_taken() -> None:
    found = [PLAN.next_deciding(seeds) for seeds in (0, 9, 10, 15, 16, 23, 24, 30)]
    assert [stage.seeds if stage else None for stage in found] == [10, 10, 16, 16, 24, 24, None, None]


@pytest.mark.parametrize(
    ("baseline", "candidate", "sizes"),
    [(10, 2, []), (10, 3, [3]), (9, 9, []), (10, 9, [3, 6]), (10, 30, [3, 6, 10]), (16, 17, [3, 6, 10, 16]),
     (9, 30, []), (24, 24, SIZES), (30, 23, [3, 6, 10, 16])],
)  # fmt: skip
def test_a_look_needs_its_seeds_on_both_sides(baseline: int, candidate: int, sizes: list[int]) -> None:
    assert [stage.seeds for stage in available(PLAN, baseline, candidate)] == sizes


def test_looks_are_taken_on_the_first_seeds_so_more_seeds_change_none_of_them() -> None:
    generator = np.random.default_rng(0)
    baseline, candidate = generator.normal(size=30), generator.normal(size=30)
    whole = take(baseline, candidate)
    assert [one.stage.seeds for one in whole] == SIZES
    for count in range(3, 31):
        taken = take(baseline[: max(10, count)], candidate[:count])
        assert taken == whole[: len(taken)]
    assert whole[0].baseline == tuple(baseline[:10])
    assert whole[3].candidate == tuple(candidate[:16])


def test_only_declared_looks_decide_and_early_ones_only_call_it_futile() -> None:
    early = look(PLAN.stages[0], TEN, TEN[:3] + 500)
    assert (early.above, early.decision()) == (pytest.approx(1 / 286), None)
    assert look(PLAN.stages[0], TEN, TEN[:3] - 500).is_futile
    assert not early.is_futile
    ten = PLAN.stages[2]
    assert look(ten, TEN, TEN + 100).decision() == "better"
    assert look(ten, TEN + 100, TEN).decision() == "worse"
    assert look(ten, TEN, TEN + 15).decision() is None


def test_a_level_is_met_when_it_is_reached_exactly() -> None:
    stage = LookStage(3, better=0.05, worse=0.05)
    assert look(stage, [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]).decision() == "better"
    assert look(stage, [4.0, 5.0, 6.0], [1.0, 2.0, 3.0]).decision() == "worse"


def test_an_improvement_smaller_than_asked_for_is_none() -> None:
    made = look(PLAN.stages[2], TEN, TEN + 100)
    assert made.decision(minimum_effect=100.0) == "better"
    assert made.decision(minimum_effect=101.0) is None


def test_a_crashed_seed_scores_the_worst_of_random_policy_and_everything_seen() -> None:
    nan = math.nan
    assert with_failures([5.0, 6.0], [9.0, nan, 4.0]).tolist() == [9.0, 4.0, 4.0]
    assert with_failures([3.0, 6.0], [9.0, nan, -math.inf]).tolist() == [9.0, 3.0, 3.0]
    assert with_failures([3.0, 6.0], [9.0, nan], floor=1.0).tolist() == [9.0, 1.0]
    assert with_failures([3.0, 6.0], [9.0, nan], floor=4.0).tolist() == [9.0, 3.0]
    with pytest.raises(ValueError, match="no finite score"):
        with_failures([nan], [nan])


def test_crashed_seeds_count_in_every_look() -> None:
    candidate = np.append(TEN[:7] + 100, [math.nan] * 3)
    whole = take(TEN, TEN + 100)[-1]
    failing = take(TEN, candidate, floor=9.0)[-1]
    assert whole.decision() == "better"
    assert failing.candidate[-3:] == (9.0, 9.0, 9.0)
    assert failing.decision() is None


def test_holm_holds_the_strongest_to_a_share_of_the_level_and_stops_at_the_first_that_fails() -> None:
    assert holm_shares([]) == ()
    assert holm_shares([0.7]) == (1.0,)
    assert holm_shares([0.9, 0.2, 0.4]) == pytest.approx((1.0, 1 / 3, 1 / 2))
    assert holm_shares([0.9, 0.2, 0.6]) == pytest.approx((1 / 2, 1 / 3, 1 / 2))
    assert holm_shares([0.5, 0.5, math.inf]) == pytest.approx((1 / 3, 1 / 3, 1 / 3))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(0.001, 3.0), min_size=1, max_size=8))
def test_holm_passes_what_bonferroni_passes_and_nothing_above_the_level(strengths: list[float]) -> None:
    shares = holm_shares(strengths)
    for strength, share in zip(strengths, shares, strict=True):
        passes = strength <= share + 1e-12
        assert passes or strength > 1 / len(strengths)
        assert not passes or strength <= 1 + 1e-12


@pytest.mark.parametrize(("scale", "shift"), [(1000.0, 0.0), (1.0, -500.0), (0.001, 12.0)])
def test_units_change_no_look(scale: float, shift: float) -> None:
    generator = np.random.default_rng(3)
    for _ in range(5):
        baseline, candidate = generator.normal(300, 50, 24), generator.normal(330, 50, 24)
        candidate[5] = math.nan
        plain = take(baseline, candidate, floor=20.0)
        moved = take(baseline * scale + shift, candidate * scale + shift, floor=20.0 * scale + shift)
        assert [(one.above, one.below, one.decision()) for one in plain] == [
            (one.above, one.below, one.decision()) for one in moved
        ]


# Simulations, small and seeded; bench/verdict.py has the large ones


def outcomes(baseline: np.ndarray, candidate: np.ndarray, plan: InterimPlan = PLAN) -> tuple[float, float, float]:
    """Return how often (sims, 24) scores end as better and as worse, and the seeds spent where futility stops."""
    tails = {
        stage: permutation_tails(
            baseline[:, : plan.baseline_seeds(stage)], candidate[:, : stage.seeds], exact_splits=300, resamples=1999
        )
        for stage in plan.stages
    }
    decided = np.zeros(len(baseline), dtype="<U6")
    going, spent, before = np.ones(len(baseline), dtype=bool), np.zeros(len(baseline)), 0
    for stage, (above, below) in tails.items():
        spent += going * (stage.seeds - before)
        before = stage.seeds
        better = (above <= stage.better) & (decided == "")
        decided[better] = "better"
        decided[(below <= stage.worse) & (decided == "")] = "worse"
        going &= (above <= stage.futile) & (decided == "")
    return float(np.mean(decided == "better")), float(np.mean(decided == "worse")), float(spent.mean())


@pytest.mark.parametrize("shape", ["normal", "bimodal", "heavy-left", "ceiling"])
def test_equal_learners_are_called_different_at_most_five_and_a_half_times_in_a_hundred(shape: str) -> None:
    generator = np.random.default_rng(7)
    size = (2, 6000, 24)
    baseline, candidate = {
        "normal": lambda: generator.normal(size=size),
        "bimodal": lambda: generator.normal(size=size) + 6 * (generator.random(size) < 0.3),
        "heavy-left": lambda: -generator.lognormal(0, 1.2, size),
        "ceiling": lambda: np.minimum(500, generator.normal(480, 60, size)),
    }[shape]()
    better, worse, seeds = outcomes(baseline, candidate)
    assert better + worse <= 0.055
    assert seeds <= 6.7


def test_a_shift_of_one_and_a_half_deviations_is_found_at_ten_nine_times_in_ten() -> None:
    generator = np.random.default_rng(8)
    baseline, candidate = generator.normal(size=(4000, 24)), generator.normal(1.5, 1, (4000, 24))
    ten = InterimPlan(PLAN.stages[:3], PLAN.pool)
    assert outcomes(baseline, candidate, ten)[0] >= 0.9
    assert outcomes(baseline, candidate)[0] >= 0.99


def test_a_candidate_that_fails_on_every_fourth_seed_is_rarely_better() -> None:
    generator = np.random.default_rng(9)
    baseline = generator.normal(0.75, 0.1, (4000, 24))
    failing = generator.random((4000, 24)) < 0.25
    candidate = np.where(failing, generator.normal(0.0, 0.1, (4000, 24)), generator.normal(1.0, 0.1, (4000, 24)))
    assert outcomes(baseline, candidate)[0] <= 0.10


def test_a_look_is_equal_to_itself_and_repeats_exactly_beyond_enumeration() -> None:
    generator = np.random.default_rng(1)
    baseline, candidate = generator.normal(size=16), generator.normal(size=16)
    first = look(PLAN.stages[3], baseline, candidate)
    assert isinstance(first, InterimLook)
    assert first == look(PLAN.stages[3], baseline, candidate)
