from __future__ import annotations

import numpy as np
import pytest

from rlx.diagnose.reward_review.ranking import auc, judge

WON = [True] * 4 + [False] * 4


def test_a_reward_that_ranks_successes_higher_passes() -> None:
    judged = judge([4, 5, 6, 7, 0, 1, 2, 3], [0] * 8, WON)
    assert judged is not None
    assert (judged.auc, judged.auc_before, judged.is_refused) == (1.0, 0.5, False)
    assert judged.findings() == ()


def test_a_reward_that_ranks_failures_higher_is_refused() -> None:
    judged = judge([0, 1, 2, 3, 4, 5, 6, 7], [1] * 8, WON)
    assert judged is not None
    assert judged.is_refused
    (found,) = judged.findings()
    assert found.rule == "reward_ranks_failures"
    assert found.evidence[0].limit == 0.6


def test_a_reward_that_cannot_tell_them_apart_is_refused() -> None:
    judged = judge([1] * 8, [1] * 8, WON)
    assert judged is not None
    assert judged.auc == 0.5
    assert judged.is_refused


def test_a_reward_that_is_not_finite_is_refused_whatever_it_ranks() -> None:
    judged = judge([4, 5, 6, 7, 0, 1, 2, 3], [0] * 8, WON, not_finite=2)
    assert judged is not None
    assert judged.is_refused
    assert judged.findings()[0].rule == "reward_not_finite"


@pytest.mark.parametrize("won", [[True] * 8, [False] * 8, [True] * 6 + [False] * 2, []])
def test_too_few_of_either_kind_are_not_judged(won: list[bool]) -> None:
    assert judge([0.0] * len(won), [0.0] * len(won), won) is None


def test_units_do_not_matter_and_ties_count_half() -> None:
    values, won = np.array([1.0, 2.0, 2.0, 0.0]), np.array([True, True, False, False])
    assert auc(values, won) == auc(1000 * values - 500, won) == 0.625
