"""Lossless conversion of nested plain values and arrays to JSON plus named arrays, and back; builds no classes."""

from __future__ import annotations

import base64
import math
from typing import TYPE_CHECKING, Any

from rlx.runs.checkpoints.tensors import DTYPES

if TYPE_CHECKING:
    import numpy as np

    Arrays = dict[str, np.ndarray[Any, Any]]

DEEPEST = 100
NON_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
RAW_KINDS = "biufcSUMm"  # dtypes that are nothing but bytes: no objects, no fields


def pack(tree: Any, *, name: str = "state") -> tuple[Any, Arrays]:
    """Return `tree` as a JSON value and the arrays it refers to; `TypeError` names what cannot be stored, and where."""
    arrays: Arrays = {}
    return _Packer(arrays).pack(tree, name, 0), arrays


def unpack(document: Any, arrays: Arrays) -> Any:
    """Rebuild a tree made by `pack`; `ValueError` says what is wrong with the document."""
    return _Unpacker(arrays).unpack(document, 0)


class _Packer:
    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays

    def pack(self, value: Any, where: str, depth: int) -> Any:
        if depth > DEEPEST:
            raise TypeError(f"{where}: nested more than {DEEPEST} levels deep")
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int and not -(2**63) <= value < 2**63:
            return {"$int": str(value)}
        if kind is float and not math.isfinite(value):
            return {"$float": _non_finite_name(value)}
        if kind is int or kind is float:
            return value
        if kind is bytes:
            return {"$bytes": base64.b64encode(value).decode()}
        if kind is list:
            return [self.pack(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)]
        if kind is tuple:
            return {"$tuple": self.pack(list(value), where, depth + 1)}
        if kind is dict:
            return self._dict(value, where, depth)
        return self._numpy(value, where)

    def _dict(self, value: dict[Any, Any], where: str, depth: int) -> Any:
        if all(type(key) is str and not key.startswith("$") for key in value):
            return {key: self.pack(item, f"{where}.{key}", depth + 1) for key, item in value.items()}
        pairs = []
        for key, item in value.items():
            packed_key = self.pack(key, f"{where} key {key!r}", depth + 2)
            pairs.append([packed_key, self.pack(item, f"{where}[{key!r}]", depth + 2)])
        return {"$dict": pairs}

    def _numpy(self, value: Any, where: str) -> Any:
        import numpy as np

        # Subclasses (masked arrays, records) carry more than their bytes: refused, not flattened.
        is_plain = type(value) is np.ndarray or isinstance(value, np.generic)
        if not is_plain or value.dtype.kind not in RAW_KINDS:
            kind = f"a {type(value).__qualname__}"
            if type(value) is np.ndarray:
                kind = f"an array of {value.dtype}"
            raise TypeError(f"{where}: a checkpoint cannot hold {kind}")
        if isinstance(value, np.generic):
            # The slice is for an empty np.str_: it has no bytes, but tobytes() returns one character.
            return {"$scalar": [value.dtype.str, value.tobytes()[: value.dtype.itemsize].hex()]}
        key = str(len(self.arrays))
        if value.dtype.name in DTYPES and value.dtype.isnative:
            self.arrays[key] = value
            return {"$array": key}
        self.arrays[key] = np.frombuffer(value.tobytes(), dtype=np.uint8)
        return {"$raw": [key, value.dtype.str, list(value.shape)]}


class _Unpacker:
    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays

    def unpack(self, value: Any, depth: int) -> Any:
        if depth > DEEPEST + 2:
            raise ValueError(f"nested more than {DEEPEST} levels deep")
        if isinstance(value, list):
            return [self.unpack(item, depth + 1) for item in value]
        if not isinstance(value, dict):
            return value
        tag = next(iter(value), "")
        if not tag.startswith("$"):
            return {key: self.unpack(item, depth + 1) for key, item in value.items()}
        if len(value) != 1 or tag[1:] not in TAGS:
            raise ValueError(f"unknown kind of value {tag!r}")
        return getattr(self, f"_{tag[1:]}")(value[tag], depth + 1)

    def _int(self, value: Any, depth: int) -> int:
        return int(_text(value))

    def _float(self, value: Any, depth: int) -> float:
        if _text(value) not in NON_FINITE:
            raise ValueError(f"{value!r} is not a number")
        return NON_FINITE[value]

    def _bytes(self, value: Any, depth: int) -> bytes:
        return base64.b64decode(_text(value), validate=True)

    def _tuple(self, value: Any, depth: int) -> tuple[Any, ...]:
        return tuple(self.unpack(_list(value), depth))

    def _dict(self, value: Any, depth: int) -> dict[Any, Any]:
        pairs = [self.unpack(_list(pair, 2), depth + 1) for pair in _list(value)]
        try:
            return {key: item for key, item in pairs}  # noqa: C416  a list of pairs, not of tuples
        except TypeError as error:
            raise ValueError("a key cannot be hashed") from error

    def _scalar(self, value: Any, depth: int) -> Any:
        import numpy as np

        name, text = _list(value, 2)
        dtype = _dtype(name)
        content = bytes.fromhex(_text(text))
        if len(content) != dtype.itemsize:
            raise ValueError(f"a scalar of {name} has {dtype.itemsize} bytes, not {len(content)}")
        if not content:
            return np.zeros((), dtype=dtype)[()]
        return np.frombuffer(content, dtype=dtype)[0]

    def _array(self, value: Any, depth: int) -> np.ndarray[Any, Any]:
        if _text(value) not in self.arrays:
            raise ValueError(f"no array {value!r}")
        return self.arrays[value]

    def _raw(self, value: Any, depth: int) -> np.ndarray[Any, Any]:
        key, dtype, shape = _list(value, 3)
        content = self._array(key, depth)
        return content.view(_dtype(dtype)).reshape(_list(shape))


TAGS = frozenset({"int", "float", "bytes", "tuple", "dict", "scalar", "array", "raw"})


def _non_finite_name(value: float) -> str:
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a string")
    return value


def _list(value: Any, size: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (size is not None and len(value) != size):
        raise ValueError(f"{value!r} is not a list of {size or 'any'} items")
    return value


def _dtype(name: Any) -> np.dtype[Any]:
    import numpy as np

    try:
        dtype = np.dtype(_text(name))
    except TypeError as error:
        raise ValueError(f"unknown dtype {name!r}") from error
    if dtype.kind not in RAW_KINDS:
        raise ValueError(f"dtype {name!r} is not plain bytes")
    return dtype
