"""A search space: parameters with their ranges or values, and the way between a config and a point of the unit cube.

Samplers work on points of [0, 1]^d, one coordinate per parameter. A number maps linearly or by its logarithm, a choice
by its position in the list. A parameter with a condition counts only if another parameter has one of some values.
The seed is never a parameter: seeds are replicates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rlx.errors import UsageError

Values = dict[str, Any]
"""One config of the space: key → value. A parameter whose condition does not hold is missing."""
Point = tuple[float, ...]
TOLERANCE = 1e-6
"""Two numbers closer than this share of their range are the same config."""
GRID_LEVELS = 5
MOST_COUNTED = 1_000
"""A space with conditions or forbidden configs is counted one by one if it is not larger."""
SEED_KEYS = ("seed", "seeds")


@dataclass(frozen=True)
class Condition:
    """A parameter counts only if another one has one of these values."""

    key: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, evenly spread or by their logarithm, perhaps whole numbers only."""

    low: float
    high: float
    is_log: bool = False
    is_whole: bool = False

    @property
    def count(self) -> float:
        """How many values there are."""
        if self.is_whole:
            return int(self.high) - int(self.low) + 1
        return math.inf

    def value(self, unit: float) -> Any:
        """Return the value at a position of [0, 1]."""
        unit = min(1.0, max(0.0, unit))
        low = self.low
        high = self.high
        if self.is_whole:  # every whole number gets the same width, also the first and the last
            low -= 0.5 - 1e-9
            high += 0.5 - 1e-9
        if self.is_log:
            value = math.exp(math.log(low) + unit * (math.log(high) - math.log(low)))
        else:
            value = low + unit * (high - low)
        if self.is_whole:
            return min(int(self.high), max(int(self.low), round(value)))
        return float(f"{min(self.high, max(self.low, value)):.6g}")

    def unit(self, value: Any) -> float | None:
        """Return the position of a value in [0, 1]; None if it is not in the range."""
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not self.low <= value <= self.high:
            return None
        if self.high == self.low:
            return 0.5
        low = self.low
        high = self.high
        if self.is_log:
            return (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))
        return float((value - low) / (high - low))

    def levels(self) -> list[Any]:
        """Return the values of a grid."""
        if self.count <= GRID_LEVELS:
            return self.all_values()
        return list(dict.fromkeys(self.value(index / (GRID_LEVELS - 1)) for index in range(GRID_LEVELS)))

    def all_values(self) -> list[Any]:
        """Return all whole numbers of the range; an error if there are fractions."""
        assert self.is_whole
        return list(range(int(self.low), int(self.high) + 1))

    def identity(self, value: Any) -> object:
        """Return the same object for values that are equal within tolerance."""
        unit = self.unit(value)
        if unit is None:
            return value
        return round(unit / TOLERANCE)


@dataclass(frozen=True)
class Choice:
    """Some values, which need not be numbers: lists, words, true and false."""

    values: tuple[Any, ...]

    @property
    def count(self) -> float:
        return len(self.values)

    @property
    def is_ordered(self) -> bool:
        """Whether the values are increasing numbers, so that neighbours are alike."""
        if any(isinstance(value, bool) or not isinstance(value, (int, float)) for value in self.values):
            return False
        return list(self.values) == sorted(self.values)

    def value(self, unit: float) -> Any:
        """Return the value at a position of [0, 1]."""
        return self.values[min(len(self.values) - 1, max(0, int(unit * len(self.values))))]

    def unit(self, value: Any) -> float | None:
        """Return the middle of a value's share of [0, 1]; None if it is not one of the values."""
        for index, known in enumerate(self.values):
            if self.identity(known) == self.identity(value):
                return (index + 0.5) / len(self.values)
        return None

    def levels(self) -> list[Any]:
        """Return all values."""
        return list(self.values)

    def all_values(self) -> list[Any]:
        """Return all values."""
        return list(self.values)

    def identity(self, value: Any) -> object:
        """Return the same object for equal values: 1 equals 1.0 but not true."""
        return plain_identity(value)


def plain_identity(value: Any) -> object:
    """Return a value that can be hashed and that is the same for equal YAML values."""
    if isinstance(value, (list, tuple)):
        return tuple(plain_identity(item) for item in value)
    if isinstance(value, Mapping):
        return tuple((str(key), plain_identity(value[key])) for key in sorted(value, key=str))
    return (isinstance(value, bool), value)


@dataclass(frozen=True)
class Parameter:
    """One key of the config, the values it may take, and the condition under which it counts."""

    key: str
    domain: Range | Choice
    condition: Condition | None = None


