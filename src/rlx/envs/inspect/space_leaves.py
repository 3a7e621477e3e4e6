"""Takes spaces apart: the numbers of an observation as a row, and the components of an action."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from rlx.envs.inspect.record import Bounds, Column, Floats
from rlx.envs.spaces import leaves

Space = spaces.Space[Any]
Path = tuple[Any, ...]
MOST_NUMBERS = 400
"""Larger observations, such as images, are reduced to evenly spaced numbers."""
MOST_VALUES = 16
MOST_KNOBS = 40
UNBOUNDED = 1.0


def copied(value: Any) -> Any:
    """Return a copy of an observation or action; numbers and arrays take a fast path."""
    if isinstance(value, np.ndarray):
        return value.copy()
    return value if isinstance(value, (int, float, np.generic)) else deepcopy(value)


def is_close(left: Any, right: Any, within: float = 1e-6) -> bool:
    """Return whether two values are equal except for rounding; values that are not numbers must be equal."""
    if isinstance(left, dict):
        return all(is_close(left[key], right[key], within) for key in left)
    if isinstance(left, (tuple, list)):
        return len(left) == len(right) and all(is_close(*pair, within) for pair in zip(left, right, strict=True))
    try:
        left_array = np.asarray(left, dtype=np.float64)
        right_array = np.asarray(right, dtype=np.float64)
    except (TypeError, ValueError):  # text, graphs
        return bool(left == right)
    if left_array.shape != right_array.shape:
        return False
    return bool(np.allclose(left_array, right_array, rtol=within, atol=within / 1000, equal_nan=True))


def part(value: Any, path: Path) -> Any:
    """Return the part of an observation or action that a path leads to."""
    for key in path:
        value = value[key]
    return value


def spelled(name: str, path: Path, index: int | None = None) -> str:
    """Return the name of a part: `observation`, `observation["pose"][2]`."""
    if index is not None:
        path = (*path, index)
    return name + "".join(f"[{key!r}]" for key in path)


class Numbers:
    """Turns the values of a space into rows of numbers, at most MOST_NUMBERS of them."""

    def __init__(self, space: Space, *, name: str) -> None:
        self.columns: tuple[Column, ...] = ()
        self._takes: list[tuple[Path, Any]] = []
        parts = list(leaves(space))
        for path, leaf in parts:
            kinds = _labels(leaf)
            if kinds is None:
                continue
            most = max(1, MOST_NUMBERS // len(parts))
            chosen = np.unique(np.linspace(0, len(kinds) - 1, min(len(kinds), most)).astype(int))
            is_single = isinstance(leaf, spaces.Discrete) or leaf.shape == ()
            names = [spelled(name, path, None if is_single else int(index)) for index in chosen]
            self.columns += tuple(Column(label, kinds[index]) for label, index in zip(names, chosen, strict=True))
            self._takes.append((path, None if len(chosen) == len(kinds) else chosen))

    def row(self, value: Any) -> Floats:
        """Return the numbers of one value."""
        parts = []
        for path, chosen in self._takes:
            flat = np.asarray(part(value, path), dtype=np.float64).reshape(-1)
            parts.append(flat if chosen is None else flat[chosen])
        return np.concatenate(parts) if parts else np.zeros(0)


def _labels(leaf: Space) -> list[int] | None:
    """Return for every number of a leaf how many labels it has (0: it is a number)."""
    if isinstance(leaf, spaces.Discrete):
        return [int(leaf.n)]
    if isinstance(leaf, spaces.MultiDiscrete):
        return [int(count) for count in leaf.nvec.reshape(-1)]
    if isinstance(leaf, (spaces.Box, spaces.MultiBinary)):
        return [0] * int(np.prod(leaf.shape))
    return None


def bounds_of(space: Space) -> Bounds | None:
    """Return the bounds of an action's numbers, or None if it has no numbers."""
    boxes = [leaf for _, leaf in leaves(space) if isinstance(leaf, spaces.Box)]
    if not boxes:
        return None
    low = np.concatenate([box.low.reshape(-1).astype(np.float64) for box in boxes])
    high = np.concatenate([box.high.reshape(-1).astype(np.float64) for box in boxes])
    return Bounds(tuple(low.tolist()), tuple(high.tolist()))


@dataclass(frozen=True)
class ActionChoice:
    """One component of an action, a discrete value or one number of a Box, and the values to try."""

    name: str
    path: Path
    index: int | None
    values: tuple[float, ...]
    is_continuous: bool

    def put(self, action: Any, value: float) -> Any:
        """Return an action with only this choice changed."""
        return _replaced(copied(action), self.path, self.index, value)


def choices(space: Space) -> tuple[list[ActionChoice], int]:
    """Return the choices to try, and how many choices or values are left out."""
    result: list[ActionChoice] = []
    left_out = 0
    for path, leaf in leaves(space):
        if isinstance(leaf, spaces.Discrete):
            values = np.arange(leaf.start, leaf.start + leaf.n)
            result.append(_choice(path, None, values, is_continuous=False))
            left_out += max(0, len(values) - MOST_VALUES)
        elif isinstance(leaf, (spaces.MultiDiscrete, spaces.MultiBinary)):
            sizes = leaf.nvec.reshape(-1) if isinstance(leaf, spaces.MultiDiscrete) else np.full(leaf.shape, 2).ravel()
            result += [_choice(path, index, np.arange(size), is_continuous=False) for index, size in enumerate(sizes)]
        elif isinstance(leaf, spaces.Box):
            result += [
                _choice(path, index, _tried(low, high), is_continuous=True)
                for index, (low, high) in enumerate(zip(leaf.low.reshape(-1), leaf.high.reshape(-1), strict=True))
            ]
    return result[:MOST_KNOBS], left_out + max(0, len(result) - MOST_KNOBS)


def _tried(low: float, high: float) -> Any:
    """Return both ends of a range and a point between: an effect of the size or the sign alone shows too."""
    if not np.isfinite(low):
        low = -UNBOUNDED
    if not np.isfinite(high):
        high = UNBOUNDED
    return np.array([low, low + 0.6 * (high - low), high], dtype=np.float64)


def _choice(path: Path, index: int | None, values: Any, *, is_continuous: bool) -> ActionChoice:
    kept = values[np.unique(np.linspace(0, len(values) - 1, min(len(values), MOST_VALUES)).astype(int))]
    return ActionChoice(
        spelled("action", path, index), path, index, tuple(float(value) for value in kept), is_continuous
    )


def _replaced(action: Any, path: Path, index: int | None, value: float) -> Any:
    if path:
        key, *rest = path
        changed = _replaced(action[key], tuple(rest), index, value)
        if isinstance(action, tuple):
            return (*action[:key], changed, *action[key + 1 :])
        action[key] = changed
        return action
    if index is None:
        return np.int64(value)
    action.reshape(-1)[index] = value
    return action
