from __future__ import annotations

import gymnasium

from rlx.envs.snapshot.value_kinds import walk
from tests.envs.worlds import Ball, Nested, Walk


def test_finds_every_object_once_through_attributes_containers_and_methods() -> None:
    env = Nested()
    env.reset(seed=0)
    found = list(walk(gymnasium.wrappers.TimeLimit(env, 3)))
    assert len({id(value) for value in found}) == len(found)
    assert env.balls[0] in [value for value in found if isinstance(value, Ball)]
    assert env.slotted in found


def test_follows_a_method_to_its_owner() -> None:
    env, ball = Walk(), Basket()
    env.callback = ball.bounce  # type: ignore[attr-defined]
    assert any(value is ball for value in walk(env))


class Basket:
    def bounce(self) -> None: ...