@dataclass(frozen=True)
class Space:
    """The parameters of a search. A parameter comes after the one that its condition names.

    `allows` says whether a combination of values can be trained at all; no sampler proposes one that cannot.
    """

    parameters: tuple[Parameter, ...]
    allows: Callable[[Values], bool] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        keys = [parameter.key for parameter in self.parameters]
        for index, parameter in enumerate(self.parameters):
            key = parameter.key
            if key in SEED_KEYS:
                message = f"`{key}` cannot be a parameter: seeds are replicates, and the best one is only lucky"
                raise UsageError(message, hint="the race over seeds is part of every sweep: --race 3,6,10")
            if keys.count(key) > 1:
                raise UsageError(f"`{key}` is in the space twice", hint="write all its values in one place")
            condition = parameter.condition
            if condition and condition.key not in keys[:index]:
                message = f"`{key}` depends on `{condition.key}`, which is not a parameter before it"
                raise UsageError(message, hint=f"write `{condition.key}` first")

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(parameter.key for parameter in self.parameters)

    @cached_property
    def size(self) -> float:
        """The number of configs: infinity if a parameter takes any number of a range."""
        if any(math.isinf(parameter.domain.count) for parameter in self.parameters):
            return math.inf
        product = math.prod(parameter.domain.count for parameter in self.parameters)
        is_plain = self.allows is None and not any(parameter.condition for parameter in self.parameters)
        if product > MOST_COUNTED or is_plain:
            return product
        return sum(1 for values in self.configs() if self.is_allowed(values))

    def at(self, point: Sequence[float]) -> Values:
        """Return the config at a point of the unit cube."""
        values: Values = {}
        for parameter, unit in zip(self.parameters, point, strict=True):
            if self.counts(parameter, values):
                values[parameter.key] = parameter.domain.value(unit)
        return values

    def point(self, values: Mapping[str, Any]) -> Point | None:
        """Return the point of a config; None if one of its values is not in the space."""
        point = []
        for parameter in self.parameters:
            unit: float | None = 0.5  # a parameter that does not count has no influence
            if parameter.key in values:
                unit = parameter.domain.unit(values[parameter.key])
            elif self.counts(parameter, values):
                unit = None
            if unit is None:
                return None
            point.append(unit)
        return tuple(point)

    def features(self, values: Mapping[str, Any]) -> list[float]:
        """Return a config as a model sees it: one coordinate per number, one per value of an unordered choice."""
        features: list[float] = []
        for parameter in self.parameters:
            domain = parameter.domain
            unit = None
            if parameter.key in values:
                unit = domain.unit(values[parameter.key])
            if isinstance(domain, Choice) and not domain.is_ordered:
                chosen = -1
                if unit is not None:
                    chosen = int(unit * len(domain.values))
                features += [0.7 * (index == chosen) for index in range(len(domain.values))]
            elif unit is None:
                features.append(0.5)
            else:
                features.append(unit)
        return features

    def identity(self, values: Mapping[str, Any]) -> tuple[object, ...]:
        """Return the same object for configs that are equal within tolerance."""
        return tuple(
            (parameter.key, parameter.domain.identity(values[parameter.key]))
            for parameter in self.parameters
            if parameter.key in values
        )

    def is_allowed(self, values: Values) -> bool:
        """Return whether a config can be trained."""
        return self.allows is None or self.allows(values)

    def grid(self) -> Iterator[Values]:
        """Yield every combination of the grid's levels once; the last parameter changes fastest."""
        yield from self._combinations([parameter.domain.levels() for parameter in self.parameters], {})

    def configs(self) -> Iterator[Values]:
        """Yield every config of a space without ranges of fractions; the last parameter changes fastest."""
        yield from self._combinations([parameter.domain.all_values() for parameter in self.parameters], {})

    def _combinations(self, levels: Sequence[Sequence[Any]], values: Values, index: int = 0) -> Iterator[Values]:
        if index == len(self.parameters):
            yield dict(values)
            return
        parameter = self.parameters[index]
        if not self.counts(parameter, values):
            yield from self._combinations(levels, values, index + 1)
            return
        for value in levels[index]:
            yield from self._combinations(levels, {**values, parameter.key: value}, index + 1)

    def counts(self, parameter: Parameter, values: Mapping[str, Any]) -> bool:
        """Return whether a parameter counts, given the values before it."""
        condition = parameter.condition
        if condition is None:
            return True
        if condition.key not in values:
            return False
        return any(plain_identity(value) == plain_identity(values[condition.key]) for value in condition.values)
