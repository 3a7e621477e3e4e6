"""Changes of config keys: taken apart, laid over a config, and when two of them are the same change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rlx.config import layers, load
from rlx.config.yaml_lines import Document
from rlx.errors import ConfigError

TOLERANCE = 0.01
"""Two numbers closer than this, relative to themselves and, inside (0, 1), to what they leave to 1, are one change."""


def keys_of(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the single config keys that changes set: mappings are taken apart, a schedule is one value."""
    flat: dict[str, Any] = {}
    for key, value in changes.items():
        if isinstance(value, dict) and value and not set(value) <= {"linear", "cosine"}:
            flat |= {f"{key}.{inner}": item for inner, item in keys_of(value).items()}
        else:
            flat[key] = value
    return flat


def nested(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes by dotted key as the mapping that a config's file would have."""
    over: dict[str, Any] = {}
    for key, value in keys_of(changes).items():
        *parents, last = key.split(".")
        node = over
        for part in parents:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                raise ConfigError(f"`{key}` and a key above it are both set", hint="set the one or the other")
        node[last] = value
    return over


def laid(data: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Lay changes by dotted key over a config's plain data, as `-s key=value` does."""
    below = layers.Layers(Document("config", dict(data)))
    return layers.merge(below, Document("candidate", nested(changes))).document.data


def is_plain(value: object) -> bool:
    """Say whether a value is what JSON has: text, a finite number, true, false, null, lists and mappings of these."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, (list, tuple)):
        return all(is_plain(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_plain(item) for key, item in value.items())
    return value is None or isinstance(value, (str, int, bool))


def is_alike(value: object, default: object) -> bool:
    """Say whether a value is of the same type as another; whole and other numbers are one type."""
    numbers = (int, float)
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) == isinstance(default, bool)
    return isinstance(value, numbers) == isinstance(default, numbers)


def comparable(data: dict[str, Any], *, is_config: bool) -> dict[str, Any]:
    """Return a config with every default filled in, so that writing a default out is no change."""
    if not is_config:
        return data
    filled = load.document(load.parse(data))
    return {key: value for key, value in filled.items() if key not in load.NOT_IN_GROUP}


def is_close(one: object, other: object) -> bool:
    """Say whether two values are the same change: in any order of keys, and within the tolerance."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_close(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(is_close, one, other))
    if isinstance(one, bool) or isinstance(other, bool) or not _both_numbers(one, other):
        return type(one) is type(other) and one == other
    assert isinstance(one, (int, float))
    assert isinstance(other, (int, float))
    gap, scale = abs(one - other), max(abs(one), abs(other))
    if 0 < one < 1 and 0 < other < 1:  # 0.99 and 0.999 differ by what they leave to 1
        scale = min(scale, max(1 - one, 1 - other))
    return gap <= TOLERANCE * scale


def _both_numbers(one: object, other: object) -> bool:
    return isinstance(one, (int, float)) and isinstance(other, (int, float))
