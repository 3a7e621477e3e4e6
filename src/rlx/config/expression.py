"""Expressions such as `return > 200 and length < 100`: parsed, checked and worked out; nothing is executed."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from rlx.errors import did_you_mean

LONGEST = 200  # characters: enough for a predicate, too short to nest deeply
FIGURES = ("return", "length", "success", "terminated", "truncated")
"""What every episode has; the reward terms of the environment are further names."""

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
_RETURN = "return_"  # `return` is a word of Python's own


class Expression:
    """A predicate or a number over named figures; `ValueError` says what cannot be read.

    `known` are all the names there are; without it, those of an episode and any reward term.
    """

    def __init__(self, text: str, *, known: Iterable[str] | None = None) -> None:
        self.text = text
        self.tree = _parsed(text)
        if not self.names:
            named = f"{', '.join(FIGURES)} and no reward term" if known is None else ", ".join(known)
            raise ValueError(f"names none of {named}")
        if known is not None:
            _refuse_unknown(self.names, tuple(known))

    @cached_property
    def names(self) -> frozenset[str]:
        """The figures it needs."""
        return frozenset(_figure(node.id) for node in ast.walk(self.tree) if isinstance(node, ast.Name))

    @property
    def is_predicate(self) -> bool:
        """Whether it says yes or no by its form: a comparison, or several with and, or, not."""
        return _is_predicate(self.tree.body)

    def holds(self, figures: Mapping[str, float | bool]) -> bool:
        """Say whether the predicate holds; `KeyError` names a figure that the episode does not have."""
        return bool(_value(self.tree.body, figures))

    def value(self, figures: Mapping[str, float | bool]) -> float:
        """Work out the number; NaN where it cannot be, `KeyError` names a figure that is not there."""
        return float(_value(self.tree.body, figures))


def falling(text: str) -> str | None:
    """Return the number that falls as a comparison comes closer to failing: of `energy <= 20` it is `-energy`.

    None where it is no single comparison of more or less.
    """
    body = _parsed(text).body
    if not isinstance(body, ast.Compare) or len(body.ops) > 1 or isinstance(body.ops[0], (ast.Eq, ast.NotEq)):
        return None
    low, high = body.left, body.comparators[0]
    if isinstance(body.ops[0], (ast.Gt, ast.GtE)):
        low, high = high, low
    node = high if _is_bound(low) else ast.BinOp(high, ast.Sub(), low)
    return re.sub(rf"\b{_RETURN}\b", "return", ast.unparse(ast.UnaryOp(ast.USub(), low) if _is_bound(high) else node))


def _is_bound(node: ast.expr) -> bool:
    return not any(isinstance(one, ast.Name) for one in ast.walk(node))


def renamed(text: str, known: Sequence[str]) -> str | None:
    """Return an expression with every unknown name as what was probably meant; None where that is not known."""
    try:
        unknown = sorted(Expression(text).names - set(known))
    except ValueError:
        return None
    for name in unknown:
        near = did_you_mean(name, tuple(known))
        if near is None:
            return None
        text = re.sub(rf"\b{re.escape(name)}\b", near, text)
    return text if unknown else None


def _refuse_unknown(names: Iterable[str], known: tuple[str, ...]) -> None:
    for name in sorted(set(names) - set(known)):
        near = did_you_mean(name, known)
        meant = f"did you mean `{near}`?" if near else f"there are: {', '.join(known)}"
        raise ValueError(f"names `{name}`, which there is not; {meant}")


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
    return "return" if name == _RETURN else name


def _value(node: ast.expr, figures: Mapping[str, float | bool]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return figures[_figure(node.id)]
    if isinstance(node, ast.BoolOp):
        parts = (bool(_value(part, figures)) for part in node.values)
        return all(parts) if isinstance(node.op, ast.And) else any(parts)
    if isinstance(node, ast.UnaryOp):
        return _OPERATIONS[type(node.op)](_value(node.operand, figures))
    if isinstance(node, ast.BinOp):
        return _worked_out(node, figures)
    assert isinstance(node, ast.Compare)
    values = [_value(part, figures) for part in (node.left, *node.comparators)]
    return all(
        _OPERATIONS[type(how)](one, other) for how, one, other in zip(node.ops, values, values[1:], strict=False)
    )


def _worked_out(node: ast.BinOp, figures: Mapping[str, float | bool]) -> Any:
    try:
        return _OPERATIONS[type(node.op)](_value(node.left, figures), _value(node.right, figures))
    except (ZeroDivisionError, OverflowError):
        return math.nan
