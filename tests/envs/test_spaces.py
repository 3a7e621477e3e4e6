"""Spaces survive the way through JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rlx import files
from rlx.envs.spaces import build, describe
from rlx.errors import CheckpointInvalid

BOXES = [
    spaces.Box(-1, 1, (3,), np.float32),
    spaces.Box(-np.inf, np.inf, (2, 2), np.float64),
    spaces.Box(np.array([-1, 0.1], np.float32), np.array([np.inf, 0.3], np.float32)),
    spaces.Box(0, 255, (84, 84, 3), np.uint8),
    spaces.Box(-(2**40), 2**40, (1,), np.int64),
    spaces.Box(0, 1, (), np.float32),
    spaces.Box(0, 1, (0,), np.float32),
]
OTHERS: list[Any] = [
    spaces.Discrete(4),
    spaces.Discrete(3, start=-1),
    spaces.MultiDiscrete([2, 3]),
    spaces.MultiDiscrete(np.array([[2, 3], [4, 5]])),
    spaces.MultiDiscrete([2, 3], start=[1, 0]),
    spaces.MultiBinary(5),
    spaces.MultiBinary([2, 3]),
]
NESTED = [
    spaces.Dict({"z": BOXES[0], "a": spaces.Discrete(2)}),
    spaces.Tuple([spaces.Discrete(2), spaces.Dict({"x": BOXES[3]})]),
]


@pytest.mark.parametrize("space", [*BOXES, *OTHERS, *NESTED], ids=str)
def test_a_space_comes_back_as_it_was(space: Any) -> None:
    document = files.decode(files.encode(describe(space)))
    built = build(document)
    assert built == space
    assert built.dtype == space.dtype
    if isinstance(space, spaces.Dict):
        assert list(built.spaces) == list(space.spaces)  # type: ignore[attr-defined]


def test_the_description_of_an_image_is_short() -> None:
    assert len(files.encode(describe(BOXES[3]))) < 100


def test_a_space_nobody_can_describe_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot describe"):
        describe(spaces.Text(5))


@pytest.mark.parametrize(
    "document",
    [None, {}, {"kind": "object"}, {"kind": "box", "low": 0}, {"kind": "discrete", "n": 0, "start": 0, "dtype": "O"}],
    ids=str,
)
def test_a_description_nobody_wrote_is_refused(document: Any) -> None:
    with pytest.raises(CheckpointInvalid, match="unknown space"):
        build(document)


def test_the_parts_of_a_dict_stay_in_their_order_because_networks_read_them_in_it() -> None:
    space = spaces.Dict(picture=spaces.Discrete(3), body=spaces.Discrete(2))
    assert list(build(describe(space)).spaces) == ["picture", "body"]  # type: ignore[attr-defined]
