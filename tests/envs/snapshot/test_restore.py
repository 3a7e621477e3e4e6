from __future__ import annotations

import datetime
import random
from collections import defaultdict, deque
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from rlx.envs.snapshot import Uncapturable
from rlx.envs.snapshot.capture import capture
from rlx.envs.snapshot.restore import restore
from tests.envs.worlds import Ball, Nested, Viewing, Walk, through_json

CONSTANT = np.arange(3.0)


class Holding(Walk):
    """Holds whatever it is given."""

    def __init__(self, **values: Any) -> None:
        super().__init__()
        vars(self).update(values)


class Neighbour(Ball):
    """A class that stands beside the environment's."""

    times_constructed = 0

    def __init__(self, speed: float) -> None:
        super().__init__(speed)
        type(self).times_constructed += 1


def moved(source: gymnasium.Env[Any, Any], target: gymnasium.Env[Any, Any]) -> Any:
    """Restore the state of one environment into another and return that."""
    restore(target, through_json(capture(source)))
    return target


@pytest.mark.parametrize(
    "value",
    [
        np.float32(0.1), np.int8(3), np.bool_(True), np.str_("x"), float("nan"), float("inf"), -0.0, 2**70, "é",
        b"\x00", 1 - 2j, range(2, 9, 3), (1, (2.0, [3])), {1: {"a": (None,)}, (2, "b"): 3}, {4, 5}, frozenset({6}),
        deque([1, 2], maxlen=2), defaultdict(list, {"k": [1]}), bytearray(b"ab"), np.array(5),
        np.arange(6, dtype=np.int16).reshape(2, 3), np.asfortranarray(np.eye(3)), np.array([["S", "F"]], dtype="c"),
        np.array(["a", "bc"]), np.zeros((0, 2)), np.array([1 + 2j]), np.array(["2020-01-01"], dtype="M8[D]"),
        np.array([[1], None], dtype=object), np.array([1.5, np.nan], dtype=">f4"),
    ],
    ids=repr,
)  # fmt: skip
def test_values_come_back_with_their_types(value: Any) -> None:
    found = moved(Holding(value=value), Holding(value=0)).value
    assert type(found) is type(value)
    assert repr(found) == repr(value)
    if isinstance(value, np.ndarray):
        assert found.dtype == value.dtype
        assert found.flags.f_contiguous == value.flags.f_contiguous


def test_attributes_that_are_gone_are_removed_and_new_ones_added() -> None:
    target = moved(Holding(added=[1]), Holding(stale=2))
    assert target.added == [1]
    assert not hasattr(target, "stale")


def test_two_names_for_one_array_stay_one_array() -> None:
    shared = np.zeros(2)
    target = moved(Holding(one=shared, other=shared), Holding(one=np.zeros(2), other=np.zeros(2)))
    assert target.one is target.other


def test_two_arrays_do_not_become_one_where_the_fresh_environment_has_one() -> None:
    shared = np.zeros(2)
    target = moved(Holding(one=np.ones(2), other=np.zeros(2)), Holding(one=shared, other=shared))
    assert target.one.tolist() == [1.0, 1.0]
    assert target.other.tolist() == [0.0, 0.0]


def test_a_constant_that_the_fresh_environment_refers_to_is_not_written() -> None:
    moved(Holding(grid=CONSTANT + 1), Holding(grid=CONSTANT))
    assert CONSTANT.tolist() == [0.0, 1.0, 2.0]


def test_views_follow_the_array_they_look_at() -> None:
    source = Viewing()
    source.reset(seed=0)
    target = moved(source, Viewing())
    target.grid[1, 2] = 9.0
    assert target.row[2] == 9.0
    flipped = np.arange(6.0)
    target = moved(Holding(a=flipped, b=flipped[::-2]), Holding(a=0, b=0))
    target.a[5] = -1.0
    assert target.b.tolist() == [-1.0, 3.0, 1.0]


def test_memory_of_others_is_written_in_place() -> None:
    buffer = bytearray(16)
    foreign = np.frombuffer(buffer, dtype=np.float64)
    moved(Holding(a=np.array([1.0, 2.0])), Holding(a=foreign))
    assert foreign.tolist() == [1.0, 2.0]


def test_a_read_only_array_stays_read_only() -> None:
    fixed = np.ones(2)
    fixed.flags.writeable = False
    assert not moved(Holding(a=fixed), Holding(a=None)).a.flags.writeable


def test_generators_continue_in_place_and_keep_being_shared() -> None:
    shared = np.random.default_rng(1)
    source = Holding(one=shared, other=shared, bits=np.random.Generator(shared.bit_generator))
    live = np.random.default_rng(2)
    target = moved(source, Holding(one=live, other=live, bits=np.random.default_rng(3)))
    assert target.one is target.other is live
    assert target.bits.bit_generator is live.bit_generator
    assert [target.one.random(), target.bits.random()] == [source.one.random(), source.bits.random()]


