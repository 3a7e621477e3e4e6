"""Permutation tests checked against enumerations and published figures."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlx.compare import permutation


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
            p = permutation.permutation_p(baseline, candidate, alternative=alternative)  # type: ignore[arg-type]
            assert float(p) == pytest.approx(enumerate_p(baseline, candidate, alternative=alternative), abs=1e-12)


def test_two_sided_is_twice_the_smaller_side() -> None:
    baseline, candidate = [1.0, 2.0, 3.0, 4.0], [4.0, 5.0, 6.0, 9.0]
    greater = float(permutation.permutation_p(baseline, candidate, alternative="greater"))
    assert float(permutation.permutation_p(baseline, candidate)) == pytest.approx(2 * greater)
    assert float(permutation.permutation_p(candidate, candidate)) == 1.0


@pytest.mark.parametrize(
    ("n", "m", "smallest"),
    [(10, 1, 1 / 11), (10, 2, 1 / 66), (10, 3, 1 / 286), (3, 3, 0.05), (4, 4, 1 / 70), (5, 5, 1 / 252)],
)
def test_the_smallest_possible_p_is_one_split_of_all(n: int, m: int, smallest: float) -> None:
    p = permutation.permutation_p(np.arange(n), np.arange(m) + 100, alternative="greater")
    assert float(p) == pytest.approx(smallest)


def test_monte_carlo_agrees_with_the_enumeration_and_depends_only_on_its_seed() -> None:
    generator = np.random.default_rng(5)
    baseline, candidate = generator.normal(0, 1, 9), generator.normal(0.6, 1, 9)
    exact = float(permutation.permutation_p(baseline, candidate, alternative="greater"))
    sampled = [
        float(permutation.permutation_p(baseline, candidate, alternative="greater", exact_splits=0, seed=s))
        for s in (1, 1, 2)
    ]
    assert sampled[0] == sampled[1]
    assert sampled[0] != sampled[2]
    assert sampled[0] == pytest.approx(exact, abs=0.01)


def test_ten_against_ten_is_enumerated_and_eleven_is_sampled() -> None:
    generator = np.random.default_rng(0)
    ten, eleven = generator.normal(size=(2, 10)), generator.normal(size=(2, 11))
    assert float(permutation.permutation_p(*ten, seed=1)) == float(permutation.permutation_p(*ten, seed=2))
    assert float(permutation.permutation_p(*eleven, seed=1)) != float(permutation.permutation_p(*eleven, seed=2))


@pytest.mark.parametrize(("scale", "shift"), [(1000.0, 0.0), (1.0, -500.0), (1e-6, 0.0), (-0.0 + 3.0, 1e6)])
def test_scaling_and_shifting_returns_changes_no_p_even_with_ties(scale: float, shift: float) -> None:
    generator = np.random.default_rng(3)
    baseline, candidate = generator.integers(0, 6, (2, 50, 7)) / 10
    moved = permutation.permutation_p(baseline * scale + shift, candidate * scale + shift)
    assert moved == pytest.approx(permutation.permutation_p(baseline, candidate), abs=0)


def test_many_data_sets_at_once_give_what_each_gives_alone() -> None:
    generator = np.random.default_rng(1)
    baseline, candidate = generator.normal(size=(6, 8)), generator.normal(size=(6, 5))
    for exact_splits in (0, 200_000):
        together = permutation.permutation_p(baseline, candidate, exact_splits=exact_splits, resamples=499)
        alone = [
            float(permutation.permutation_p(a, b, exact_splits=exact_splits, resamples=499))
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
    p = permutation.permutation_p(
        draw((20_000, 10)), draw((20_000, 10)), exact_splits=0, resamples=999, alternative="greater"
    )
    assert np.mean(p <= 0.05) <= 0.055


def test_power_at_ten_a_side_is_what_the_evidence_page_measured() -> None:
    generator = np.random.default_rng(12)
    for effect, power in ((1.0, 0.70), (1.5, 0.945)):
        baseline, candidate = generator.normal(size=(4000, 10)), generator.normal(effect, 1, (4000, 10))
        p = permutation.permutation_p(baseline, candidate, exact_splits=0, resamples=1999, alternative="greater")
        assert np.mean(p <= 0.05) == pytest.approx(power, abs=0.03)


def test_the_permutation_interval_excludes_zero_exactly_where_the_test_rejects() -> None:
    generator = np.random.default_rng(2)
    decided = 0
    for _ in range(100):
        baseline, candidate = generator.normal(0, 1, 6), generator.normal(0.9, 1, 7)
        interval = permutation.permutation_interval(baseline, candidate, below=0.04, above=0.01)
        rejects_above = float(permutation.permutation_p(baseline, candidate, alternative="greater")) <= 0.04
        rejects_below = float(permutation.permutation_p(baseline, candidate, alternative="less")) <= 0.01
        assert (interval.low > 0, interval.high < 0) == (rejects_above, rejects_below)
        decided += rejects_above
    assert 10 < decided < 90


def test_the_permutation_interval_covers_the_true_shift_as_often_as_it_says() -> None:
    generator = np.random.default_rng(4)
    covered = 0
    for _ in range(1500):
        baseline, candidate = generator.gamma(2, 1, 6), generator.gamma(2, 1, 6) + 3
        interval = permutation.permutation_interval(baseline, candidate, below=0.05, above=0.05)
        covered += interval.low <= 3 <= interval.high
    assert 0.875 <= covered / 1500 <= 0.935


def test_the_interval_is_unbounded_where_there_are_too_few_runs() -> None:
    few = permutation.permutation_interval([1.0, 2.0], [3.0, 5.0], below=0.05, above=0.05)
    assert (few.low, few.high) == (-math.inf, math.inf)
    three = permutation.permutation_interval([1.0, 2.0, 3.0], [3.0, 5.0, 7.0], below=0.05, above=0.05)
    assert (three.low, three.high) == (0.0, 6.0)


def enumerate_over_tasks(baseline: np.ndarray, candidate: np.ndarray) -> float:
    """The within-task test as the textbook says it: every joint split, one at a time."""
    pooled = np.concatenate([baseline, candidate])
    pooled = pooled / pooled.std(axis=0)
    size, splits = len(candidate), list(combinations(range(len(pooled)), len(candidate)))
    observed = pooled[-size:].sum()
    sums = [
        sum(pooled[list(chosen), task].sum() for task, chosen in enumerate(joint))
        for joint in product(splits, repeat=pooled.shape[1])
    ]
    return float(np.mean(np.array(sums) >= observed - 1e-9))


@pytest.mark.parametrize(("n", "m", "tasks"), [(3, 3, 1), (3, 3, 2), (2, 3, 3), (2, 2, 4)])
def test_the_test_over_tasks_equals_a_brute_force_enumeration(n: int, m: int, tasks: int) -> None:
    generator = np.random.default_rng(n * 100 + m * 10 + tasks)
    baseline, candidate = generator.normal(0, 1, (n, tasks)), generator.normal(0.8, 1, (m, tasks))
    p = permutation.permutation_p_over_tasks(baseline, candidate, alternative="greater")
    assert p == pytest.approx(enumerate_over_tasks(baseline, candidate), abs=1e-12)


def test_one_task_is_the_plain_test() -> None:
    generator = np.random.default_rng(8)
    baseline, candidate = generator.normal(0, 1, 6), generator.normal(1, 1, 5)
    for alternative in ("greater", "less", "two-sided"):
        plain = permutation.permutation_p(baseline, candidate, alternative=alternative)  # type: ignore[arg-type]
        over = permutation.permutation_p_over_tasks(
            baseline[:, None],
            candidate[:, None],
            alternative=alternative,  # type: ignore[arg-type]
        )
        assert over == pytest.approx(float(plain), abs=1e-12)


def test_random_splits_over_tasks_agree_with_all_of_them() -> None:
    generator = np.random.default_rng(9)
    baseline, candidate = generator.normal(0, 1, (4, 3)), generator.normal(0.5, 1, (4, 3))
    exact = permutation.permutation_p_over_tasks(baseline, candidate)
    sampled = permutation.permutation_p_over_tasks(baseline, candidate, exact_splits=0)
    assert sampled == pytest.approx(exact, abs=0.012)


def test_four_tasks_of_five_runs_are_enumerated() -> None:
    generator = np.random.default_rng(10)
    baseline, candidate = generator.normal(0, 1, (5, 4)), generator.normal(0.6, 1, (5, 4))
    first = permutation.permutation_p_over_tasks(baseline, candidate, seed=1)
    assert first == permutation.permutation_p_over_tasks(baseline, candidate, seed=2)


def test_a_task_in_other_units_or_without_any_spread_changes_nothing() -> None:
    generator = np.random.default_rng(11)
    baseline, candidate = generator.normal(0, 1, (4, 2)), generator.normal(0.5, 1, (4, 2))
    p = permutation.permutation_p_over_tasks(baseline, candidate)
    scale, shift = np.array([1000.0, 0.01]), np.array([-500.0, 3.0])
    assert permutation.permutation_p_over_tasks(baseline * scale + shift, candidate * scale + shift) == p
    constant = np.full((4, 1), 7.0)
    wider = [np.hstack([side, constant]) for side in (baseline, candidate)]
    assert permutation.permutation_p_over_tasks(*wider) == pytest.approx(p, abs=1e-12)


def test_tasks_that_do_not_match_are_refused() -> None:
    with pytest.raises(ValueError, match="same tasks"):
        permutation.permutation_p_over_tasks(np.zeros((3, 2)), np.zeros((3, 4)))


def test_equal_learners_over_tasks_are_told_apart_no_more_often_than_the_level_says() -> None:
    generator = np.random.default_rng(12)
    p = [
        permutation.permutation_p_over_tasks(*generator.lognormal(size=(2, 3, 3)), alternative="greater")
        for _ in range(2000)
    ]
    assert np.mean(np.array(p) <= 0.05) <= 0.065


scores = st.lists(st.integers(-50, 50).map(float), min_size=1, max_size=6)


@settings(deadline=None, max_examples=150)
@given(scores, scores, st.sampled_from([0.001, 0.1, 3.0, 1000.0]), st.sampled_from([-500.0, 0.0, 77.7]))
def test_p_does_not_depend_on_units_or_order_and_both_tails_cover_everything(
    baseline: list[float], candidate: list[float], scale: float, shift: float
) -> None:
    above, below = permutation.permutation_tails(baseline, candidate)
    moved = permutation.permutation_tails(
        np.array(baseline[::-1]) * scale + shift, np.array(candidate[::-1]) * scale + shift
    )
    assert (float(above), float(below)) == (float(moved[0]), float(moved[1]))
    swapped = permutation.permutation_tails(candidate, baseline)
    assert float(above) == pytest.approx(float(swapped[1]), abs=1e-12)
    assert float(above + below) >= 1.0


@pytest.mark.parametrize("bad", [[], [1.0, math.nan], [math.inf, 1.0]])
def test_scores_that_are_not_finite_or_absent_are_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="scores"):
        permutation.permutation_p([1.0, 2.0], bad)
