"""A Sobol sequence: random-looking configs that cover the space more evenly than random ones.

Direction numbers by Joe and Kuo (2008, new-joe-kuo-6) for 21 dimensions; further dimensions are drawn at random. A
random digital shift per seed keeps the first point from being a corner.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rlx.search.observation import TRIES, NewConfigs, Observation
from rlx.search.space import Space, Values

BITS = 30
POLYNOMIALS: tuple[tuple[int, tuple[int, ...]], ...] = (
    (0, (1,)),
    (1, (1, 3)),
    (1, (1, 3, 1)),
    (2, (1, 1, 1)),
    (1, (1, 1, 3, 3)),
    (4, (1, 3, 5, 13)),
    (2, (1, 1, 5, 5, 17)),
    (4, (1, 1, 5, 5, 5)),
    (7, (1, 1, 7, 11, 19)),
    (11, (1, 1, 5, 1, 1)),
    (13, (1, 1, 1, 3, 11)),
    (14, (1, 3, 5, 5, 31)),
    (1, (1, 3, 3, 9, 7, 49)),
    (13, (1, 1, 1, 15, 21, 21)),
    (16, (1, 3, 1, 13, 27, 49)),
    (19, (1, 1, 1, 15, 7, 5)),
    (22, (1, 3, 1, 15, 13, 25)),
    (25, (1, 1, 5, 5, 19, 61)),
    (1, (1, 3, 7, 11, 23, 15, 103)),
    (4, (1, 3, 7, 13, 13, 15, 69)),
)
"""The inner coefficients of a primitive polynomial and its first direction numbers, from the second dimension on."""


class SobolSampler:
    """Returns the points of a shifted Sobol sequence."""

    def propose(self, space: Space, history: Sequence[Observation], count: int, *, seed: int) -> list[Values]:
        """Return the next configs of the sequence that were not tried."""
        first = len(history)
        new = NewConfigs(space, history, count)
        for point in sobol(first + count + TRIES, len(space.parameters), seed=seed)[first:]:
            new.add(space.at(point))
        return new.draw(seed=seed)


def sobol(count: int, dimensions: int, *, seed: int = 0) -> NDArray[np.float64]:
    """Return the first points of a shifted Sobol sequence: (count, dimensions)."""
    generator = np.random.default_rng(seed)
    points = generator.random((count, dimensions))
    index = np.arange(count)
    gray = index ^ (index >> 1)
    for dimension in range(min(dimensions, len(POLYNOMIALS) + 1)):
        column = np.zeros(count, dtype=np.int64)
        for bit, direction in enumerate(directions(dimension)):
            column ^= np.where((gray >> bit) & 1, direction, 0)
        column ^= int(generator.integers(2**BITS))
        points[:, dimension] = column / 2**BITS
    return points


def directions(dimension: int) -> list[int]:
    """Return the direction numbers of one dimension, one per bit."""
    if dimension == 0:
        return [1 << (BITS - bit - 1) for bit in range(BITS)]
    inner, first = POLYNOMIALS[dimension - 1]
    degree = len(first)
    numbers = [number << (BITS - bit - 1) for bit, number in enumerate(first)]
    for bit in range(degree, BITS):
        number = numbers[bit - degree] ^ (numbers[bit - degree] >> degree)
        for term in range(1, degree):
            if (inner >> (degree - 1 - term)) & 1:
                number ^= numbers[bit - term]
        numbers.append(number)
    return numbers
