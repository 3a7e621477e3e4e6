"""A reward function as the review reads it: its place, the length of its episodes, and the worth of its parts."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from rlx.diagnose.finding import Evidence
from rlx.diagnose.reward_review.reward_ast import Addend, RewardFunction, named

GOAL = re.compile(r"goal|succe|reach|arriv|finish|solved|target|landed|win\b|won\b", re.I)
GOAL_NAMES = ("terminated", "truncated", "done", "is_success", "success")


@dataclass(frozen=True)
class RewardSource:
    """A reward function, the file it stands in, and how many steps an episode has."""

    function: RewardFunction
    place: str
    horizon: int

    @property
    def addends(self) -> tuple[Addend, ...]:
        return self.function.addends

    def at(self, node: ast.AST, text: str | None = None) -> Evidence:
        """Return a piece of the source with its line as evidence."""
        return Evidence(f"{self.place}:{getattr(node, 'lineno', 0)}", text or ast.unparse(node))

    def amount(self, addend: Addend) -> float | None:
        """Return what an addend is worth if it is a constant, or a boolean times a constant."""
        value = self.function.constant(addend.node)
        if value is not None:
            return addend.factor * value
        if is_boolean(self.function, addend.node):
            return addend.factor
        return None

    def goal_reward(self, addend: Addend) -> float | None:
        """Return what an addend pays for reaching the goal, or None if it does not."""
        amount = self.amount(addend)
        if amount is None or amount <= 0 or not is_goal(addend):
            return None
        return amount


def is_goal(addend: Addend) -> bool:
    """Say whether an addend is about the goal, by its words and those of its conditions."""
    return any(GOAL.search(text) for text in (*addend.conditions, addend.text) if not text.startswith("not "))


def is_boolean(function: RewardFunction, node: ast.expr, depth: int = 0) -> bool:
    """Say whether an expression is a boolean: a comparison, or a name that stands for one or for reaching a goal."""
    if isinstance(node, (ast.Compare, ast.BoolOp)) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return True
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return True
    name = named(node) or ""
    if depth < 4 and name in function.assigned:
        return all(is_boolean(function, value, depth + 1) for value, _ in function.assigned[name])
    return name.removeprefix("_") in GOAL_NAMES
