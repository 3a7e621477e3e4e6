"""Compares two captured states bit by bit, and names the attributes that differ."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlx.envs.snapshot.capture import State


def same(left: Any, right: Any) -> bool:
    """Return whether two captured values are equal to the bit; NaN equals NaN."""
    if type(left) is not type(right):
        return False
    if isinstance(left, np.ndarray):
        return bool(left.dtype == right.dtype) and left.shape == right.shape and left.tobytes() == right.tobytes()
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    return bool(left == right) or (left != left and right != right)


def differences(left: State, right: State) -> list[str]:
    """Return the attributes in which two states differ, as `Class.attribute`."""
    if same(left, right):
        return []
    left_places = _Places(left)
    right_places = _Places(right)
    labels = {**right_places.labels, **left_places.labels}
    different = [place for place in labels if not same(left_places.values.get(place), right_places.values.get(place))]
    return list(dict.fromkeys(labels[place] or "the environment" for place in different))


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
            self._set(f"{place}#", len(value), label)
            for index, item in enumerate(value):
                self._walk(item, f"{place}/{index}", label)
        else:
            self._set(place, value, label)

    def _set(self, place: str, value: Any, label: str) -> None:
        self.values[place] = value
        self.labels[place] = label

    def _node(self, number: int, place: str, label: str) -> None:
        if number in self.places:  # reached before: it only matters that it is the same node
            self._set(place, self.places[number], label)
            return
        self.places[number] = place
        node = self.nodes[number]
        if node[0] != "object":
            self._walk(node[1:], place, label)
            return
        owner = node[1].rpartition(".")[2]
        self._set(f"{place}:", [node[1], *sorted(node[2])], f"{owner}'s attributes")
        for name, item in sorted(node[2].items()):  # the order in which attributes were set is not state
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
