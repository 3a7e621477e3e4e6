from __future__ import annotations

import collections
import contextlib
import datetime
import enum
import pathlib
import random
import socket
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rlx.envs.snapshot import Uncapturable
from rlx.envs.snapshot.capture import capture, capture_value
from tests.envs.worlds import Walk


class Tone(enum.IntFlag):
    LOW = 1
    HIGH = 2


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (3, 3),
        (2**100, 2**100),
        ((1, 2.5, "x", None, True, b"y"), (1, 2.5, "x", None, True, b"y")),
        (1 + 2j, ["complex", 1.0, 2.0]),
        (range(3), ["range", 0, 3, 1]),
        (frozenset({1}), ["frozenset", 1]),
        (Tone.HIGH, ["enum", f"{Tone.__module__}.Tone", "HIGH"]),
        (len, ["code", "len"]),
        (np.dtype("float32"), ["constant", "numpy.dtypes.Float32DType dtype('float32')"]),
        (pathlib.PurePosixPath("a"), ["path", "a"]),
        (datetime.date(2020, 1, 2), ["constant", "datetime.date datetime.date(2020, 1, 2)"]),
    ],
)
def test_plain_values_are_kept_as_they_are(value: Any, kept: Any) -> None:
    assert capture_value(value)["root"] == kept


def test_numpy_scalars_keep_their_type() -> None:
    assert type(capture_value(np.float32(1.5))["root"]) is np.float32


def test_one_object_under_two_names_is_one_node() -> None:
    shared = [1]
    state = capture_value([shared, shared])
    assert state["nodes"] == [["list", [["ref", 1], ["ref", 1]]], ["list", [1]]]


def test_cycles_end() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert capture_value(loop)["nodes"] == [["list", [["ref", 0]]]]


def test_arrays_of_records_are_refused() -> None:
    with pytest.raises(Uncapturable, match="records"):
        capture_value(np.zeros(2, dtype=[("a", int)]))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: (index for index in range(3)), "generator, whose position is hidden"),
        (lambda: iter([1]), "list_iterator of compiled code"),
        (lambda: threading.Thread(), "Thread, whose state is outside Python"),
        (lambda: contextlib.closing(socket.socket()), "socket, whose state is outside Python"),
        (lambda: memoryview(b"x"), "memoryview of compiled code"),
        (lambda: random.SystemRandom(), "draws from the operating system"),
    ],
    ids=["generator", "iterator", "thread", "socket", "memory", "system randomness"],
)
def test_what_cannot_be_kept_is_named_with_its_place(make: Callable[[], Any], why: str) -> None:
    value = make()
    env = Walk()
    with value if isinstance(value, contextlib.closing) else contextlib.nullcontext(value) as part:
        env.deep = {"parts": [0, part]}  # type: ignore[attr-defined]
        with pytest.raises(Uncapturable) as caught:
            capture(env)
    assert caught.value.path == "Walk.deep['parts'][1]"
    assert why in caught.value.message


def test_the_path_starts_at_the_innermost_environment() -> None:
    import gymnasium

    env = Walk()
    env.handle = iter([1])  # type: ignore[attr-defined]
    with pytest.raises(Uncapturable) as caught:
        capture(gymnasium.wrappers.TimeLimit(env, 3))
    assert caught.value.path == "Walk.handle"


def test_locks_loggers_and_surfaces_are_left_out() -> None:
    import logging

    import pygame

    env = Walk()
    env.lock, env.logger = threading.Lock(), logging.getLogger("x")  # type: ignore[attr-defined]
    env.screen = pygame.Surface((2, 2))  # type: ignore[attr-defined]
    state = capture(env)
    _, _, kept, skipped, _ = state["nodes"][0]
    assert set(skipped) == {"lock", "logger", "screen"}
    assert not set(skipped) & set(kept)


def test_pygame_rectangles_and_vectors_are_state() -> None:
    import pygame

    kept = capture_value([pygame.Rect(1, 2, 3, 4), pygame.Vector2(0.5, 1.5)])["nodes"]
    assert kept[1] == ["sequence", "pygame.rect.Rect", [1, 2, 3, 4]]
    assert kept[2] == ["sequence", "pygame.math.Vector2", [0.5, 1.5]]


def test_tensors_are_state_unless_they_are_learned() -> None:
    import torch

    assert capture_value(torch.ones(2))["nodes"][0][:2] == ["tensor", "torch.float32"]
    with pytest.raises(Uncapturable, match="learned"):
        capture_value(torch.ones(2, requires_grad=True))


def test_a_table_is_known_by_its_digest() -> None:
    pandas = pytest.importorskip("pandas")
    one, other = pandas.DataFrame({"a": [1, 2]}), pandas.DataFrame({"a": [1, 3]})
    assert capture_value(one)["root"][0] == "table"
    assert capture_value(one)["root"] == capture_value(one.copy())["root"] != capture_value(other)["root"]


def test_containers_of_every_kind_are_kept() -> None:
    values = [collections.deque([1], 3), collections.Counter("aa"), {1: 2}, {3}, bytearray(b"z")]
    assert capture_value(values)["nodes"][1:] == [
        ["deque", 3, [1]],
        ["dict", "Counter", None, [["a", 2]]],
        ["dict", "dict", None, [[1, 2]]],
        ["set", [3]],
        ["bytearray", b"z"],
    ]