@pytest.mark.parametrize("bits", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_every_generator_of_numpy_continues(bits: str) -> None:
    rng = np.random.Generator(getattr(np.random, bits)(5))
    rng.normal(size=3)
    target = moved(Holding(rng=rng), Holding(rng=None))
    assert target.rng.normal() == rng.normal()


def test_pythons_and_the_legacy_generator_continue() -> None:
    one, other = random.Random(1), np.random.RandomState(2)
    one.gauss(0, 1), other.normal()
    target = moved(Holding(one=one, other=other), Holding(one=random.Random(), other=None))
    assert target.one.gauss(0, 1) == one.gauss(0, 1)
    assert target.other.normal() == other.normal()


def test_spawned_generators_continue_to_spawn() -> None:
    rng = np.random.default_rng(9)
    rng.spawn(3)
    target = moved(Holding(rng=rng), Holding(rng=np.random.default_rng(9)))
    assert target.rng.spawn(1)[0].random() == rng.spawn(1)[0].random()


def test_objects_are_changed_in_place() -> None:
    ball = Ball(0.0)
    target = moved(Holding(ball=Ball(3.0)), Holding(ball=ball))
    assert target.ball is ball
    assert ball.speed == 3.0


def test_objects_made_in_reset_are_found_by_resetting_once() -> None:
    source = Nested()
    source.reset(seed=1)
    for _ in range(7):
        source.step(1)
    target = moved(source, Nested())
    assert [ball.speed for ball in target.balls] == [ball.speed for ball in source.balls]
    assert target.alias is target.balls[0]
    assert target.action.__func__ is source.action.__func__  # type: ignore[attr-defined]
    assert target.slotted.parent is target
    assert type(target.basket) is type(source.basket)


def test_objects_that_only_steps_make_are_made_from_classes_beside_the_environments() -> None:
    target = moved(Holding(ball=Neighbour(1.0)), Holding(ball=None))
    assert type(target.ball) is Neighbour
    assert target.ball.speed == 1.0
    assert Neighbour.times_constructed == 1


def test_other_classes_are_never_looked_up_by_a_name_from_the_data() -> None:
    state = capture(Holding(ball=Neighbour(1.0)))
    next(node for node in state["nodes"] if node[0] == "object" and "Neighbour" in node[1])[1] = "subprocess.Popen"
    with pytest.raises(Uncapturable, match="has none to make one from"):
        restore(Holding(ball=None), state)


def test_nothing_is_written_where_something_does_not_fit() -> None:
    source, target = Holding(a=[1], f=len), Holding(a=[2], f=None)
    with pytest.raises(Uncapturable):
        restore(target, capture(source))
    assert target.a == [2]  # type: ignore[attr-defined]


def test_another_environment_is_refused() -> None:
    with pytest.raises(Uncapturable):
        restore(Viewing(), capture(Walk()))
    with pytest.raises(Uncapturable):
        restore(Walk(), capture(gymnasium.wrappers.TimeLimit(Walk(), 3)))


@pytest.mark.parametrize("node", [["node", 0], ["_init__"], ["refuse", "x"]])
def test_unknown_tags_are_refused(node: list[Any]) -> None:
    state = capture(Holding(a=1))
    state["nodes"][0][2]["a"] = node
    with pytest.raises(Uncapturable, match="unknown kind"):
        restore(Holding(a=1), state)


def test_a_state_of_another_format_is_refused() -> None:
    with pytest.raises(Uncapturable, match="format"):
        restore(Walk(), {**capture(Walk()), "format": 99})


def test_a_view_that_reaches_outside_is_refused() -> None:
    whole = np.zeros(4)
    state = capture(Holding(a=whole, b=whole[1:]))
    view = next(node for node in state["nodes"] if node[0] == "view")
    view[3] = 10**9
    with pytest.raises(Uncapturable, match="does not fit"):
        restore(Holding(a=0, b=0), state)


def test_functions_and_constants_must_be_the_same() -> None:
    with pytest.raises(Uncapturable, match="function or class"):
        moved(Holding(f=len), Holding(f=max))
    with pytest.raises(Uncapturable, match="another"):
        moved(Holding(d=datetime.date(2020, 1, 1)), Holding(d=datetime.date(2020, 1, 2)))
    one = datetime.date(2020, 1, 1)
    assert moved(Holding(f=len, d=one), Holding(f=len, d=one)).d is one


def test_a_path_stays_the_fresh_environments() -> None:
    assert moved(Holding(p=Path("/old/place")), Holding(p=Path("/new/place"))).p == Path("/new/place")


def test_tensors_come_back() -> None:
    import torch

    generator = torch.Generator().manual_seed(4)
    torch.rand(2, generator=generator)
    source = Holding(weights=torch.arange(3.0), generator=generator)
    target = moved(source, Holding(weights=None, generator=torch.Generator()))
    assert torch.equal(target.weights, torch.arange(3.0))
    assert torch.rand(1, generator=target.generator) == torch.rand(1, generator=generator)
