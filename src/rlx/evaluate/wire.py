"""What an evaluator and a policy in another process say to each other: frames of a JSON header and raw array bytes.

A frame is `RLX1`, the two lengths, the header and the arrays one after the other. Nothing in it is executed, arrays are
of plain numbers only, and the reader says how much it is willing to read.
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
Tree = Any
"""An array, or a dict or tuple of trees."""


class Garbled(ValueError):
    """A frame that is none."""


def pack(kind: str, tree: Tree = None, **about: Any) -> bytes:
    """Return a frame that says `kind`, with arrays and further plain facts."""
    arrays: list[NDArray[Any]] = []
    shape = None if tree is None else _shape(tree, arrays)
    leaves = [[array.dtype.str, list(array.shape)] for array in arrays]
    header = json.dumps({"kind": kind, "tree": shape, "leaves": leaves, "about": about}).encode()
    payload = b"".join(array.tobytes() for array in arrays)
    return LENGTHS.pack(MAGIC, len(header), len(payload)) + header + payload


def read(exactly: Callable[[int], bytes], *, most_bytes: int) -> tuple[str, Tree, dict[str, Any]]:
    """Read a frame through what returns exactly so many bytes; raise `Garbled` for anything else than a sound one."""
    magic, header_bytes, payload_bytes = LENGTHS.unpack(exactly(LENGTHS.size))
    if magic != MAGIC:
        raise Garbled("it does not begin as a frame does")
    if header_bytes > LARGEST_HEADER or payload_bytes > most_bytes:
        raise Garbled(f"it has {header_bytes} + {payload_bytes} bytes, more than such an answer can have")
    header = _header(exactly(header_bytes))
    arrays = _arrays(header["leaves"], exactly(payload_bytes))
    tree = None if header["tree"] is None else _tree(header["tree"], arrays)
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
        raise Garbled("its header is not JSON") from None
    wanted = {"kind": str, "leaves": list, "about": dict}
    if not isinstance(header, dict) or any(type(header.get(key)) is not kind for key, kind in wanted.items()):
        raise Garbled("its header lacks something")
    return {"tree": None, **header}


def _arrays(leaves: list[Any], payload: bytes) -> list[NDArray[Any]]:
    arrays, start = [], 0
    for leaf in leaves:
        dtype, shape = _leaf(leaf)
        size = dtype.itemsize * math.prod(shape)
        if start + size > len(payload):
            raise Garbled("it announces more numbers than it brings")
        arrays.append(np.frombuffer(payload, dtype, math.prod(shape), start).reshape(shape))
        start += size
    if start != len(payload):
        raise Garbled("it brings more numbers than it announces")
    return arrays


def _leaf(leaf: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    sound = isinstance(leaf, list) and len(leaf) == 2 and leaf[0] in DTYPES and isinstance(leaf[1], list)
    if not sound or not all(type(size) is int and 0 <= size < 2**40 for size in leaf[1]) or len(leaf[1]) > 32:
        raise Garbled("it announces arrays that cannot be")
    return np.dtype(leaf[0]), tuple(leaf[1])


def _tree(shape: Any, arrays: list[NDArray[Any]]) -> Tree:
    if isinstance(shape, dict) and isinstance(shape.get("dict"), dict):
        return {key: _tree(part, arrays) for key, part in shape["dict"].items()}
    if isinstance(shape, dict) and isinstance(shape.get("tuple"), list):
        return tuple(_tree(part, arrays) for part in shape["tuple"])
    if type(shape) is not int or not 0 <= shape < len(arrays):
        raise Garbled("its arrays do not make a tree")
    return arrays[shape]
