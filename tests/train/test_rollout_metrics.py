"""The figures of a metrics row, from literal arrays."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from rlx.train import rollout_metrics

NONE = np.empty((4, 0))


def test_episodes_give_mean_spread_and_the_share_that_was_cut() -> None:
    row = rollout_metrics.episodes([1.0, 3.0], [10, 20], [1.0, 0.0])
    assert row == {
        "rollout/return_mean": 2.0,
        "rollout/return_std": 1.0,
        "rollout/length_mean": 15.0,
        "rollout/truncated_share": 0.5,
    }
    assert rollout_metrics.episodes([], [], []) == {}


def test_observations_are_judged_column_by_column() -> None:
    numbers = np.array([[0.0, 7.0, 1.0], [-30.0, 7.0, 2.0], [0.0, 7.0, 1.0], [-30.0, 7.0, 2.0]], dtype=np.float32)
    assert rollout_metrics.observations(numbers, NONE) == {
        "obs/constant_share": pytest.approx(1 / 3),
        "obs/max_abs": 30.0,
        "obs/std_ratio": pytest.approx(30.0),
    }


def test_a_choice_is_one_input_that_changes_or_does_not() -> None:
    assert rollout_metrics.observations(NONE, np.array([[0, 2], [1, 2], [0, 2], [0, 2]])) == {"obs/constant_share": 0.5}


def test_bytes_and_nothing_are_judged_too() -> None:
    row = rollout_metrics.observations(np.array([[3], [200]], dtype=np.uint8), np.empty((2, 0)))
    assert row["obs/max_abs"] == 200.0
    assert rollout_metrics.observations(np.empty((0, 0)), np.empty((0, 0))) == {}


def test_many_observations_are_thinned_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout_metrics, "MOST_NUMBERS", 10)
    numbers = np.zeros((100, 1))
    numbers[1] = 5.0  # between two of the rows that are looked at
    assert rollout_metrics.observations(numbers, np.empty((100, 0)))["obs/max_abs"] == 0.0


def test_rewards_are_judged_by_size_spread_and_sparsity() -> None:
    assert rollout_metrics.rewards(np.array([0.0, 0.0, -4.0, 4.0])) == {
        "reward/mean_abs": 2.0,
        "reward/std": pytest.approx(math.sqrt(8)),
        "reward/max_abs": 4.0,
        "reward/nonzero_share": 0.5,
    }


def test_the_worst_component_of_a_discrete_action_counts() -> None:
    chosen = np.array([[0, 1], [1, 1], [0, 1], [1, 1]])
    assert rollout_metrics.choices(chosen, [2, 3]) == {"action/top_share": 1.0, "action/unused_share": 2 / 5}


def test_actions_near_a_bound_are_saturated_and_unbounded_ones_are_not_judged() -> None:
    low, high = np.array([-1.0, -np.inf]), np.array([1.0, np.inf])
    actions = np.array([[0.999, 5.0], [-3.0, 5.0], [0.5, 5.0], [0.0, 5.0]])
    assert rollout_metrics.box_actions(actions, low, high) == {"action/saturation": 0.5}
    assert rollout_metrics.box_actions(actions[:, 1:], low[1:], high[1:]) == {}


def test_entropy_is_a_share_of_what_the_open_actions_allow() -> None:
    assert rollout_metrics.entropy_share(math.log(2), [2, 2]) == {"train/entropy_share": pytest.approx(0.5)}
    masks = np.array([[True, True, False, False], [True, False, True, False]])
    assert rollout_metrics.entropy_share(math.log(2), [4], masks) == {"train/entropy_share": pytest.approx(1.0)}
    assert rollout_metrics.entropy_share(0.0, [1]) == {}


def test_the_norm_of_a_whole_gradient_is_joined_from_its_parts() -> None:
    assert rollout_metrics.joint_norm([[2.0, 4.0], [4.0], []]) == {"train/gradient_norm": 5.0}
    assert rollout_metrics.joint_norm([]) == {}


def test_the_clock_gives_the_share_since_it_was_last_asked() -> None:
    clock = rollout_metrics.EnvClock()
    share = rollout_metrics.EnvShare(clock)
    clock.seconds += 1e6
    assert share.read() == {"time/env_share": 1.0}
    time.sleep(0.001)
    assert share.read() == {"time/env_share": 0.0}
