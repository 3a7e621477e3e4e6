"""The arrays that a learner and the process of its environments share: where each lies, and in which dtype.

Each number has eight bytes of room, whatever its dtype. So an environment may use another dtype than its space names,
and both ends still compute with the very same numbers as in one process.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlx.envs.remote import wire
from rlx.envs.spaces import leaves
from rlx.errors import ConfigError

DTYPES = sorted(wire.DTYPES)
ALIGNMENT = 64
WIDEST = 8
_PLAIN = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


@dataclass(frozen=True)
class ArraySlot:
    """Where an array lies, and its shape."""

    offset: int
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """The places of everything that a step exchanges, and the bytes of all together."""

    actions: ArraySlot
    observations: tuple[ArraySlot, ...]
    rewards: ArraySlot
    terminated: ArraySlot
    truncated: ArraySlot
    size: int


def layout(observation_space: spaces.Space[Any], action_space: spaces.Space[Any], count: int) -> Layout:
    """Return where the arrays of `count` environments lie."""
    places = []
    offset = 0
    shapes = [_shape(action_space), *(_shape(leaf) for _, leaf in plain_leaves(observation_space)), (), (), ()]
    for shape in shapes:
        places.append(ArraySlot(offset, (count, *shape)))
        size = count * math.prod(shape) * WIDEST
        offset += -(-size // ALIGNMENT) * ALIGNMENT
    actions, *observations, rewards, terminated, truncated = places
    return Layout(actions, tuple(observations), rewards, terminated, truncated, max(offset, ALIGNMENT))


class SharedArrays:
    """The arrays in a piece of shared memory."""

    def __init__(self, memory: mmap.mmap, places: Layout) -> None:
        self._memory = memory
        self._places = places
        self._actions: dict[int, NDArray[Any]] = {}
        self.observations: list[NDArray[Any]] = []
        self.rewards = self._view(places.rewards, np.dtype(np.float64))
        self.terminated = self._view(places.terminated, np.dtype(np.uint8))
        self.truncated = self._view(places.truncated, np.dtype(np.uint8))

    def set_observation_dtypes(self, names: Sequence[str]) -> None:
        """Use these dtypes for the parts of observations."""
        pairs = zip(self._places.observations, names, strict=True)
        self.observations = [self._view(place, np.dtype(name)) for place, name in pairs]

    def write_actions(self, actions: NDArray[Any]) -> int:
        """Write actions and return the number of their dtype."""
        code = DTYPES.index(actions.dtype.str)
        self.actions(code)[...] = actions
        return code

    def actions(self, code: int) -> NDArray[Any]:
        """Return the actions in the dtype with this number."""
        view = self._actions.get(code)
        if view is None:
            view = self._actions[code] = self._view(self._places.actions, np.dtype(DTYPES[code]))
        return view

    def _view(self, place: ArraySlot, dtype: np.dtype[Any]) -> NDArray[Any]:
        return np.frombuffer(self._memory, dtype, math.prod(place.shape), place.offset).reshape(place.shape)


def plain_leaves(space: spaces.Space[Any]) -> list[tuple[tuple[Any, ...], spaces.Space[Any]]]:
    """Return the parts of a space that are arrays of a fixed shape, with the keys that lead to them."""
    parts = list(leaves(space))
    for _, leaf in parts:
        if not isinstance(leaf, _PLAIN):
            raise ConfigError(
                f"an environment in its own process cannot send {type(leaf).__name__} observations",
                hint="flatten them to Box, Discrete, MultiDiscrete or MultiBinary in a wrapper",
            )
    return parts


def rebuild(space: spaces.Space[Any], arrays: Sequence[Any]) -> Any:
    """Return arrays, in the order of `plain_leaves`, as an observation of the space."""
    waiting = iter(arrays)

    def part(inner: spaces.Space[Any]) -> Any:
        if isinstance(inner, spaces.Dict):
            return {key: part(item) for key, item in inner.spaces.items()}
        if isinstance(inner, spaces.Tuple):
            return tuple(part(item) for item in inner.spaces)
        return next(waiting)

    return part(space)


def parts_of(space: spaces.Space[Any], observation: Any) -> list[NDArray[Any]]:
    """Return the arrays of an observation in the order of `plain_leaves`."""
    arrays = []
    for path, _ in plain_leaves(space):
        part = observation
        for key in path:
            part = part[key]
        arrays.append(np.asarray(part))
    return arrays


def _shape(leaf: spaces.Space[Any]) -> tuple[int, ...]:
    if not isinstance(leaf, _PLAIN):
        raise ConfigError(
            f"an environment in its own process cannot take {type(leaf).__name__} actions",
            hint="flatten them to Box or MultiDiscrete in a wrapper",
        )
    return tuple(leaf.shape or ())
