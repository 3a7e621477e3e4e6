"""Pass predicates: what they say, and that nothing else is read or executed."""

from __future__ import annotations

from typing import Any

import pytest

from rlx.config.expression import Expression, falling, renamed

FIGURES: dict[str, Any] = {"return": 250.0, "length": 80, "terminated": True, "truncated": False, "energy": -2.5}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("return > 200", True),
        ("return > 200 and length < 50", False),
        ("return > 200 and length < 50 or terminated", True),
        ("not truncated", True),
        ("100 < return <= 250", True),
        ("return / length >= 3", True),
        ("-energy * 2 == 5", True),
        ("energy + 2.5 != 0", False),
        ("length / (energy + 2.5) > 0", False),
        ("  terminated  ", True),
    ],
)
def test_a_predicate_is_worked_out(text: str, holds: bool) -> None:
    assert Expression(text).holds(FIGURES) is holds


def test_the_figures_it_needs_are_known() -> None:
    assert Expression("return > energy and not truncated").names == {"return", "energy", "truncated"}


def test_a_figure_that_is_not_there_is_named() -> None:
    with pytest.raises(KeyError, match="success"):
        Expression("success").holds(FIGURES)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "open('/etc/passwd')",
        "return.real > 1",
        "(lambda: 1)()",
        "[x for x in (1, 2)]",
        "return ** 9 ** 9",
        "return % 2 == 0",
        "return if length else 1",
        "'a' < length",
        "length := 3",
        "length[0]",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"has more than names|is not an expression"):
        Expression(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not an expression"),
        ("return >", "is not an expression"),
        ("return > 1; length", "is not an expression"),
        ("return > 1 #" + "x" * 200, "longer than 200"),
        ("1 < 2", "uses none of return"),
        ("(" * 150 + "length" + ")" * 40, "is not an expression"),
    ],
)
def test_what_cannot_be_read_says_why(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Expression(text)


def test_a_number_is_worked_out_too() -> None:
    assert Expression("-energy * 2 + length").value(FIGURES) == 85.0
    assert Expression("terminated").value(FIGURES) == 1.0


def test_only_known_names_are_read_where_they_are_given() -> None:
    assert Expression("spent > 0.5", known=("spent", "hours")).names == {"spent"}
    with pytest.raises(ValueError, match=r"uses the unknown name `spend`; did you mean `spent`\?"):
        Expression("spend > 0.5", known=("spent", "hours"))
    with pytest.raises(ValueError, match="known: spent, hours"):
        Expression("x > 0.5", known=("spent", "hours"))
    with pytest.raises(ValueError, match="uses none of spent, hours"):
        Expression("1 > 0", known=("spent", "hours"))


@pytest.mark.parametrize(
    ("text", "is_predicate"),
    [
        ("a > 1", True),
        ("a > 1 and b < 2", True),
        ("not a", True),
        ("a", False),
        ("-a + 1", False),
        ("a or b > 1", False),
    ],
)
def test_a_predicate_says_yes_or_no_by_its_form(text: str, is_predicate: bool) -> None:
    assert Expression(text).is_predicate is is_predicate


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("energy <= 20", "-energy"),
        ("20 > energy", "-energy"),
        ("return >= -5", "return"),
        ("falls + slips < 3", "-(falls + slips)"),
        ("height > 2 * width", "height - 2 * width"),
        ("energy <= 20 and falls < 3", None),
        ("falls == 0", None),
        ("energy", None),
    ],
)
def test_of_a_comparison_the_number_that_must_not_fall_is_known(text: str, number: str | None) -> None:
    assert falling(text) == number


def test_names_that_are_not_there_become_those_that_were_meant() -> None:
    assert renamed("-enrgy + falls", ("energy", "falls")) == "-energy + falls"
    assert renamed("-fuel", ("energy", "falls")) is None
    assert renamed("energy >", ("energy",)) is None
