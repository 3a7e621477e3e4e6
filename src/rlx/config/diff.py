"""What differs between two configs, key by key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Change:
    """One key that differs; None where a side does not have it."""

    key: str
    before: Any
    after: Any


def diff(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Change]:
    """Return the changes from `a` to `b`, sorted by dotted key; lists count whole, an empty mapping is no key."""
    return sorted(_changes(a, b, ""), key=lambda change: change.key)


def _changes(a: Mapping[str, Any], b: Mapping[str, Any], prefix: str) -> Iterator[Change]:
    for key in {**a, **b}:
        before, after, name = a.get(key), b.get(key), f"{prefix}{key}"
        if _is_mapping_or_absent(before) and _is_mapping_or_absent(after):
            yield from _changes(before or {}, after or {}, f"{name}.")
        elif not is_same(before, after):
            yield Change(name, before, after)


def _is_mapping_or_absent(value: object) -> bool:
    return value is None or isinstance(value, Mapping)


def is_same(a: object, b: object) -> bool:
    """Say whether two values are equal: 1 is 1.0, but not true; NaN is itself."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(is_same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(is_same(a[key], b[key]) for key in a)
    if isinstance(a, bool) != isinstance(b, bool):
        return False
    return a == b or (a != a and b != b)
