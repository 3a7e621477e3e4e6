"""Trees of plain values and arrays survive the way through JSON and safetensors."""

from __future__ import annotations

import math
import random
from collections import OrderedDict, deque, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from rlx import files
from rlx.runs.checkpoints import state_tree, tensors

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(codec="utf-8")),
    st.binary(max_size=20),
    st.integers(-128, 127).map(np.int8),
    st.floats(width=32).map(np.float32),
    st.booleans().map(np.bool_),
)
ARRAYS = arrays_of.arrays(
    dtype=st.sampled_from(
        ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex128", ">f8", "<U3", "S2"]
    ),
    shape=arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)
KEYS = st.one_of(st.text(st.characters(codec="utf-8"), max_size=5), st.integers(0, 9), st.just("$tuple"))
TREES = st.recursive(
    SCALARS | ARRAYS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(KEYS, inner, max_size=4),
    ),
    max_leaves=12,
)


def through_disk(value: Any) -> Any:
    document, arrays = state_tree.pack(value)
    return state_tree.unpack(files.decode(files.encode(document)), arrays)


def assert_same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            assert_same(left, right)
    elif isinstance(one, (np.ndarray, np.generic)):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()
    elif isinstance(one, float):
        assert one == other or (math.isnan(one) and math.isnan(other))
        assert math.copysign(1, one) == math.copysign(1, other) or math.isnan(one)
    else:
        assert one == other


@given(TREES)
def test_every_tree_of_plain_values_comes_back_as_it_was(value: Any) -> None:
    assert_same(value, through_disk(value))


def test_the_states_of_all_random_generators_come_back() -> None:
    states = {
        "random": random.getstate(),
        "legacy": np.random.get_state(legacy=False),
        **{
            kind.__name__: kind(7).state
            for kind in (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64)
        },
    }
    assert_same(states, through_disk(states))


def test_an_array_that_is_not_contiguous_keeps_its_values(tmp_path: Path) -> None:
    array = np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1)[::2]
    tensors.write(tmp_path / "a", {"array": array})
    np.testing.assert_array_equal(tensors.parse(bytearray((tmp_path / "a").read_bytes()))["array"], array)


@pytest.mark.parametrize(
    "value",
    [
        object(),
        deque([1]),
        {1, 2},
        OrderedDict(),
        namedtuple("Point", "x")(1),
        np.array([object()]),
        np.ma.masked_array([1.0], mask=[True]),
        np.zeros(1, dtype=[("x", "f4")]),
        bytearray(b"x"),
        math.sin,
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_is_not_plain_is_refused_with_its_place(value: Any) -> None:
    with pytest.raises(TypeError, match=r"state\.env\[1\]\.thing: a checkpoint cannot hold"):
        state_tree.pack({"env": [0, {"thing": value}]})


def test_a_tree_without_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(TypeError, match="levels deep"):
        state_tree.pack(endless)


@pytest.mark.parametrize(
    "document",
    [
        {"$object": "os.system"},
        {"$int": "x"},
        {"$int": 5},
        {"$float": "1e400"},
        {"$bytes": "§"},
        {"$tuple": {}},
        {"$dict": [[1]]},
        {"$dict": [[[], 1]]},
        {"$scalar": ["O", "00"]},
        {"$scalar": ["<f4", "00"]},
        {"$scalar": ["no such dtype", ""]},
        {"$float": []},
        {"$array": "7"},
        {"$array": []},
        {"$raw": ["0", "|O", [1]]},
        {"$raw": ["0", "<f4", [9]]},
        {"$pack": 1},
        {"$int": "1", "$float": "NaN"},
    ],
    ids=str,
)
def test_a_document_that_pack_would_not_write_is_refused(document: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        state_tree.unpack(document, {"0": np.zeros(8, dtype=np.uint8)})


def test_a_document_without_end_is_refused() -> None:
    document: Any = 1
    for _ in range(300):
        document = [document]
    with pytest.raises(ValueError, match="levels deep"):
        state_tree.unpack(document, {})
