"""Spaces: parsing, the way between points and configs, conditions, and bad input."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml

from rlx.errors import UsageError
from rlx.search.parse_space import parse_space, space_of
from rlx.search.space import Choice, Range, Space


def space(*texts: str) -> Space:
    return parse_space(texts, read=yaml.safe_load)


def test_every_form_of_the_command_line_is_read() -> None:
    found = space("lr=log:0.00001:0.01", "gamma=0.98,0.99", "clip=0.1:0.9", "layers=int:1:8", "sizes=[64,64],[128,128]")
    domains = {parameter.key: parameter.domain for parameter in found.parameters}
    assert domains == {
        "lr": Range(0.00001, 0.01, is_log=True),
        "gamma": Choice((0.98, 0.99)),
        "clip": Range(0.1, 0.9),
        "layers": Range(1, 8, is_whole=True),
        "sizes": Choice(([64, 64], [128, 128])),
    }


def test_a_sweep_file_can_write_lists_texts_and_mappings() -> None:
    document: dict[str, Any] = {
        "a": [1, 2],
        "b": "int:log:16:1024",
        "c": {"low": 0.0, "high": 1.0, "if": {"a": 2}},
        "d": {"values": ["x", "y"]},
    }
    found = space_of(document, read=yaml.safe_load)
    assert found.at((0.0, 1.0, 0.5, 0.9)) == {"a": 1, "b": 1024, "d": "y"}
    assert found.at((0.9, 0.0, 0.5, 0.1)) == {"a": 2, "b": 16, "c": 0.5, "d": "x"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seed=1,2", "seeds are replicates"),
        ("seeds=int:1:8", "seeds are replicates"),
        ("lr=log:-1:1", "logarithmic range cannot start at -1"),
        ("lr=log:0:1", "logarithmic range cannot start at 0"),
        ("lr=2:1", "is empty"),
        ("lr=1:1", "is empty"),
        ("lr=int:0.5:2", "not a whole number"),
        ("lr=log:a:b", "is not a number"),
        ("lr=log:1", "is not a range"),
        ("lr=0.9:", "`0.9:` is not a range"),
        ("lr=", "`key=values`"),
        ("lr", "`key=values`"),
        ("lr=1,,2", "empty value"),
        ("lr=0.1:0.2 if algo.name", "is not `KEY=value`"),
        ("lr=0.1:0.2 if algo.name=ppo", "which is not a parameter before it"),
    ],
)
def test_bad_input_is_one_clear_line_with_a_hint(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        space(text)
    assert caught.value.hint
    assert "\n" not in caught.value.message


def test_a_key_cannot_be_in_the_space_twice() -> None:
    with pytest.raises(UsageError, match="twice"):
        space("a=1,2", "a=3,4")


def test_a_point_and_its_config_lead_to_each_other() -> None:
    found = space("a=log:0.001:1", "b=int:1:4", "c=x,y,z", "d=0:1 if c=y")
    for point in ((0.1, 0.2, 0.5, 0.9), (1.0, 1.0, 0.99, 0.0), (0.0, 0.0, 0.0, 0.5)):
        values = found.at(point)
        again = found.point(values)
        assert again is not None
        assert found.identity(found.at(again)) == found.identity(values)
    assert found.point({"a": 5.0, "b": 1, "c": "x"}) is None


def test_whole_numbers_are_equally_likely() -> None:
    found = Range(1, 4, is_whole=True)
    counts = [sum(found.value((index + 0.5) / 1000) == number for index in range(1000)) for number in (1, 2, 3, 4)]
    assert counts == [250, 250, 250, 250]


def test_equal_configs_have_one_identity() -> None:
    found = space("a=0:1", "b=[64,64],[128]", "c=1,true")
    assert found.identity({"a": 0.5, "b": [64, 64], "c": 1}) == found.identity(
        {"a": 0.5 + 1e-9, "b": (64, 64), "c": 1.0}
    )
    assert found.identity({"a": 0.5, "b": [64, 64], "c": 1}) != found.identity({"a": 0.5, "b": [64, 64], "c": True})
    assert found.identity({"a": 0.5, "b": [64, 64]}) != found.identity({"a": 0.51, "b": [64, 64]})


def test_the_grid_respects_conditions() -> None:
    found = space("a=x,y", "b=1,2,3 if a=y")
    assert list(found.grid()) == [{"a": "x"}, {"a": "y", "b": 1}, {"a": "y", "b": 2}, {"a": "y", "b": 3}]
    assert found.size == 4
    assert math.isinf(space("a=0:1").size)
