"""Planning checked against closed forms and published figures."""

from __future__ import annotations

import pytest

from rlx.compare import power


@pytest.mark.parametrize(("effect", "seeds"), [(1.0, 13), (0.8, 20), (0.5, 50)])
def test_seeds_needed_is_twelve_and_a_half_over_the_squared_effect(effect: float, seeds: int) -> None:
    assert power.seeds_needed(effect) == seeds
    assert power.detectable_effect(seeds) <= effect


def test_no_number_of_seeds_detects_nothing() -> None:
    with pytest.raises(ValueError, match="shift of zero"):
        power.seeds_needed(0.0)


@pytest.mark.parametrize(("share", "seeds"), [(0.5, 5), (0.3, 9), (0.25, 11), (0.2, 14), (0.1, 29)])
def test_so_many_failure_free_seeds_bound_the_share_that_fails(share: float, seeds: int) -> None:
    assert power.failure_bound(0, seeds) <= share < power.failure_bound(0, seeds - 1)
    assert power.failure_bound(0, seeds) == pytest.approx(1 - 0.05 ** (1 / seeds), abs=1e-9)


def test_some_failures_allow_more_and_all_of_them_everything() -> None:
    assert power.failure_bound(2, 10) == pytest.approx(0.5069, abs=1e-4)
    assert power.failure_bound(10, 10) == 1.0
    with pytest.raises(ValueError, match="3 failures of 2 runs"):
        power.failure_bound(3, 2)
