"""Observation and action spaces as JSON and back, so that a policy can be rebuilt without its environment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlx import files
from rlx.errors import CheckpointInvalid

Space = spaces.Space[Any]


def describe(space: Space) -> dict[str, Any]:
    """Return a space as JSON-able data."""
    if isinstance(space, spaces.Box):
        bounds = {"low": _bound(space.low), "high": _bound(space.high)}
        return {"kind": "box", **bounds, "shape": list(space.shape), "dtype": str(space.dtype)}
    if isinstance(space, spaces.Discrete):
        return {"kind": "discrete", "n": int(space.n), "start": int(space.start), "dtype": str(space.dtype)}
    if isinstance(space, spaces.MultiDiscrete):
        sizes = {"nvec": space.nvec.tolist(), "start": space.start.tolist()}
        return {"kind": "multi_discrete", **sizes, "dtype": str(space.dtype)}
    if isinstance(space, spaces.MultiBinary):
        return {"kind": "multi_binary", "shape": list(space.shape)}
    if isinstance(space, spaces.Dict):
        return {"kind": "dict", "spaces": {key: describe(item) for key, item in space.spaces.items()}}
    if isinstance(space, spaces.Tuple):
        return {"kind": "tuple", "spaces": [describe(item) for item in space.spaces]}
    raise TypeError(f"a checkpoint cannot describe the space {space}")


def in_words(space: Space) -> str:
    """Return a space in a few words for a message: an array without its bounds."""
    if space.shape:
        return f"{space.dtype} {space.shape}"
    return " ".join(str(space).split())


def build(document: Any) -> Space:
    """Return the space that `describe` described."""
    try:
        return _build(document)
    except (KeyError, TypeError, ValueError, AssertionError) as error:
        raise CheckpointInvalid(
            f"unknown space {document!r}", hint="it was written by another version of rlx"
        ) from error


def leaves(space: Space, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Space]]:
    """Yield the plain spaces that a space consists of, with the keys that lead to them."""
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from leaves(part, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for index, part in enumerate(space.spaces):
            yield from leaves(part, (*path, index))
    else:
        yield path, space


def normalised_keys(space: Space) -> list[str]:
    """Return the keys of an observation that can be normalised; "" is the whole observation."""
    parts = space.spaces.items() if isinstance(space, spaces.Dict) else [("", space)]
    return [key for key, part in parts if isinstance(part, spaces.Box) and not is_image(part)]


def choice_sizes(space: Space, *, with_bits: bool = False) -> list[int]:
    """Return the number of options of each choice in a discrete space; nothing for a space of numbers."""
    if isinstance(space, spaces.Discrete):
        return [int(space.n)]
    if isinstance(space, spaces.MultiDiscrete):
        return [int(size) for size in space.nvec.reshape(-1)]
    if with_bits and isinstance(space, spaces.MultiBinary):
        return [2] * math.prod(space.shape)
    return []


def is_image(space: Space) -> bool:
    """Return whether a space holds images of the form that SB3's CNN expects."""
    is_pixels = isinstance(space, spaces.Box) and len(space.shape) == 3 and space.dtype == np.uint8
    return is_pixels and bool((space.low == 0).all() and (space.high == 255).all())  # type: ignore[attr-defined]


def _build(document: Any) -> Space:
    kind = document["kind"]
    if kind == "box":
        shape = tuple(document["shape"])
        dtype = _dtype(document["dtype"])
        low = _filled(document["low"], shape, dtype)
        return spaces.Box(low, _filled(document["high"], shape, dtype), shape=shape, dtype=dtype)
    if kind == "discrete":
        return spaces.Discrete(document["n"], start=document["start"], dtype=_dtype(document["dtype"]))
    if kind == "multi_discrete":
        return spaces.MultiDiscrete(document["nvec"], start=document["start"], dtype=_dtype(document["dtype"]))
    if kind == "multi_binary":
        shape = tuple(document["shape"])
        return spaces.MultiBinary(shape[0] if len(shape) == 1 else shape)
    if kind == "dict":
        return spaces.Dict([(key, _build(item)) for key, item in document["spaces"].items()])  # a mapping is sorted
    if kind == "tuple":
        return spaces.Tuple([_build(item) for item in document["spaces"]])
    raise KeyError(kind)


def _bound(values: NDArray[Any]) -> Any:
    """Return one number if all are the same (an image has 10⁵ equal bounds), otherwise all of them."""
    flat = values.reshape(-1)
    if flat.size and (flat == flat[0]).all():
        return _number(flat[0].item())
    return [_number(value) for value in flat.tolist()]


def _number(value: float) -> Any:
    return files.decode(files.encode(value)) if isinstance(value, float) else value


def _filled(bound: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    if isinstance(bound, list):
        return np.array([files.number(value) for value in bound]).astype(dtype).reshape(shape)
    return np.full(shape, files.number(bound)).astype(dtype)


def _dtype(name: str) -> np.dtype[Any]:
    dtype = np.dtype(name)
    if dtype.kind not in "biuf":
        raise ValueError(f"{name} is not a dtype of a space")
    return dtype
