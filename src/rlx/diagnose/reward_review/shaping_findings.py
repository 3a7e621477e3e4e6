"""Shaping that changes the best policy: paid for coming nearer but not charged for leaving, or paid for being near.

Only γΦ(s′) − Φ(s) is known to keep the best policy (Ng, Harada and Russell 1999).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from rlx.diagnose.reward_review.locate_reward import RewardSource
from rlx.diagnose.reward_review.reward_ast import Addend, RewardFunction, called, named
from rlx.diagnose.rule import Rule, Sighting

SHAPING = re.compile(r"shaping|potential|\bphi\b", re.I)
BEFORE = re.compile(r"(^|_)(prev(ious)?|last|old|before|prior)(_|$)", re.I)
NOW = re.compile(r"(^|_)(new|next|now|cur(rent)?|after)(_|$)", re.I)
DISCOUNT = re.compile(r"gamma|discount", re.I)
FLOORS = ("max", "maximum", "relu", "clip", "abs", "fabs")


def _farmed(source: RewardSource) -> list[Addend]:
    """Return the addends that pay for coming nearer and take nothing back."""
    farmed = [addend for addend in source.addends if _is_farmed(source.function, addend)]
    pairs = _differences(source.addends)
    return farmed + [now for before, now in pairs if _is_one_sided(before, now)]


def find_farmable_shaping(source: RewardSource) -> Iterator[Sighting]:
    """Find shaping that pays for going back and forth."""
    for addend in _farmed(source):
        claim = f"`{addend.text}` pays for coming nearer and takes nothing back: going back and forth pays for ever"
        yield Sighting((source.at(addend.node),), claim)


def find_undiscounted_shaping(source: RewardSource) -> Iterator[Sighting]:
    """Find differences of potentials without the discount."""
    farmed = _farmed(source)
    for before, now in _differences(source.addends):
        if now not in farmed and not _is_discounted(before, now):
            claim = f"`{before.text}` and `{now.text}` are a difference of potentials without the discount"
            yield Sighting((source.at(now.node),), claim)


def find_loitering(source: RewardSource) -> Iterator[Sighting]:
    """Find terms that pay every step for being near, if the reward has no difference of potentials."""
    pairs = list(_differences(source.addends))
    if pairs or _farmed(source):
        return
    has_goal = any(source.goal_reward(addend) is not None for addend in source.addends)
    for addend in source.addends:
        is_near = any(called(part) in ("exp", "tanh") or _is_inverse(part) for part in ast.walk(addend.node))
        is_meant = any(SHAPING.search(name) for name in _names_for(source.function, addend.node))
        if addend.factor > 0 and not addend.conditions and (is_meant or (is_near and has_goal)):
            claim = f"`{addend.text}` pays in every step for the position: waiting near the goal pays"
            yield Sighting((source.at(addend.node),), claim)


def _is_farmed(function: RewardFunction, addend: Addend) -> bool:
    """Say whether an addend pays only the gain of a difference between before and now."""
    node = addend.node
    if addend.factor <= 0 or not isinstance(node, ast.Call) or not _is_floor(function, node):
        return False
    inner = [part for argument in node.args for value in function.meaning(argument) for part in ast.walk(value)]
    differences = [part for part in inner if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub)]
    return any(_is_same_quantity(_word(part.left), _word(part.right)) for part in differences)


def _is_floor(function: RewardFunction, node: ast.Call) -> bool:
    """Say whether a call lets nothing negative through."""
    name = called(node)
    if name not in FLOORS:
        return False
    if name in ("abs", "fabs", "relu"):
        return True
    bounds = [function.constant(argument) for argument in (*node.args, *(word.value for word in node.keywords))]
    return 0.0 in (bounds[1:2] if name == "clip" else bounds)


def _differences(addends: tuple[Addend, ...]) -> Iterator[tuple[Addend, Addend]]:
    """Yield the pairs in which one quantity is added and subtracted, before and now."""
    for before in addends:
        for now in addends:
            old = _word(before.node)
            if before.factor * now.factor < 0 and BEFORE.search(old) and _is_same_quantity(old, _word(now.node)):
                yield before, now


def _is_same_quantity(first: str, second: str) -> bool:
    """Say whether two names are one quantity at two times: `prev_distance` and `distance`."""
    stem, other = (NOW.sub("_", BEFORE.sub("_", word)).strip("_").lower() for word in (first, second))
    return bool(stem) and stem == other and bool(BEFORE.search(first)) != bool(BEFORE.search(second))


def _word(node: ast.expr) -> str:
    """Return the name in an expression, without its factor."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        words = [_word(side) for side in (node.left, node.right)]
        return next((word for word in words if word and not DISCOUNT.search(word)), "")
    return named(node) or ""


def _is_one_sided(before: Addend, now: Addend) -> bool:
    """Say whether a difference is paid only on a condition that compares its two sides."""
    return any(before.text in text and now.text in text for text in now.conditions)


def _is_discounted(before: Addend, now: Addend) -> bool:
    ratio = abs(now.factor / before.factor)
    return 0.9 <= ratio < 1 or any(DISCOUNT.search(addend.text) for addend in (before, now))


def _is_inverse(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.left, ast.Constant)


def _names_for(function: RewardFunction, node: ast.expr) -> list[str]:
    """Return the names to which an expression was assigned in the function."""
    return [name for name, values in function.assigned.items() if any(value is node for value, _ in values)]


RULES: tuple[Rule[RewardSource], ...] = (
    Rule(
        "shaping_farmable",
        "high",
        find_farmable_shaping,
        ("pay the difference with its sign: γΦ(s′) − Φ(s)",),
        source="Ng, Harada and Russell 1999",
    ),
    Rule(
        "shaping_without_discount",
        "low",
        find_undiscounted_shaping,
        ("γΦ(s′) − Φ(s) keeps the best policy, Φ(s′) − Φ(s) nearly does",),
        source="Ng, Harada and Russell 1999",
    ),
    Rule(
        "shaping_not_potential",
        "medium",
        find_loitering,
        ("pay the difference instead: γΦ(s′) − Φ(s) with this as Φ",),
        source="Ng, Harada and Russell 1999",
    ),
)
