"""Configs are compared key by key."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlx.config.diff import ConfigChange, diff, is_same


@pytest.mark.parametrize(
    ("a", "b", "changes"),
    [
        ({}, {}, []),
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [ConfigChange("a", 1, 2)]),
        ({"b": 1}, {"a": 1}, [ConfigChange("a", None, 1), ConfigChange("b", 1, None)]),
        ({"x": {"y": {"z": 1, "w": 0}}}, {"x": {"y": {"z": 2, "w": 0}}}, [ConfigChange("x.y.z", 1, 2)]),
        ({"x": {"y": 1}}, {}, [ConfigChange("x.y", 1, None)]),
        ({}, {"x": {"y": {"z": 1}}}, [ConfigChange("x.y.z", None, 1)]),
        ({"x": {}}, {}, []),
        ({"l": [64, 64]}, {"l": [64]}, [ConfigChange("l", [64, 64], [64])]),
        ({"l": [1, 2]}, {"l": (1, 2)}, []),
        ({"l": [{"a": 1}]}, {"l": [{"a": 2}]}, [ConfigChange("l", [{"a": 1}], [{"a": 2}])]),
        ({"r": 0.1}, {"r": {"linear": [1, 0]}}, [ConfigChange("r", 0.1, {"linear": [1, 0]})]),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, [ConfigChange("a", 1, True)]),
        ({"a": math.nan}, {"a": math.nan}, []),
        ({"a": "1"}, {"a": 1}, [ConfigChange("a", "1", 1)]),
        (
            {"b": 1, "a": {"z": 1, "b": 1}, "a.c": 1},
            {},
            [
                ConfigChange("a.b", 1, None),
                ConfigChange("a.c", 1, None),
                ConfigChange("a.z", 1, None),
                ConfigChange("b", 1, None),
            ],
        ),
    ],
)
def test_changes_are_sorted_by_dotted_key(a: dict[str, Any], b: dict[str, Any], changes: list[ConfigChange]) -> None:
    assert diff(a, b) == changes


TREES = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=3),
)
MAPPINGS = st.dictionaries(st.text("abc", min_size=1, max_size=2), TREES, max_size=3)


@given(MAPPINGS, MAPPINGS)
def test_turned_round_the_changes_turn_round(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert [(c.key, c.after, c.before) for c in diff(a, b)] == [(c.key, c.before, c.after) for c in diff(b, a)]
    assert diff(a, a) == []
    assert all(not is_same(change.before, change.after) for change in diff(a, b))
