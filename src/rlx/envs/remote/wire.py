"""The wire format between rlx and foreign code in another process: frames of a JSON header and raw arrays.

A frame is `RLX1`, two lengths, the header and the arrays. Nothing in it is executed, arrays hold plain numbers only,
and the reader limits how much it reads.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"RLX1"
LENGTHS = struct.Struct("<4sIQ")
LARGEST_HEADER = 2**16
DTYPES = frozenset(f"{order}{kind}{size}" for order in "<|" for kind in "iuf" for size in (1, 2, 4, 8)) | {"|b1"}
# An array, or a dict or tuple of trees.
Tree = Any


class InvalidFrame(ValueError):
    """Bytes that are not a valid frame."""


def pack(kind: str, tree: Tree = None, **facts: Any) -> bytes:
    """Return a frame of a kind, with arrays and further JSON-able facts."""
    arrays: list[NDArray[Any]] = []
    shape = tree
    if tree is not None:
        shape = _shape(tree, arrays)
    leaves = [[array.dtype.str, list(array.shape)] for array in arrays]
    header = json.dumps({"kind": kind, "tree": shape, "leaves": leaves, "about": facts}).encode()
    payload = b"".join(array.tobytes() for array in arrays)
    return LENGTHS.pack(MAGIC, len(header), len(payload)) + header + payload


def read(exactly: Callable[[int], bytes], *, most_bytes: int) -> tuple[str, Tree, dict[str, Any]]:
    """Read a frame with a function that returns exactly so many bytes. Raise `InvalidFrame` if it is not valid."""
    return read_rest(exactly(LENGTHS.size), exactly, most_bytes=most_bytes)


def read_rest(
    lengths: bytes, exactly: Callable[[int], bytes], *, most_bytes: int, most_header: int = LARGEST_HEADER
) -> tuple[str, Tree, dict[str, Any]]:
    """Read the rest of a frame whose first bytes, `LENGTHS`, are already read."""
    magic, header_bytes, payload_bytes = LENGTHS.unpack(lengths)
    if magic != MAGIC:
        raise InvalidFrame("it does not begin like a frame")
    if header_bytes > most_header or payload_bytes > most_bytes:
        raise InvalidFrame(f"it has {header_bytes} + {payload_bytes} bytes, more than such an answer can have")
    header = _header(exactly(header_bytes))
    arrays = _arrays(header["leaves"], exactly(payload_bytes))
    tree = header["tree"]
    if tree is not None:
        tree = _tree(tree, arrays)
    return header["kind"], tree, header["about"]


def _shape(tree: Tree, arrays: list[NDArray[Any]]) -> Any:
    if isinstance(tree, dict):
        return {"dict": {str(key): _shape(part, arrays) for key, part in tree.items()}}
    if isinstance(tree, (tuple, list)):
        return {"tuple": [_shape(part, arrays) for part in tree]}
    array = np.asarray(tree, order="C")
    if array.dtype.newbyteorder("<").str not in DTYPES:
        raise TypeError(f"values of the type {array.dtype} cannot be sent")
    arrays.append(array.astype(array.dtype.newbyteorder("<"), copy=False))
    return len(arrays) - 1


def _header(content: bytes) -> dict[str, Any]:
    try:
        header = json.loads(content)
    except (ValueError, RecursionError):
        raise InvalidFrame("its header is not JSON") from None
    types = {"kind": str, "leaves": list, "about": dict}
    if not isinstance(header, dict) or any(type(header.get(key)) is not kind for key, kind in types.items()):
        raise InvalidFrame("its header lacks something")
    return {"tree": None, **header}


def _arrays(leaves: list[Any], payload: bytes) -> list[NDArray[Any]]:
    arrays = []
    start = 0
    for leaf in leaves:
        dtype, shape = _leaf(leaf)
        size = dtype.itemsize * math.prod(shape)
        if start + size > len(payload):
            raise InvalidFrame("it has fewer numbers than it announces")
        array = np.frombuffer(payload, dtype, math.prod(shape), start).reshape(shape)
        if dtype.kind == "b":
            array = array.view(np.uint8) != 0  # a byte that is neither 0 nor 1 is not a truth value that NumPy knows
        arrays.append(array)
        start += size
    if start != len(payload):
        raise InvalidFrame("it has more numbers than it announces")
    return arrays


def _leaf(leaf: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    is_sound = isinstance(leaf, list) and len(leaf) == 2 and leaf[0] in DTYPES and isinstance(leaf[1], list)
    if not is_sound or not all(type(size) is int and 0 <= size < 2**40 for size in leaf[1]) or len(leaf[1]) > 32:
        raise InvalidFrame("it announces impossible arrays")
    return np.dtype(leaf[0]), tuple(leaf[1])


def _tree(shape: Any, arrays: list[NDArray[Any]]) -> Tree:
    if isinstance(shape, dict) and isinstance(shape.get("dict"), dict):
        return {key: _tree(part, arrays) for key, part in shape["dict"].items()}
    if isinstance(shape, dict) and isinstance(shape.get("tuple"), list):
        return tuple(_tree(part, arrays) for part in shape["tuple"])
    if type(shape) is not int or not 0 <= shape < len(arrays):
        raise InvalidFrame("its arrays do not form a tree")
    return arrays[shape]
