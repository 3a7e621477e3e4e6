"""Where two captured states differ, to the bit, with names for people."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlx.envs.capture import State


def same(one: Any, other: Any) -> bool:
    """Say whether two captured values are equal to the bit; NaN equals NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype) and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return bool(one == other) or (one != one and other != other)


def differences(one: State, other: State) -> list[str]:
    """Return the attributes in which two states differ, as `Class.attribute`."""
    if same(one, other):
        return []
    mine, theirs = _Places(one), _Places(other)
    labels = {**theirs.labels, **mine.labels}
    odd = [place for place in labels if not same(mine.values.get(place), theirs.values.get(place))]
    return list(dict.fromkeys(labels[place] or "the environment" for place in odd))


class _Places:
    """Every plain value of a state by its place, with a label: the innermost object's class and the attribute."""

    def __init__(self, state: State) -> None:
        self.nodes = state["nodes"]
        self.places: dict[int, str] = {}
        self.values: dict[str, Any] = {}
        self.labels: dict[str, str] = {}
        self._walk(state["root"], "", "")

    def _walk(self, value: Any, place: str, label: str) -> None:
        if _is_reference(value, len(self.nodes)):
            self._node(value[1], place, label)
        elif isinstance(value, dict):
            for key, item in value.items():
                self._walk(item, f"{place}/{key}", label)
        elif isinstance(value, (list, tuple)):
            self.values[f"{place}#"], self.labels[f"{place}#"] = len(value), label
            for index, item in enumerate(value):
                self._walk(item, f"{place}/{index}", label)
        else:
            self.values[place], self.labels[place] = value, label

    def _node(self, number: int, place: str, label: str) -> None:
        if number in self.places:  # seen from elsewhere: what matters is that it is the same one
            self.values[place], self.labels[place] = self.places[number], label
            return
        self.places[number] = place
        node = self.nodes[number]
        if node[0] != "object":
            self._walk(node[1:], place, label)
            return
        owner = node[1].rpartition(".")[2]
        self.values[f"{place}:"], self.labels[f"{place}:"] = [node[1], *sorted(node[2])], f"{owner}'s attributes"
        for name, item in sorted(node[2].items()):  # the order in which attributes were first set is no state
            self._walk(item, f"{place}.{name}", f"{owner}.{name}")
        self._walk(node[4], f"{place}[]", f"{owner}[]")


def _is_reference(value: Any, count: int) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and value[0] == "ref"
        and type(value[1]) is int
        and (0 <= value[1] < count)
    )
