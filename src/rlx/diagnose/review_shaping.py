"""Shaping that changes what is best: paid for coming nearer but not charged for leaving, or paid for being near.

Only γΦ(s′) − Φ(s) is known to leave the best policy as it is (Ng, Harada and Russell 1999).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from rlx.diagnose.finding import Finding
from rlx.diagnose.reward_code import Addend, RewardFunction, called, named
from rlx.diagnose.reward_reading import Reading

SHAPING = re.compile(r"shaping|potential|\bphi\b", re.I)
BEFORE = re.compile(r"(^|_)(prev(ious)?|last|old|before|prior)(_|$)", re.I)
NOW = re.compile(r"(^|_)(new|next|now|cur(rent)?|after)(_|$)", re.I)
DISCOUNT = re.compile(r"gamma|discount", re.I)
FLOORS = ("max", "maximum", "relu", "clip", "abs", "fabs")


def shaping(reading: Reading) -> Iterator[Finding]:
    """Find shaping that can be farmed, that lacks the discount, or that pays for where one is."""
    farmed = [addend for addend in reading.addends if _is_farmed(reading.function, addend)]
    pairs = list(_differences(reading.addends))
    farmed += [now for before, now in pairs if _is_one_sided(before, now)]
    for addend in farmed:
        claim = f"`{addend.text}` pays for coming nearer and takes nothing back: going to and fro is paid for ever"
        tries = ("pay the difference with its sign: γΦ(s′) − Φ(s)",)
        yield Finding("shaping_farmable", "high", claim, (reading.at(addend.node),), tries)
    for before, now in pairs:
        if now not in farmed and not _is_discounted(before, now):
            claim = f"`{before.text}` and `{now.text}` are a difference of potentials without the discount"
            tries = ("γΦ(s′) − Φ(s) keeps the best policy, Φ(s′) − Φ(s) nearly does",)
            yield Finding("shaping_without_discount", "low", claim, (reading.at(now.node),), tries)
    if not farmed and not pairs:
        yield from _loitering(reading)


def _is_farmed(function: RewardFunction, addend: Addend) -> bool:
    """Say whether an addend is a difference between before and now, of which only the gain is paid."""
    node = addend.node
    if addend.factor <= 0 or not isinstance(node, ast.Call) or not _is_floor(function, node):
        return False
    inner = [part for argument in node.args for value in function.meaning(argument) for part in ast.walk(value)]
    differences = [part for part in inner if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub)]
    return any(_belong(_word(part.left), _word(part.right)) for part in differences)


def _is_floor(function: RewardFunction, node: ast.Call) -> bool:
    """Say whether a call lets nothing negative through."""
    name = called(node)
    if name not in FLOORS:
        return False
    bounds = [function.constant(argument) for argument in (*node.args, *(word.value for word in node.keywords))]
    return name in ("abs", "fabs", "relu") or (bounds[1:2] == [0.0] if name == "clip" else 0.0 in bounds)


def _differences(addends: tuple[Addend, ...]) -> Iterator[tuple[Addend, Addend]]:
    """Yield what is added and subtracted of one thing, before and now."""
    for before in addends:
        for now in addends:
            words = _word(before.node), _word(now.node)
            if before.factor * now.factor < 0 and BEFORE.search(words[0]) and _belong(*words):
                yield before, now


def _belong(one: str, other: str) -> bool:
    """Say whether two names are one thing at two times: `prev_distance` and `distance`."""
    stems = [NOW.sub("_", BEFORE.sub("_", word)).strip("_").lower() for word in (one, other)]
    return bool(stems[0]) and stems[0] == stems[1] and bool(BEFORE.search(one)) != bool(BEFORE.search(other))


def _word(node: ast.expr) -> str:
    """Return the name in an expression, without what it is multiplied by."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        words = [_word(side) for side in (node.left, node.right)]
        return next((word for word in words if word and not DISCOUNT.search(word)), "")
    return named(node) or ""


def _is_one_sided(before: Addend, now: Addend) -> bool:
    """Say whether a difference is paid only on a condition that compares its two sides."""
    return any(before.text in text and now.text in text for text in now.conditions)


def _is_discounted(before: Addend, now: Addend) -> bool:
    ratio = abs(now.factor / before.factor)
    return 0.9 <= ratio < 1 or any(DISCOUNT.search(one.text) for one in (before, now))


def _loitering(reading: Reading) -> Iterator[Finding]:
    """Find what pays every step for being near, beside a goal that ends the episode."""
    has_goal = any(reading.finishing(addend) is not None for addend in reading.addends)
    for addend in reading.addends:
        is_near = any(called(part) in ("exp", "tanh") or _is_inverse(part) for part in ast.walk(addend.node))
        is_meant = any(SHAPING.search(name) for name in _names_for(reading.function, addend.node))
        if addend.factor > 0 and not addend.conditions and (is_meant or (is_near and has_goal)):
            claim = f"`{addend.text}` pays in every step for where one is: waiting near the goal pays"
            tries = ("pay the difference instead: γΦ(s′) − Φ(s) with this as Φ",)
            yield Finding("shaping_not_potential", "medium", claim, (reading.at(addend.node),), tries)


def _is_inverse(node: ast.AST) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.left, ast.Constant)


def _names_for(function: RewardFunction, node: ast.expr) -> list[str]:
    """Return the names that an expression was given in the function."""
    return [name for name, values in function.assigned.items() if any(value is node for value, _ in values)]
