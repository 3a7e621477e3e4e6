"""Named arrays in a safetensors file: written as a stream, parsed only from verified bytes."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx import files

if TYPE_CHECKING:
    import numpy as np

    Arrays = dict[str, np.ndarray[Any, Any]]

DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "uint16": "U16",
    "int16": "I16",
    "float16": "F16",
    "uint32": "U32",
    "int32": "I32",
    "float32": "F32",
    "uint64": "U64",
    "int64": "I64",
    "float64": "F64",
}
NAMES = {code: name for name, code in DTYPES.items()}
LARGEST_HEADER = 32 * 2**20
PREFIX = 8


def write(path: Path, arrays: Mapping[str, np.ndarray[Any, Any]]) -> tuple[str, int]:
    """Write and fsync the arrays without copying them; return the file's sha256 and size."""
    # Widest items first: every array then starts at a multiple of its item size.
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    header: dict[str, Any] = {}
    offset = 0
    for name, array in ordered:
        if array.dtype.name not in DTYPES or not array.dtype.isnative:
            raise TypeError(f"array `{name}` has dtype {array.dtype}, which a checkpoint cannot hold")
        end = offset + array.nbytes
        header[name] = {"dtype": DTYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": [offset, end]}
        offset = end
    head = files.encode(header)
    head += b" " * (-len(head) % PREFIX)
    return write_stream(path, [len(head).to_bytes(PREFIX, "little"), head, *(_raw(array) for _, array in ordered)])


def write_stream(path: Path, chunks: Iterable[bytes | memoryview]) -> tuple[str, int]:
    """Write and fsync a new file; return its sha256 and size."""
    digest = hashlib.sha256()
    size = 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        for chunk in chunks:
            digest.update(chunk)
            size += len(chunk)
            view = memoryview(chunk)
            while view:
                view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return digest.hexdigest(), size


def _raw(array: np.ndarray[Any, Any]) -> memoryview:
    import numpy as np

    flat = np.asarray(array, order="C").reshape(-1)  # a view if the array is contiguous
    return flat.view(np.uint8).data


def parse(content: bytes | bytearray) -> Arrays:
    """Return the arrays as views into `content`; `ValueError` says what is wrong with it."""
    if len(content) < PREFIX:
        raise ValueError("too short for a safetensors file")
    length = int.from_bytes(content[:PREFIX], "little")
    if length > LARGEST_HEADER or PREFIX + length > len(content):
        raise ValueError(f"its header claims {length} bytes")
    header = _mapping(files.decode(bytes(content[PREFIX : PREFIX + length])), "header")
    header.pop("__metadata__", None)
    body = memoryview(content)[PREFIX + length :]
    arrays: Arrays = {}
    expected = 0
    for name, entry in sorted(header.items(), key=lambda item: _offsets(item[1])):
        start, end = _offsets(entry)
        if start != expected or end > len(body):
            raise ValueError(
                f"array `{name}` lies at bytes {start}-{end}, which overlaps, leaves a gap or exceeds the file"
            )
        arrays[name] = _array(name, _mapping(entry, name), body[start:end])
        expected = end
    if expected != len(body):
        raise ValueError(f"{len(body) - expected} bytes do not belong to any array")
    return arrays


def _array(name: str, entry: dict[str, Any], data: memoryview) -> np.ndarray[Any, Any]:
    import numpy as np

    shape = entry.get("shape")
    code = entry.get("dtype")
    if not isinstance(code, str) or code not in NAMES:
        raise ValueError(f"array `{name}` has the unknown dtype {code!r}")
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"array `{name}` has the shape {shape!r}")
    dtype = np.dtype(NAMES[code])
    if math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"array `{name}` of shape {shape} does not fill its {len(data)} bytes")
    return np.frombuffer(data, dtype=dtype).reshape(shape)


def _offsets(entry: Any) -> tuple[int, int]:
    offsets = _mapping(entry, "array").get("data_offsets")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(type(item) is int for item in offsets):
        raise ValueError("an array has no valid offsets")
    start, end = offsets
    if not 0 <= start <= end:
        raise ValueError(f"an array lies at bytes {start}-{end}")
    return start, end


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"`{what}` is not a mapping")
    return value
