"""Changes of config keys: flatten them, apply them to a config, and tell whether two are the same change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rlx.config import layers, load
from rlx.config.yaml_lines import Document
from rlx.errors import ConfigError

TOLERANCE = 0.01  # two numbers whose relative difference is smaller count as the same change


def flat_keys(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes by single dotted keys: nested mappings are flattened, a schedule is one value."""
    flat: dict[str, Any] = {}
    for key, value in changes.items():
        if isinstance(value, dict) and value and not set(value) <= {"linear", "cosine"}:
            flat |= {f"{key}.{inner}": item for inner, item in flat_keys(value).items()}
        else:
            flat[key] = value
    return flat


def nested(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return changes by dotted key as the nested mapping of a config file."""
    mapping: dict[str, Any] = {}
    for key, value in flat_keys(changes).items():
        *parents, last = key.split(".")
        node = mapping
        for part in parents:
            node = node.setdefault(part, {})
            if not isinstance(node, dict):
                raise ConfigError(f"`{key}` and a key above it are both set", hint="set the one or the other")
        node[last] = value
    return mapping


def apply_changes(data: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Apply changes by dotted key to a config's plain data, as `-s key=value` does."""
    below = layers.Layers(Document("config", dict(data)))
    return layers.merge(below, Document("candidate", nested(changes))).document.data


def is_plain(value: object) -> bool:
    """Say whether JSON can hold a value: text, a finite number, true, false, null, lists and mappings of these."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, (list, tuple)):
        return all(is_plain(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_plain(item) for key, item in value.items())
    return value is None or isinstance(value, (str, int, bool))


def is_alike(value: object, default: object) -> bool:
    """Say whether two values have the same type; integers and floats are one type."""
    numbers = (int, float)
    if isinstance(default, bool) or isinstance(value, bool):
        return isinstance(value, bool) == isinstance(default, bool)
    return isinstance(value, numbers) == isinstance(default, numbers)


def comparable(data: dict[str, Any], *, is_config: bool) -> dict[str, Any]:
    """Return a config with every default filled in, so that a written-out default is not a change."""
    if not is_config:
        return data
    filled = load.document(load.parse(data))
    return {key: value for key, value in filled.items() if key not in load.NOT_IN_GROUP}


def is_close(value: object, other: object) -> bool:
    """Say whether two values are the same change: in any order of keys, and within the tolerance."""
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return value.keys() == other.keys() and all(is_close(value[key], other[key]) for key in value)
    if isinstance(value, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(value) == len(other) and all(map(is_close, value, other))
    numbers = (int, float)
    has_bool = isinstance(value, bool) or isinstance(other, bool)
    if has_bool or not isinstance(value, numbers) or not isinstance(other, numbers):
        return type(value) is type(other) and value == other
    scale = max(abs(value), abs(other))
    if 0 < value < 1 and 0 < other < 1:  # 0.99 and 0.999 are compared by their distance from 1
        scale = min(scale, max(1 - value, 1 - other))
    return abs(value - other) <= TOLERANCE * scale
