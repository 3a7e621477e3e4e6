"""From raw observations to the rows of numbers a network reads, in the order SB3 puts them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlx.envs.spaces import choice_sizes

Array = NDArray[Any]
Scale = Callable[[str, Array], Array]


class Features:
    """Writes a batch of observations as (rows, size): numbers flat, choices one-hot, dicts and tuples part by part."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        self.parts = list(_parts(space, ()))
        sizes = [_size(part) for _, part in self.parts]
        self.size = sum(sizes)
        ends = np.cumsum([0, *sizes]).tolist()
        self._columns = [slice(start, end) for start, end in pairwise(ends)]

    def write(self, observations: Any, out: Array, scale: Scale | None = None) -> None:
        """Fill `out`; `scale` is asked to change numbers of the parts that are normalised, by their name."""
        for (path, space), columns in zip(self.parts, self._columns, strict=True):
            batch = observations
            for key in path:
                batch = batch[key]
            if isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
                _write_choices(space, np.asarray(batch), out[:, columns])
                continue
            rows = np.asarray(batch).reshape(len(batch), -1)
            out[:, columns] = scale(str(path[0]) if path else "", rows) if scale else rows

    def split(self, rows: Array) -> tuple[Array, Array]:
        """Return the numbers and the choices, by their index, that rows were written from."""
        numbers: list[Array] = [rows[:, :0]]
        choices: list[Array] = [rows[:, :0]]
        for (_, space), columns in zip(self.parts, self._columns, strict=True):
            if sizes := choice_sizes(space):
                ends = np.cumsum(sizes)[:-1]
                choices += [part.argmax(axis=1, keepdims=True) for part in np.split(rows[:, columns], ends, axis=1)]
            else:
                numbers.append(rows[:, columns])
        return np.concatenate(numbers, axis=1), np.concatenate(choices, axis=1)


def _parts(space: spaces.Space[Any], path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    if isinstance(space, spaces.Dict):
        for key, part in space.spaces.items():
            yield from _parts(part, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for index, part in enumerate(space.spaces):
            yield from _parts(part, (*path, index))
    else:
        yield path, space


def _size(space: Any) -> int:
    return sum(choice_sizes(space)) or math.prod(space.shape)


def _write_choices(space: Any, batch: Array, out: Array) -> None:
    """Write ones where the choices are."""
    sizes = np.array([space.n]) if isinstance(space, spaces.Discrete) else space.nvec.reshape(-1)
    starts = np.cumsum(sizes) - sizes - np.asarray(space.start).reshape(-1)
    out[...] = 0.0
    np.put_along_axis(out, batch.reshape(len(batch), -1) + starts, 1.0, axis=1)
