"""What a reward's source shows before it runs: unbounded, sparse, farmable, out of scale, terms and weights that miss.

What is not covered: what a name from elsewhere stands for, and how often a branch is taken; `rlx review ENV` plays.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from rlx.diagnose.finding import Finding, Severity
from rlx.diagnose.review_shaping import shaping
from rlx.diagnose.review_weights import weights_and_terms
from rlx.diagnose.reward_code import Addend, RewardFunction, called, named
from rlx.diagnose.reward_reading import Reading, is_boolean, is_goal
from rlx.figures import figure

HORIZON = 100
"""Steps that count with the usual discount of .99, where the episode's own limit is not known."""
LARGEST, LARGEST_RATIO = 1000.0, 10_000.0
BOUNDED = ("tanh", "clip", "sigmoid", "cos", "sin", "sign", "minimum", "min", "isclose")
ALIVE = re.compile(r"alive|health|surviv|upright|not .*(done|terminat|fell|fall|crash)", re.I)
TERM_NAME = re.compile(r"rew|bonus|penalt|cost|shaping", re.I)


def review_code(
    functions: list[RewardFunction], tree: ast.Module, *, place: str, horizon: int | None = None
) -> list[Finding]:
    """Return what the source of reward functions shows; every finding has the line it stands on."""
    found = [
        finding for one in functions for rule in RULES for finding in rule(Reading(one, place, horizon or HORIZON))
    ]
    found += list(weights_and_terms(tree, place))
    order: dict[Severity, int] = {"high": 0, "medium": 1, "low": 2}
    return sorted(found, key=lambda finding: order[finding.severity])


def _unbounded(reading: Reading) -> Iterator[Finding]:
    for addend in reading.addends:
        reason = _why_unbounded(reading.function, addend.node, addend.factor)
        if reason:
            node, why = reason
            claim = f"`{ast.unparse(node)}` {why}: one step can outweigh all others"
            tries = ("bound it: np.clip, np.tanh, or exp(−distance)", "add a floor to what it divides by")
            yield Finding("reward_unbounded", "medium", claim, (reading.at(addend.node),), tries)


def _why_unbounded(function: RewardFunction, node: ast.AST, factor: float) -> tuple[ast.AST, str] | None:
    """Return the part of an expression that grows without limit, and why; None where none is seen."""
    name = called(node)
    if name in BOUNDED:
        return None
    if isinstance(node, ast.Call) and node.args:
        if name == "exp":
            return None if _is_negative(node.args[0]) else (node, "grows exponentially")
        if name in ("log", "log2", "log10") and not _is_guarded(function, node.args[0]):
            return node, "has no floor near zero"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and not _is_guarded(function, node.right):
        return node, f"has no limit where `{ast.unparse(node.right)}` is near zero"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and factor > 0:
        power = function.constant(node.right)
        if power is not None and power >= 2 and not _is_guarded(function, node.left):
            return node, f"grows with the power of {figure(power)}, with a positive sign"
    parts = (_why_unbounded(function, child, factor) for child in ast.iter_child_nodes(node))
    return next((part for part in parts if part), None)


