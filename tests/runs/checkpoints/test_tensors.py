"""The safetensors files are the library's, and a file that is not one is refused."""

from __future__ import annotations

import hashlib
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from rlx.runs.checkpoints import tensors

ARRAYS = {
    "weights": np.arange(6, dtype=np.float32).reshape(2, 3),
    "flag": np.array(True),
    "bytes": np.arange(3, dtype=np.uint8),
    "none": np.zeros((0, 4)),
    "half": np.ones(3, dtype=np.float16),
    "large": np.array([-(2**63), 2**63 - 1]),
}


def test_the_safetensors_library_reads_what_is_written(tmp_path: Path) -> None:
    digest, size = tensors.write(tmp_path / "file", ARRAYS)
    found = load_file(tmp_path / "file")
    assert set(found) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
    content = (tmp_path / "file").read_bytes()
    assert (digest, size) == (hashlib.sha256(content).hexdigest(), len(content))


def test_what_the_library_writes_is_read() -> None:
    found = tensors.parse(bytearray(save(ARRAYS, metadata={"by": "someone"})))
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_arrays_read_can_be_written_into() -> None:
    found = tensors.parse(bytearray(save(ARRAYS)))
    found["weights"][0, 0] = 9.0
    assert found["weights"][0, 0] == 9.0


@pytest.mark.parametrize(
    "array", [np.zeros(1, dtype=complex), np.zeros(1, dtype=">f4"), np.array(["a"]), np.array([{}])]
)
def test_a_dtype_the_format_lacks_is_refused(tmp_path: Path, array: np.ndarray) -> None:  # type: ignore[type-arg]
    with pytest.raises(TypeError, match="array `x` has dtype"):
        tensors.write(tmp_path / "file", {"x": array})


def made(header: object, body: bytes = b"") -> bytearray:
    head = header if isinstance(header, bytes) else json.dumps(header).encode()
    return bytearray(len(head).to_bytes(8, "little") + head + body)


GOOD = {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"1234567",
        (2**63).to_bytes(8, "little") + b"{}",
        (100).to_bytes(8, "little") + b"{}",
        pickle.dumps({"x": 1}),
        made(b"not json"),
        made([1]),
        made({"x": 1}),
        made({"x": {**GOOD, "dtype": "OBJ"}}, b"ab"),
        made({"x": {**GOOD, "dtype": ["U8"]}}, b"ab"),
        made({"x": {**GOOD, "shape": [3]}}, b"ab"),
        made({"x": {**GOOD, "shape": [-1, -2]}}, b"ab"),
        made({"x": {**GOOD, "shape": "2"}}, b"ab"),
        made({"x": {**GOOD, "data_offsets": [0, 3]}}, b"ab"),
        made({"x": {**GOOD, "data_offsets": [2, 0]}}, b"ab"),
        made({"x": {**GOOD, "data_offsets": [0.0, 2]}}, b"ab"),
        made({"x": {"dtype": "U8", "shape": [2]}}, b"ab"),
        made({"x": GOOD, "y": {**GOOD, "data_offsets": [1, 3]}}, b"abc"),
        made({"x": GOOD}, b"abc"),
        made({"x": {**GOOD, "data_offsets": [1, 3]}}, b"abc"),
    ],
)
def test_a_file_that_is_not_safetensors_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        tensors.parse(content)
