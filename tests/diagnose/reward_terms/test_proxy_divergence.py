from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rlx.diagnose.reward_terms.proxy_divergence import divergence, level_error
from rlx.runs.metrics import Series

X = np.linspace(0.05, 1, 20)
RANDOM = np.random.default_rng(1)


def series(values: Any, steps: Any = X * 10_000) -> Series:
    return Series(np.asarray(steps, dtype=np.float64), np.asarray(values, dtype=np.float64))


def test_a_fall_beside_a_rise_has_its_moment_and_levels() -> None:
    found = divergence(series(100 * X), series(np.where(X < 0.5, 0.8, 0.1)), "success_rate")
    assert found is not None
    assert found.is_fall
    assert 4_000 <= found.step <= 6_000
    assert found.task == pytest.approx((0.8, 0.1), abs=0.01)
    assert found.returns[1] > found.returns[0]
    assert found.last_step == 10_000


def test_curves_may_have_steps_of_their_own() -> None:
    sparse = series([0.6, 0.7, 0.5, 0.3, 0.1, 0.0], [0, 2_000, 4_000, 6_000, 8_000, 10_000])
    assert divergence(series(X), sparse, "success_rate") is not None


def test_a_rate_that_stands_still_at_half_is_flat_only_while_the_return_rises() -> None:
    rate = np.minimum(0.5, X * 2)
    assert divergence(series(np.minimum(0.5, X * 2)), series(rate), "success_rate") is None
    found = divergence(series(X), series(rate), "success_rate")
    assert found is not None
    assert not found.is_fall


def test_a_return_of_which_nobody_knows_the_top_may_stand_still() -> None:
    assert divergence(series(X), series(np.minimum(50, X * 200)), "evaluation return") is None


def test_noise_alone_is_rarely_called_a_divergence() -> None:
    alarms = 0
    for _ in range(300):
        rate = RANDOM.binomial(10, 0.5, size=20) / 10
        alarms += divergence(series(RANDOM.normal(size=20)), series(rate), "success_rate") is not None
    assert alarms <= 6


def test_the_error_of_a_level_is_that_of_noise_not_of_a_jump() -> None:
    jump = series(np.where(X < 0.5, 0.0, 10.0))
    assert level_error(jump, 10) == 0.0
    assert level_error(series(RANDOM.normal(size=20)), 10) == pytest.approx(0.8, abs=0.4)


def test_too_little_is_not_judged() -> None:
    assert divergence(series([], []), series([], []), "success_rate") is None
    assert divergence(series(X), series(np.full(20, np.nan)), "success_rate") is None
