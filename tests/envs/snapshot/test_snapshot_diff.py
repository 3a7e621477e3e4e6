from __future__ import annotations

import numpy as np
import pytest

from rlx.envs.snapshot.capture import capture, capture_value
from rlx.envs.snapshot.snapshot_diff import differences, same
from tests.envs.worlds import Ball, Nested, Walk


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        (float("nan"), float("nan"), True),
        (1, 1.0, False),
        (np.float32(1), np.float64(1), False),
        (np.array([np.nan]), np.array([np.nan]), True),
        (np.zeros(2), np.zeros(3), False),
        ([1, (2,)], [1, (2,)], True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
    ],
)
def test_sameness_is_to_the_bit(one: object, other: object, are_same: bool) -> None:
    assert same(one, other) is are_same


def test_equal_states_do_not_differ() -> None:
    env = Nested()
    env.reset(seed=1)
    assert differences(capture(env), capture(env)) == []


def test_a_difference_is_named_by_class_and_attribute() -> None:
    one, other = Walk(), Walk()
    one.reset(seed=1), other.reset(seed=1)
    other.position[1] += 1
    assert differences(capture(one), capture(other)) == ["Walk.position"]
    one.position = other.position
    one.ball, other.ball = Ball(1.0), Ball(2.0)  # type: ignore[attr-defined]
    assert differences(capture(one), capture(other)) == ["Ball.speed"]


def test_a_lost_alias_is_a_difference() -> None:
    shared = [1]
    assert differences(capture_value([shared, shared]), capture_value([[1], [1]])) != []
