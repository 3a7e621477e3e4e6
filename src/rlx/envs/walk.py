"""Everything an environment holds, object by object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlx.envs.kinds import LEAVES, attributes_of, is_description, kind_of, payload_of


def walk(root: object) -> Iterator[Any]:
    """Yield every object that is reachable from `root` through attributes and containers, once."""
    seen: set[int] = set()
    waiting: list[Any] = [root]
    alive: list[Any] = []  # an id is only good while its object lives
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        alive.append(value)
        yield value
        kind = kind_of(type(value))
        if kind in ("object", "list", "tuple", "named", "set", "frozenset", "deque", "dict"):
            waiting.extend(_parts(value, kind))
        elif kind == "method":
            waiting.append(value.__self__)


def _parts(value: Any, kind: str) -> list[Any]:
    parts: list[Any] = []
    if isinstance(value, dict):
        parts = [*value.keys(), *value.values()]
    elif kind != "object" or payload_of(type(value)) is not None:
        parts = list(value)
    if kind == "object":
        parts += [item for name, item in attributes_of(value).items() if not is_description(value, name)]
    return [part for part in parts if type(part) not in LEAVES]
