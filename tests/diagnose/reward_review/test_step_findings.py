from __future__ import annotations

from typing import Any

import numpy as np

from rlx.diagnose.reward_review.step_findings import PlayedEpisode, review_steps

RANDOM = np.random.default_rng(0)


def played(rewards: Any, success: bool | None = None, **terms: Any) -> PlayedEpisode:
    return PlayedEpisode(
        np.asarray(rewards, dtype=np.float64), {name: np.asarray(term) for name, term in terms.items()}, success
    )


def rules(*episodes: PlayedEpisode) -> list[str]:
    return [one.rule for one in review_steps(episodes, who="the random policy")]


def test_a_plain_reward_has_no_finding() -> None:
    assert rules(*[played(RANDOM.normal(size=50)) for _ in range(5)]) == []


def test_an_undiscovered_goal_is_sparse() -> None:
    assert rules(*[played(np.zeros(50))] * 3) == ["reward_sparse"]
    assert rules(*[played(np.full(50, -1.0))] * 3) == ["reward_sparse"]
    assert rules(played(np.ones(20)), played(np.ones(31))) == []


def test_sizes_far_from_one_are_out_of_scale() -> None:
    assert rules(*[played(100 * RANDOM.normal(size=50)) for _ in range(3)]) == ["reward_scale"]
    assert rules(*[played(0.001 * RANDOM.normal(size=50)) for _ in range(3)]) == ["reward_scale"]


def test_a_single_step_that_outweighs_all_is_unbounded() -> None:
    spike = np.full(400, 0.5)
    spike[7] = 1000.0
    assert rules(played(spike), played(np.full(300, 0.5))) == ["reward_unbounded"]


def test_nothing_else_is_said_about_a_reward_that_is_not_finite() -> None:
    assert rules(played([1.0, np.nan]), played([np.inf])) == ["reward_not_finite"]


def test_terms_must_add_up_and_be_paid() -> None:
    ones = np.ones(20)
    assert rules(played(ones, a=ones, b=0 * ones), played(np.ones(21), a=np.ones(21), b=np.zeros(21))) == ["term_zero"]
    assert rules(played(ones, a=0.5 * ones), played(np.ones(21), a=0.5 * np.ones(21))) == ["terms_incomplete"]


def test_failures_that_earn_more_are_found() -> None:
    winners = [played(np.ones(5 + n), success=True) for n in range(4)]
    losers = [played(np.ones(50 + n), success=False) for n in range(4)]
    assert rules(*winners, *losers) == ["reward_ranks_failures"]
    assert rules(*winners, *losers[:2]) == []


def test_a_price_for_how_an_episode_ends_is_no_spike() -> None:
    fall = np.full(400, 0.05)
    fall[-1] = -100.0
    assert rules(played(fall), played(np.full(300, 0.05))) == []
