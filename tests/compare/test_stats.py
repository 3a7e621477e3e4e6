"""Statistics checked against enumerations, closed forms and published figures."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from rlx.compare import stats


def enumerate_p(baseline: list[float], candidate: list[float], *, alternative: str) -> float:
    """The permutation test as the textbook says it: every split, one at a time, in exact integers."""
    pooled = baseline + candidate
    size = len(candidate)
    observed = sum(candidate)
    splits = [sum(pooled[i] for i in chosen) for chosen in combinations(range(len(pooled)), size)]
    hits = [value >= observed if alternative == "greater" else value <= observed for value in splits]
    return sum(hits) / len(splits)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 3), (2, 5), (5, 2), (6, 4), (7, 7), (1, 9)])
def test_the_exact_permutation_test_equals_a_brute_force_enumeration(n: int, m: int) -> None:
    generator = np.random.default_rng(n * 10 + m)
    for _ in range(5):
        baseline = [float(value) for value in generator.integers(0, 12, n)]
        candidate = [float(value) for value in generator.integers(2, 14, m)]
        for alternative in ("greater", "less"):
            p = stats.permutation_p(baseline, candidate, alternative=alternative)  # type: ignore[arg-type]
            assert float(p) == pytest.approx(enumerate_p(baseline, candidate, alternative=alternative), abs=1e-12)


def test_two_sided_is_twice_the_smaller_side() -> None:
    baseline, candidate = [1.0, 2.0, 3.0, 4.0], [4.0, 5.0, 6.0, 9.0]
    greater = float(stats.permutation_p(baseline, candidate, alternative="greater"))
    assert float(stats.permutation_p(baseline, candidate)) == pytest.approx(2 * greater)
    assert float(stats.permutation_p(candidate, candidate)) == 1.0


@pytest.mark.parametrize(
    ("n", "m", "smallest"),
    [(10, 1, 1 / 11), (10, 2, 1 / 66), (10, 3, 1 / 286), (3, 3, 0.05), (4, 4, 1 / 70), (5, 5, 1 / 252)],
)
def test_the_smallest_possible_p_is_one_split_of_all(n: int, m: int, smallest: float) -> None:
    p = stats.permutation_p(np.arange(n), np.arange(m) + 100, alternative="greater")
    assert float(p) == pytest.approx(smallest)


def test_monte_carlo_agrees_with_the_enumeration_and_depends_only_on_its_seed() -> None:
    generator = np.random.default_rng(5)
    baseline, candidate = generator.normal(0, 1, 9), generator.normal(0.6, 1, 9)
    exact = float(stats.permutation_p(baseline, candidate, alternative="greater"))
    sampled = [
        float(stats.permutation_p(baseline, candidate, alternative="greater", exact_splits=0, seed=s))
        for s in (1, 1, 2)
    ]
    assert sampled[0] == sampled[1]
    assert sampled[0] != sampled[2]
    assert sampled[0] == pytest.approx(exact, abs=0.01)


def test_ten_against_ten_is_enumerated_and_eleven_is_sampled() -> None:
    generator = np.random.default_rng(0)
    ten, eleven = generator.normal(size=(2, 10)), generator.normal(size=(2, 11))
    assert float(stats.permutation_p(*ten, seed=1)) == float(stats.permutation_p(*ten, seed=2))
    assert float(stats.permutation_p(*eleven, seed=1)) != float(stats.permutation_p(*eleven, seed=2))


@pytest.mark.parametrize(("scale", "shift"), [(1000.0, 0.0), (1.0, -500.0), (1e-6, 0.0), (-0.0 + 3.0, 1e6)])
def test_scaling_and_shifting_returns_changes_no_p_even_with_ties(scale: float, shift: float) -> None:
    generator = np.random.default_rng(3)
    baseline, candidate = generator.integers(0, 6, (2, 50, 7)) / 10
    moved = stats.permutation_p(baseline * scale + shift, candidate * scale + shift)
    assert moved == pytest.approx(stats.permutation_p(baseline, candidate), abs=0)


def test_many_data_sets_at_once_give_what_each_gives_alone() -> None:
    generator = np.random.default_rng(1)
    baseline, candidate = generator.normal(size=(6, 8)), generator.normal(size=(6, 5))
    for exact_splits in (0, 200_000):
        together = stats.permutation_p(baseline, candidate, exact_splits=exact_splits, resamples=499)
        alone = [
            float(stats.permutation_p(a, b, exact_splits=exact_splits, resamples=499))
            for a, b in zip(baseline, candidate, strict=True)
        ]
        assert together == pytest.approx(np.array(alone), abs=1e-12)


@pytest.mark.parametrize("shape", ["normal", "bimodal", "heavy-left", "ceiling"])
def test_equal_learners_are_told_apart_no_more_often_than_the_level_says(shape: str) -> None:
    generator = np.random.default_rng(11)
    draw = {
        "normal": lambda size: generator.normal(size=size),
        "bimodal": lambda size: generator.normal(size=size) + 6 * (generator.random(size) < 0.3),
        "heavy-left": lambda size: -generator.lognormal(0, 1.2, size),
        "ceiling": lambda size: np.minimum(500, generator.normal(480, 60, size)),
    }[shape]
    p = stats.permutation_p(
        draw((20_000, 10)), draw((20_000, 10)), exact_splits=0, resamples=999, alternative="greater"
    )
    assert np.mean(p <= 0.05) <= 0.055


def test_power_at_ten_a_side_is_what_the_evidence_page_measured() -> None:
    generator = np.random.default_rng(12)
    for effect, power in ((1.0, 0.70), (1.5, 0.945)):
        baseline, candidate = generator.normal(size=(4000, 10)), generator.normal(effect, 1, (4000, 10))
        p = stats.permutation_p(baseline, candidate, exact_splits=0, resamples=1999, alternative="greater")
        assert np.mean(p <= 0.05) == pytest.approx(power, abs=0.03)


def test_the_permutation_interval_excludes_zero_exactly_where_the_test_rejects() -> None:
    generator = np.random.default_rng(2)
    decided = 0
    for _ in range(100):
        baseline, candidate = generator.normal(0, 1, 6), generator.normal(0.9, 1, 7)
        interval = stats.permutation_interval(baseline, candidate, below=0.04, above=0.01)
        rejects_above = float(stats.permutation_p(baseline, candidate, alternative="greater")) <= 0.04
        rejects_below = float(stats.permutation_p(baseline, candidate, alternative="less")) <= 0.01
        assert (interval.low > 0, interval.high < 0) == (rejects_above, rejects_below)
        decided += rejects_above
    assert 10 < decided < 90


def test_the_permutation_interval_covers_the_true_shift_as_often_as_it_says() -> None:
    generator = np.random.default_rng(4)
    covered = 0
    for _ in range(1500):
        baseline, candidate = generator.gamma(2, 1, 6), generator.gamma(2, 1, 6) + 3
        interval = stats.permutation_interval(baseline, candidate, below=0.05, above=0.05)
        covered += interval.low <= 3 <= interval.high
    assert 0.875 <= covered / 1500 <= 0.935


def test_the_interval_is_unbounded_where_there_are_too_few_runs() -> None:
    few = stats.permutation_interval([1.0, 2.0], [3.0, 5.0], below=0.05, above=0.05)
    assert (few.low, few.high) == (-math.inf, math.inf)
    assert not few.is_bounded
    three = stats.permutation_interval([1.0, 2.0, 3.0], [3.0, 5.0, 7.0], below=0.05, above=0.05)
    assert (three.low, three.high) == (0.0, 6.0)


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
    interval = stats.bootstrap_interval(stats.probability_of_improvement, baseline, candidate, resamples=300)
    assert interval.low < 0.76 < interval.high
    difference = stats.bootstrap_interval(
        lambda a, b: stats.iqm(b) - stats.iqm(a), baseline, candidate, resamples=20_000
    )
    assert difference.low < 1 < difference.high


def test_probability_of_improvement_counts_ties_half() -> None:
    assert float(stats.probability_of_improvement([1.0, 2.0], [2.0, 3.0])) == pytest.approx(3.5 / 4)
    assert float(stats.probability_of_improvement([1.0], [1.0])) == 0.5


def test_a_performance_profile_falls_from_one_to_zero() -> None:
    profile = stats.performance_profile([[0.0, 1.0], [2.0, 3.0]], [-1.0, 0.0, 1.5, 3.0])
    assert profile.tolist() == [1.0, 0.75, 0.5, 0.0]


@pytest.mark.parametrize(("effect", "seeds"), [(1.0, 13), (0.8, 20), (0.5, 50)])
def test_seeds_needed_is_twelve_and_a_half_over_the_squared_effect(effect: float, seeds: int) -> None:
    assert stats.seeds_needed(effect) == seeds
    assert stats.detectable_effect(seeds) <= effect


def test_no_number_of_seeds_detects_nothing() -> None:
    with pytest.raises(ValueError, match="shift of zero"):
        stats.seeds_needed(0.0)


@pytest.mark.parametrize(("below", "p"), [(3, 0.105), (4, 0.043), (5, 0.016)])
def test_the_tail_check_flags_failing_seeds_at_ten_against_ten(below: int, p: float) -> None:
    tail = stats.tail_check(np.arange(10), [-1.0] * below + [20.0] * (10 - below))
    assert (tail.below, round(tail.p, 3), tail.is_flagged) == (below, p, True)
    assert not stats.tail_check(np.arange(10), [-1.0, -2.0] + [20.0] * 8).is_flagged
    assert stats.tail_check([1.0, 2.0], [1.0, 3.0]) == stats.Tail(0, 1.0)


@pytest.mark.parametrize("scores", [[], [1.0, math.nan], [math.inf, 1.0]])
def test_scores_that_are_not_finite_or_absent_are_refused(scores: list[float]) -> None:
    with pytest.raises(ValueError, match="scores"):
        stats.permutation_p([1.0, 2.0], scores)
    with pytest.raises(ValueError, match="scores"):
        stats.iqm(scores)
