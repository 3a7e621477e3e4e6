"""A reward function as review reads it: where it stands, how long its episodes are, what its parts are worth."""

from __future__ import annotations

import ast
import re

from rlx.diagnose.finding import Evidence
from rlx.diagnose.reward_code import Addend, RewardFunction, named

GOAL = re.compile(r"goal|succe|reach|arriv|finish|solved|target|landed|win\b|won\b", re.I)


class Reading:
    """A reward function, where it stands, and how long its episodes are."""

    def __init__(self, function: RewardFunction, place: str, horizon: int) -> None:
        self.function, self.place, self.horizon = function, place, horizon
        self.addends = function.addends

    def at(self, node: ast.AST, text: str | None = None) -> Evidence:
        return Evidence(f"{self.place}:{getattr(node, 'lineno', 0)}", text or ast.unparse(node))

    def amount(self, addend: Addend) -> float | None:
        """Return what an addend is worth where it is a constant, or a yes or no times one."""
        value = self.function.constant(addend.node)
        if value is not None:
            return addend.factor * value
        return addend.factor if is_boolean(self.function, addend.node) else None

    def finishing(self, addend: Addend) -> float | None:
        """Return what an addend pays for reaching the goal; None where it does not."""
        amount = self.amount(addend)
        return amount if amount is not None and amount > 0 and is_goal(addend) else None


def is_goal(addend: Addend) -> bool:
    """Say whether an addend is about the goal, by its words and those of its conditions."""
    meant = [text for text in (*addend.conditions, addend.text) if not text.startswith("not ")]
    return any(GOAL.search(text) for text in meant)


def is_boolean(function: RewardFunction, node: ast.expr, depth: int = 0) -> bool:
    """Say whether an expression is a yes or no: a comparison, or a name that stands for one or for reaching a goal."""
    if isinstance(node, (ast.Compare, ast.BoolOp)) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return True
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return True
    if depth < 4 and (name := named(node)) in function.assigned:
        assert name is not None
        return all(is_boolean(function, value, depth + 1) for value, _ in function.assigned[name])
    return (named(node) or "").removeprefix("_") in ("terminated", "truncated", "done", "is_success", "success")
