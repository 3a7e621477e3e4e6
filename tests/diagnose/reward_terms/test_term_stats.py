from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rlx.diagnose.reward_terms.proxy_divergence import points
from rlx.diagnose.reward_terms.term_stats import (
    RewardHack,
    SeedTerms,
    correlation,
    find_hack,
    is_flat,
    is_saturated,
    mean_shares,
    task_correlation,
)
from rlx.runs.metrics import Series

STEPS = np.arange(1, 21) * 500.0
X = STEPS / 10_000


def series(values: Any) -> Series:
    return Series(STEPS, np.asarray(values, dtype=np.float64))


def noisy(values: Any, size: float = 0.02, seed: int = 0) -> np.ndarray:
    return np.asarray(values) + np.random.default_rng(seed).normal(scale=size, size=len(values))


def terms(task: Any = None, *, returns: Any = None, **per_episode: Any) -> SeedTerms:
    """Return a seed's terms in episodes of ten steps."""
    paid = {name: series(values) for name, values in per_episode.items()}
    total = sum(one.values for one in paid.values()) if returns is None else returns
    per_step = {name: series(one.values / 10) for name, one in paid.items()}
    size = {name: series(np.abs(one.values) / 10) for name, one in paid.items()}
    return SeedTerms(0, per_step, size, paid, series(total), None if task is None else series(task))


RISE_AND_FALL = np.where(X < 0.3, 2.5 * X, np.clip(0.75 - 2 * (X - 0.3), 0, 1))


def test_a_series_is_told_in_ten_means() -> None:
    assert points(series(np.arange(20.0)), 10_000).tolist() == [0.5 + 2 * index for index in range(10)]


def test_a_gap_between_two_points_is_interpolated_and_nothing_is_made_up_at_the_ends() -> None:
    sparse = Series(np.array([2_500.0, 4_500.0]), np.array([1.0, 3.0]))
    found = points(sparse, 10_000)
    assert found[2:5].tolist() == [1.0, 2.0, 3.0]
    assert np.isnan(found[[0, 1, 5, 9]]).all()


def test_values_that_are_not_finite_do_not_spoil_a_mean() -> None:
    values = np.full(20, 2.0)
    values[3] = np.nan
    assert points(series(values), 10_000).tolist() == [2.0] * 10


def test_flat_is_what_never_varies() -> None:
    assert is_flat(np.full(10, 3.0), np.zeros(10))
    assert not is_flat(np.full(10, 3.0), np.arange(10.0))
    assert not is_flat(np.full(10, np.nan))


def test_saturated_is_what_stays_at_its_bound() -> None:
    assert is_saturated(np.array([0, 0.2, 0.5, 0.8, 0.9, 1, 1, 1, 1, 1.0]))
    assert is_saturated(np.array([0, -2, -5, -8, -9, -10, -10, -10, -10, -10.0]))
    assert not is_saturated(np.array([0, 0.2, 0.5, 0.8, 0.9, 0.5, 0.5, 0.5, 0.5, 0.5]))
    assert not is_saturated(np.arange(10.0))
    assert not is_saturated(np.full(10, 1.0))


def test_correlation_is_of_ranks_and_unknown_for_constants() -> None:
    assert correlation(np.arange(10.0), np.arange(10.0) ** 3) == pytest.approx(1.0)
    assert correlation(np.arange(10.0), -np.exp(np.arange(10.0))) == pytest.approx(-1.0)
    assert correlation(np.arange(10.0), np.full(10, 2.0)) is None
    assert correlation(np.arange(3.0), np.arange(3.0)) is None


def test_shares_are_of_the_summed_size() -> None:
    assert mean_shares([terms(a=np.full(20, -3.0), b=np.full(20, 1.0))]) == pytest.approx({"a": 0.75, "b": 0.25})
    assert mean_shares([terms(a=np.zeros(20), b=np.zeros(20))]) == {"a": 0.0, "b": 0.0}
    assert mean_shares([terms(a=np.ones(20))]) == {}


def test_hacking_names_the_term_and_the_moment() -> None:
    found = find_hack(terms(noisy(RISE_AND_FALL), coin=noisy(10 * X), goal=RISE_AND_FALL), "success_rate")
    assert isinstance(found, RewardHack)
    assert (found.term, found.divergence.is_fall) == ("coin", True)
    assert 3_000 <= found.divergence.step <= 4_000


@pytest.mark.parametrize(("scale", "shift"), [(1000.0, 0.0), (0.001, 0.0), (1.0, -500.0), (1000.0, 500.0)])
def test_units_of_the_reward_change_nothing(scale: float, shift: float) -> None:
    coin, goal = noisy(10 * X), RISE_AND_FALL
    plain = find_hack(terms(noisy(RISE_AND_FALL), coin=coin, goal=goal), "success_rate")
    moved = find_hack(terms(noisy(RISE_AND_FALL), coin=scale * coin + shift, goal=scale * goal), "success_rate")
    assert plain is not None
    assert moved is not None
    assert plain.divergence.step == moved.divergence.step
    assert moved.term == ("coin" if shift >= 0 else "")  # a penalty that shrinks is not farmed
    assert find_hack(terms(X, coin=scale * coin + shift, goal=scale * goal), "success_rate") is None


def test_units_of_an_evaluation_return_change_nothing() -> None:
    for scale, shift in ((1.0, 0.0), (1000.0, -500.0)):
        found = find_hack(terms(scale * noisy(RISE_AND_FALL) + shift, coin=noisy(10 * X)), "evaluation return")
        assert found is not None
        assert found.divergence.is_fall


def test_a_metric_that_stays_low_while_the_return_rises_is_flat_hacking() -> None:
    found = find_hack(terms(np.zeros(20), coin=noisy(10 * X), goal=np.zeros(20)), "success_rate")
    assert found is not None
    assert (found.term, found.divergence.is_fall, found.divergence.step) == ("coin", False, 0)


@pytest.mark.parametrize(
    ("task", "returns"),
    [
        pytest.param(noisy(X), noisy(10 * X), id="both rise"),
        pytest.param(np.clip(X * 4, 0, 1), noisy(10 * X), id="solved early"),
        pytest.param(np.clip((X - 0.7) * 3, 0, 1), noisy(10 * X), id="success comes late"),
        pytest.param(RISE_AND_FALL, noisy(10 * RISE_AND_FALL), id="both collapse"),
        pytest.param(noisy(np.full(20, 0.5), 0.1), noisy(np.full(20, 3.0), 1.0), id="nothing but noise"),
        pytest.param(np.full(20, 0.95), noisy(10 * X), id="solved from the start"),
    ],
)
def test_no_hacking_where_the_task_does_not_suffer_for_the_return(task: Any, returns: Any) -> None:
    assert find_hack(terms(task, returns=returns, coin=returns), "success_rate") is None


def test_a_penalty_that_shrinks_in_a_collapse_is_not_farmed() -> None:
    control = -5 * RISE_AND_FALL
    found = find_hack(terms(RISE_AND_FALL, control=control, forward=10 * RISE_AND_FALL), "success_rate")
    assert found is None


def test_nothing_is_judged_from_too_little() -> None:
    short = SeedTerms(0, {}, {}, {}, Series(STEPS[:3], X[:3]), Series(STEPS[:3], -X[:3]))
    assert find_hack(short, "success_rate") is None
    assert find_hack(terms(None, coin=X), "success_rate") is None
    assert task_correlation(terms(None, coin=X), "coin", "success_rate") is None
