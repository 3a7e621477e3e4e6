"""Turn raw observations into the rows of numbers that a network reads, in the order that SB3 uses."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlx.envs.spaces import choice_sizes, leaves

Array = NDArray[Any]
Scale = Callable[[str, Array], Array]


class Features:
    """Writes a batch of observations as (rows, size): numbers flat, choices one-hot, dicts and tuples part by part."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        self.parts: list[tuple[Any, Any]] = list(leaves(space))
        sizes = [sum(choice_sizes(part)) or math.prod(part.shape) for _, part in self.parts]
        self.size = sum(sizes)
        self._columns = [slice(start, end) for start, end in pairwise(np.cumsum([0, *sizes]).tolist())]
        self._one_hot_starts = [_one_hot_starts(part) for _, part in self.parts]

    def write(self, observations: Any, out: Array, scale: Scale | None = None) -> None:
        """Fill `out`; `scale` normalises the numbers of a part, which it gets with the part's name."""
        for (path, _), columns, starts in zip(self.parts, self._columns, self._one_hot_starts, strict=True):
            batch = observations
            for key in path:
                batch = batch[key]
            rows = np.asarray(batch).reshape(len(batch), -1)
            if starts is not None:
                out[:, columns] = 0.0
                np.put_along_axis(out[:, columns], rows + starts, 1.0, axis=1)
            elif scale is not None:
                out[:, columns] = scale(str(path[0]) if path else "", rows)
            else:
                out[:, columns] = rows

    def split(self, rows: Array) -> tuple[Array, Array]:
        """Return the numbers, and the indices of the choices, that rows were written from."""
        numbers: list[Array] = [rows[:, :0]]
        choices: list[Array] = [rows[:, :0]]
        for (_, space), columns in zip(self.parts, self._columns, strict=True):
            sizes = choice_sizes(space)
            if sizes:
                one_hots = np.split(rows[:, columns], np.cumsum(sizes)[:-1], axis=1)
                choices += [one_hot.argmax(axis=1, keepdims=True) for one_hot in one_hots]
            else:
                numbers.append(rows[:, columns])
        return np.concatenate(numbers, axis=1), np.concatenate(choices, axis=1)


def _one_hot_starts(space: Any) -> Array | None:
    """Return what to add to each choice of a space to get its column; None if the space holds numbers."""
    sizes = np.array(choice_sizes(space))
    if not sizes.size:
        return None
    starts: Array = np.cumsum(sizes) - sizes - np.asarray(space.start).reshape(-1)
    return starts