def _is_negative(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        return _is_negative(node.left) != (isinstance(node.op, ast.Mult) and _is_negative(node.right))
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and node.value < 0


def _is_guarded(function: RewardFunction, node: ast.expr) -> bool:
    """Say whether an expression is kept from zero: a constant, something plus a constant, clipped or floored."""
    if function.constant(node) is not None or called(node) in (*BOUNDED, "max", "maximum", "len"):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return any(function.constant(side) is not None for side in (node.left, node.right))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return all(_is_guarded(function, side) for side in (node.left, node.right))
    name = named(node)
    if name in function.assigned and name is not None:
        return all(_is_guarded(function, value) for value, _ in function.assigned[name] if named(value) != name)
    return isinstance(node, ast.Attribute) or (name or "").isupper()


def _sparse(reading: Reading) -> Iterator[Finding]:
    amounts = [(addend, reading.amount(addend)) for addend in reading.addends]
    paid = [addend for addend, amount in amounts if amount]
    is_rare = [bool(addend.conditions) or is_boolean(reading.function, addend.node) for addend in paid]
    has_wage = any((_living(reading, addend) or 0.0) > 0 for addend in paid)
    if has_wage or any(amount is None for _, amount in amounts) or not any(is_rare):
        return
    claim = "it pays constants only, on conditions: until one is met by chance there is nothing to learn from"
    tries = ("add γΦ(s′) − Φ(s) with Φ the nearness to the goal", "start some episodes near the goal")
    evidence = tuple(reading.at(addend.node) for addend in paid[:3])
    yield Finding("reward_sparse", "low", claim, evidence, tries)


def _alive(reading: Reading) -> Iterator[Finding]:
    living = [(one, amount) for one in reading.addends if (amount := _living(reading, one)) is not None]
    finishing = [(one, amount) for one in reading.addends if (amount := reading.finishing(one)) is not None]
    wage, bonus = sum(amount for _, amount in living), sum(amount for _, amount in finishing)
    if wage > 0 and finishing and wage * reading.horizon > bonus:
        claim = (
            f"staying pays {figure(wage)} a step, {figure(wage * reading.horizon)} in {reading.horizon} steps, more "
            f"than finishing ({figure(bonus)}): the best policy does not finish"
        )
        tries = ("pay less than finishing for a whole episode of staying, or a cost for every step",)
        evidence = tuple(reading.at(addend.node) for addend, _ in (*living, *finishing))
        yield Finding("alive_bonus_beats_finishing", "high", claim, evidence, tries)


def _living(reading: Reading, addend: Addend) -> float | None:
    """Return what an addend pays in every step of an episode that goes on."""
    told = " ".join((*addend.conditions, addend.text))
    amount = reading.amount(addend)
    is_wage = not addend.conditions and reading.function.constant(addend.node) is not None
    return amount if amount is not None and (is_wage or ALIVE.search(told)) and not is_goal(addend) else None


def _scale(reading: Reading) -> Iterator[Finding]:
    sizes = {addend: abs(amount) for addend in reading.addends if (amount := reading.amount(addend))}
    sizes |= {one: abs(one.factor) for one in reading.addends if one not in sizes and one.factor != 1 and one.factor}
    if not sizes:
        return
    large, small = max(sizes, key=lambda one: sizes[one]), min(sizes, key=lambda one: sizes[one])
    if sizes[large] >= LARGEST or sizes[large] / sizes[small] > LARGEST_RATIO:
        claim = f"its constants go from {figure(sizes[small])} to {figure(sizes[large])}: the small ones cannot be felt"
        tries = ("bring every term to the size of 1 a step before weighting", "set env.normalize.reward: true")
        evidence = tuple(reading.at(one.node, f"{figure(one.factor)} · {one.text}") for one in (large, small))
        yield Finding("reward_scale", "low", claim, evidence, tries)


def _unused(reading: Reading) -> Iterator[Finding]:
    """Find what is computed like a term and enters nothing."""
    loaded = {named(node) for node in ast.walk(reading.function.node)
              if isinstance(getattr(node, "ctx", None), ast.Load)}  # fmt: skip
    for name, values in reading.function.assigned.items():
        value = values[0][0]
        is_own = any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(reading.function.node))
        if TERM_NAME.search(name) and name not in loaded and is_own:
            claim = f"`{name}` is computed and never used: it does not enter the reward"
            tries = (f"add `{name}` to what is returned, or drop it",)
            yield Finding(
                "term_not_used", "medium", claim, (reading.at(value, f"{name} = {ast.unparse(value)}"),), tries
            )


RULES: tuple[Callable[[Reading], Iterator[Finding]], ...] = (_unbounded, _sparse, _alive, _scale, shaping, _unused)
