"""Spaces taken apart: the leaves of an observation, its numbers in a row, and the choices an action makes."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces

from rlx.envs.inspect_record import Bounds, Column, Floats

Space = spaces.Space[Any]
Path = tuple[Any, ...]
MOST_NUMBERS = 400
"""Of larger observations (images) evenly spaced numbers are kept."""
MOST_VALUES, MOST_KNOBS = 16, 40
UNBOUNDED = 1.0


def copied(value: Any) -> Any:
    """Return a copy of an observation or action, without ado where it is a number or an array."""
    if isinstance(value, np.ndarray):
        return value.copy()
    return value if isinstance(value, (int, float, np.generic)) else deepcopy(value)


def is_close(one: Any, other: Any, *, within: float = 1e-6) -> bool:
    """Say whether two values are equal but for rounding; what are no numbers must be equal."""
    if isinstance(one, dict):
        return all(is_close(one[key], other[key], within=within) for key in one)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(is_close(*pair, within=within) for pair in zip(one, other, strict=True))
    try:
        mine, theirs = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    except (TypeError, ValueError):  # text, graphs
        return bool(one == other)
    is_alike = mine.shape == theirs.shape
    return is_alike and bool(np.allclose(mine, theirs, rtol=within, atol=within / 1000, equal_nan=True))


def leaves(space: Space, path: Path = ()) -> Iterator[tuple[Path, Space]]:
    """Yield the plain spaces that a space is made of, with the keys that lead to them."""
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from leaves(part, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for index, part in enumerate(space.spaces):
            yield from leaves(part, (*path, index))
    else:
        yield path, space


def part(value: Any, path: Path) -> Any:
    """Return the part of an observation or action that a path leads to."""
    for key in path:
        value = value[key]
    return value


def spelled(name: str, path: Path, index: int | None = None) -> str:
    """Name a place: `observation`, `observation["pose"][2]`."""
    keys = "".join(f"[{key!r}]" if isinstance(key, str) else f"[{key}]" for key in path)
    return f"{name}{keys}" + ("" if index is None else f"[{index}]")


class Numbers:
    """Lays the numbers of a space's values in a row, at most MOST_NUMBERS of them."""

    def __init__(self, space: Space, *, name: str) -> None:
        self.columns: tuple[Column, ...] = ()
        self._takes: list[tuple[Path, Any]] = []
        found = list(leaves(space))
        for path, leaf in found:
            kinds = _labels(leaf)
            if kinds is None:
                continue
            most = max(1, MOST_NUMBERS // len(found))
            chosen = np.unique(np.linspace(0, len(kinds) - 1, min(len(kinds), most)).astype(int))
            is_single = isinstance(leaf, spaces.Discrete) or leaf.shape == ()
            names = [spelled(name, path, None if is_single else int(index)) for index in chosen]
            self.columns += tuple(Column(each, kinds[index]) for each, index in zip(names, chosen, strict=True))
            self._takes.append((path, None if len(chosen) == len(kinds) else chosen))

    def row(self, value: Any) -> Floats:
        """Return the numbers of one value."""
        parts = []
        for path, chosen in self._takes:
            flat = np.asarray(part(value, path), dtype=np.float64).reshape(-1)
            parts.append(flat if chosen is None else flat[chosen])
        return np.concatenate(parts) if parts else np.zeros(0)


def _labels(leaf: Space) -> list[int] | None:
    """Return for every number of a leaf how many labels it stands for (0: it is a number)."""
    if isinstance(leaf, spaces.Discrete):
        return [int(leaf.n)]
    if isinstance(leaf, spaces.MultiDiscrete):
        return [int(count) for count in leaf.nvec.reshape(-1)]
    if isinstance(leaf, (spaces.Box, spaces.MultiBinary)):
        return [0] * int(np.prod(leaf.shape))
    return None


def bounds_of(space: Space) -> Bounds | None:
    """Return the bounds of an action's numbers, where it has any."""
    boxes = [leaf for _, leaf in leaves(space) if isinstance(leaf, spaces.Box)]
    if not boxes:
        return None
    low, high = (
        np.concatenate([getattr(box, side).reshape(-1).astype(np.float64) for box in boxes]) for side in ("low", "high")
    )
    return Bounds(tuple(low.tolist()), tuple(high.tolist()))


@dataclass(frozen=True)
class Choice:
    """One choice an action makes: a discrete value or one number of a Box, and the values to try."""

    name: str
    path: Path
    index: int | None
    values: tuple[float, ...]
    is_continuous: bool

    def put(self, action: Any, value: float) -> Any:
        """Return an action with only this choice changed."""
        return _replaced(copied(action), self.path, self.index, value)


def choices(space: Space) -> tuple[list[Choice], int]:
    """Return the choices to try, and how many choices or values there are beyond them."""
    found: list[Choice] = []
    left_out = 0
    for path, leaf in leaves(space):
        if isinstance(leaf, spaces.Discrete):
            values = np.arange(leaf.start, leaf.start + leaf.n)
            found.append(_choice(path, None, values, is_continuous=False))
            left_out += max(0, len(values) - MOST_VALUES)
        elif isinstance(leaf, (spaces.MultiDiscrete, spaces.MultiBinary)):
            sizes = leaf.nvec.reshape(-1) if isinstance(leaf, spaces.MultiDiscrete) else np.full(leaf.shape, 2).ravel()
            found += [_choice(path, index, np.arange(size), is_continuous=False) for index, size in enumerate(sizes)]
        elif isinstance(leaf, spaces.Box):
            found += [
                _choice(path, index, _tried(low, high), is_continuous=True)
                for index, (low, high) in enumerate(zip(leaf.low.reshape(-1), leaf.high.reshape(-1), strict=True))
            ]
    return found[:MOST_KNOBS], left_out + max(0, len(found) - MOST_KNOBS)


def _tried(low: float, high: float) -> Any:
    """Return both ends of a range and a point between them: what takes the size or the sign only is seen too."""
    low, high = (low if np.isfinite(low) else -UNBOUNDED), (high if np.isfinite(high) else UNBOUNDED)
    return np.array([low, low + 0.6 * (high - low), high], dtype=np.float64)


def _choice(path: Path, index: int | None, values: Any, *, is_continuous: bool) -> Choice:
    kept = values[np.unique(np.linspace(0, len(values) - 1, min(len(values), MOST_VALUES)).astype(int))]
    return Choice(spelled("action", path, index), path, index, tuple(float(each) for each in kept), is_continuous)


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
