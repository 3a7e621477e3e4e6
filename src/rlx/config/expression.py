"""Expressions such as `return > 200 and length < 100`: parsed, checked and computed; no code is executed."""

from __future__ import annotations

import ast
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from rlx.errors import did_you_mean, hint_for

LONGEST = 200  # characters: enough for a predicate, too short to nest deeply
FIGURES = ("return", "length", "success", "terminated", "truncated")
"""The values of every episode; the environment's reward terms are further names."""

_OPERATIONS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_FORMS = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.BinOp, ast.Compare, ast.Name, ast.Load, ast.Constant,
    *_OPERATIONS,
)  # fmt: skip
_RETURN = "return_"  # `return` is a keyword of Python


class Expression:
    """A predicate or a number over named values; a `ValueError` explains an invalid text.

    `known` lists all valid names; without it, the values of an episode and any reward term are valid.
    """

    def __init__(self, text: str, *, known: Iterable[str] | None = None) -> None:
        self.text = text
        self.tree = _parsed(text)
        if not self.names:
            raise ValueError(f"uses none of {', '.join(known or (*FIGURES, 'the reward terms'))}")
        if known is not None:
            _refuse_unknown(self.names, tuple(known))

    @cached_property
    def names(self) -> frozenset[str]:
        """The values that it needs."""
        return frozenset(_figure(node.id) for node in ast.walk(self.tree) if isinstance(node, ast.Name))

    @property
    def is_predicate(self) -> bool:
        """Whether it is a yes-or-no question: a comparison, or several with and, or, not."""
        return _is_predicate(self.tree.body)

    def holds(self, figures: Mapping[str, float | bool]) -> bool:
        """Return whether the predicate holds; a `KeyError` names a value that the episode does not have."""
        return bool(_value(self.tree.body, figures))

    def value(self, figures: Mapping[str, float | bool]) -> float:
        """Return the number; NaN for a division by zero, and a `KeyError` names a missing value."""
        return float(_value(self.tree.body, figures))


def falling(text: str) -> str | None:
    """Return the number that falls as a comparison comes closer to failing: for `energy <= 20` that is `-energy`.

    None if the text is not a single comparison of more or less.
    """
    body = _parsed(text).body
    if not isinstance(body, ast.Compare) or len(body.ops) > 1 or isinstance(body.ops[0], (ast.Eq, ast.NotEq)):
        return None
    sides = [body.left, body.comparators[0]]
    if isinstance(body.ops[0], (ast.Gt, ast.GtE)):
        sides.reverse()
    low, high = sides
    margin: ast.expr = ast.BinOp(high, ast.Sub(), low)
    if _is_constant(high):
        margin = ast.UnaryOp(ast.USub(), low)
    elif _is_constant(low):
        margin = high
    return re.sub(rf"\b{_RETURN}\b", "return", ast.unparse(margin))


def _is_constant(node: ast.expr) -> bool:
    return not any(isinstance(part, ast.Name) for part in ast.walk(node))


def renamed(text: str, known: Sequence[str]) -> str | None:
    """Return an expression with every unknown name replaced by the closest known one; None if that is not possible."""
    try:
        unknown = sorted(Expression(text).names - set(known))
    except ValueError:
        return None
    for name in unknown:
        near = did_you_mean(name, tuple(known))
        if near is None:
            return None
        text = re.sub(rf"\b{re.escape(name)}\b", near, text)
    if not unknown:
        return None
    return text


def _refuse_unknown(names: Iterable[str], known: tuple[str, ...]) -> None:
    for name in sorted(set(names) - set(known)):
        hint = hint_for(name, known, otherwise=f"known: {', '.join(known)}")
        raise ValueError(f"uses the unknown name `{name}`; {hint}")


def _is_predicate(node: ast.expr) -> bool:
    if isinstance(node, ast.BoolOp):
        return all(_is_predicate(part) for part in node.values)
    is_not = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
    return is_not or isinstance(node, ast.Compare)


def _parsed(text: str) -> ast.Expression:
    if len(text) > LONGEST:
        raise ValueError(f"is longer than {LONGEST} characters")
    try:
        tree = ast.parse(re.sub(r"\breturn\b", _RETURN, text.strip()), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError("is not an expression") from None
    for node in ast.walk(tree):
        is_number = not isinstance(node, ast.Constant) or type(node.value) in (int, float, bool)
        if not isinstance(node, _FORMS) or not is_number:
            raise ValueError("has more than names, numbers, comparisons, + - * /, and, or, not")
    return tree


def _figure(name: str) -> str:
    return {_RETURN: "return"}.get(name, name)


def _value(node: ast.expr, figures: Mapping[str, float | bool]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return figures[_figure(node.id)]
    if isinstance(node, ast.BoolOp):
        parts = (bool(_value(part, figures)) for part in node.values)
        if isinstance(node.op, ast.And):
            return all(parts)
        return any(parts)
    if isinstance(node, ast.UnaryOp):
        return _OPERATIONS[type(node.op)](_value(node.operand, figures))
    if isinstance(node, ast.BinOp):
        return _compute(node, figures)
    assert isinstance(node, ast.Compare)
    values = [_value(part, figures) for part in (node.left, *node.comparators)]
    pairs = itertools.pairwise(values)
    return all(_OPERATIONS[type(op)](left, right) for op, (left, right) in zip(node.ops, pairs, strict=True))


def _compute(node: ast.BinOp, figures: Mapping[str, float | bool]) -> Any:
    try:
        return _OPERATIONS[type(node.op)](_value(node.left, figures), _value(node.right, figures))
    except (ZeroDivisionError, OverflowError):
        return math.nan
