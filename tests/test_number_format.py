"""Numbers read as people write them."""

from __future__ import annotations

import math

import pytest

from rlx.number_format import counted, deviation


@pytest.mark.parametrize(("count", "spelled"), [(0, "0 seeds"), (1, "1 seed"), (2, "2 seeds"), (12000, "12,000 seeds")])
def test_how_many_of_something(count: int, spelled: str) -> None:
    assert counted(count, "seed") == spelled


@pytest.mark.parametrize("score", [0.6, 0.45, -1e9, 0.0])
def test_numbers_that_differ_by_rounding_have_no_spread(score: float) -> None:
    assert deviation([score] * 10) == 0
    assert deviation([score, score * (1 + 2e-16)] * 5) == 0


def test_the_spread_is_that_of_a_sample() -> None:
    assert deviation([1.0, 2.0, 3.0, 4.0]) == pytest.approx(1.2909944487)
    assert deviation([1e200, -1e200]) == pytest.approx(2**0.5 * 1e200)
    assert math.isnan(deviation([1.0, math.nan, 1.0]))
