"""The differences between two configs, key by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ConfigChange:
    """One key that differs; a side that does not have it is None."""

    key: str
    before: Any
    after: Any


def diff(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[ConfigChange]:
    """Return the changes from `a` to `b`, sorted by dotted key; a list is one value, an empty mapping is ignored."""
    return sorted(_changes(a, b, ""), key=lambda change: change.key)


def _changes(a: Mapping[str, Any], b: Mapping[str, Any], prefix: str) -> Iterator[ConfigChange]:
    for key in {**a, **b}:
        before = a.get(key)
        after = b.get(key)
        name = f"{prefix}{key}"
        if _is_mapping_or_absent(before) and _is_mapping_or_absent(after):
            yield from _changes(before or {}, after or {}, f"{name}.")
        elif not is_same(before, after):
            yield ConfigChange(name, before, after)


def _is_mapping_or_absent(value: object) -> bool:
    return value is None or isinstance(value, Mapping)


def is_same(a: object, b: object) -> bool:
    """Return whether two values are equal: 1 equals 1.0 but not true, and NaN equals NaN."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(is_same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(is_same(a[key], b[key]) for key in a)
    if isinstance(a, bool) != isinstance(b, bool):
        return False
    return a == b or (a != a and b != b)
