"""What a reward's source shows before it runs: unbounded, sparse, farmable, out of scale, unused terms and weights.

Limits: names from other files, and how often a branch is taken. `rlx review ENV` plays the environment too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from rlx.diagnose.finding import Finding
from rlx.diagnose.reward_review import shaping_findings, weight_findings
from rlx.diagnose.reward_review.locate_reward import RewardSource, is_boolean, is_goal
from rlx.diagnose.reward_review.reward_ast import Addend, RewardFunction, called, named
from rlx.diagnose.reward_review.step_findings import SHAPE_REWARD
from rlx.diagnose.reward_review.weight_findings import RewardFile
from rlx.diagnose.rule import Rule, Sighting, by_severity, run_rules
from rlx.number_format import figure

HORIZON = 100
"""Steps that count with the usual discount of .99, if the episode's own limit is unknown."""
LARGEST = 1000.0
LARGEST_RATIO = 10_000.0
BOUNDED = ("tanh", "clip", "sigmoid", "cos", "sin", "sign", "minimum", "min", "isclose")
ALIVE = re.compile(r"alive|health|surviv|upright|not .*(done|terminat|fell|fall|crash)", re.I)
TERM_NAME = re.compile(r"rew|bonus|penalt|cost|shaping", re.I)


def review_source(
    functions: Sequence[RewardFunction], tree: ast.Module, *, place: str, horizon: int | None = None
) -> tuple[Finding, ...]:
    """Return what the source of reward functions shows. Every finding has its line as evidence."""
    findings = list(run_rules(weight_findings.RULES, RewardFile(tree, place)).findings)
    for function in reversed(functions):
        source = RewardSource(function, place, horizon or HORIZON)
        findings = [*run_rules(RULES, source).findings, *findings]
    return by_severity(findings)


def find_unbounded(source: RewardSource) -> Iterator[Sighting]:
    """Find terms that can grow without limit."""
    for addend in source.addends:
        part = _why_unbounded(source.function, addend.node, addend.factor)
        if part:
            claim = f"`{ast.unparse(part[0])}` {part[1]}: one step can outweigh all others"
            yield Sighting((source.at(addend.node),), claim)


def _why_unbounded(function: RewardFunction, node: ast.AST, factor: float) -> tuple[ast.AST, str] | None:
    """Return the part of an expression that grows without limit, and why, or None if there is none."""
    name = called(node)
    if name in BOUNDED:
        return None
    if isinstance(node, ast.Call) and node.args:
        if name == "exp":
            if _is_negative(node.args[0]):
                return None
            return node, "grows exponentially"
        if name in ("log", "log2", "log10") and not _is_guarded(function, node.args[0]):
            return node, "has no floor near zero"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and not _is_guarded(function, node.right):
        return node, f"has no limit if `{ast.unparse(node.right)}` is near zero"
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
    """Say whether an expression stays away from zero: a constant, a sum with a constant, clipped or floored."""
    if function.constant(node) is not None or called(node) in (*BOUNDED, "max", "maximum", "len"):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return any(function.constant(side) is not None for side in (node.left, node.right))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return all(_is_guarded(function, side) for side in (node.left, node.right))
    name = named(node) or ""
    if name in function.assigned:
        return all(_is_guarded(function, value) for value, _ in function.assigned[name] if named(value) != name)
    return isinstance(node, ast.Attribute) or name.isupper()


def find_sparse(source: RewardSource) -> Iterator[Sighting]:
    """Find a reward that pays only constants, on conditions."""
    amounts = [(addend, source.amount(addend)) for addend in source.addends]
    paid = [addend for addend, amount in amounts if amount]
    is_rare = [bool(addend.conditions) or is_boolean(source.function, addend.node) for addend in paid]
    has_living_bonus = any((_living_bonus(source, addend) or 0.0) > 0 for addend in paid)
    if has_living_bonus or any(amount is None for _, amount in amounts) or not any(is_rare):
        return
    claim = "it pays only constants, on conditions: until one is met by chance there is nothing to learn from"
    yield Sighting(tuple(source.at(addend.node) for addend in paid[:3]), claim)


def find_living_bonus(source: RewardSource) -> Iterator[Sighting]:
    """Find a bonus for staying alive that pays more than finishing."""
    living = {addend: _living_bonus(source, addend) for addend in source.addends}
    finishing = {addend: source.goal_reward(addend) for addend in source.addends}
    bonus = sum(amount for amount in living.values() if amount is not None)
    goal = sum(amount for amount in finishing.values() if amount is not None)
    has_goal = any(amount is not None for amount in finishing.values())
    if bonus > 0 and has_goal and bonus * source.horizon > goal:
        claim = (
            f"staying pays {figure(bonus)} per step, {figure(bonus * source.horizon)} in {source.horizon} steps, more "
            f"than finishing ({figure(goal)}): the best policy does not finish"
        )
        paid = [addend for table in (living, finishing) for addend, amount in table.items() if amount is not None]
        yield Sighting(tuple(source.at(addend.node) for addend in paid), claim)


def _living_bonus(source: RewardSource, addend: Addend) -> float | None:
    """Return what an addend pays in every step of an episode that goes on."""
    amount = source.amount(addend)
    is_unconditional = not addend.conditions and source.function.constant(addend.node) is not None
    is_alive = is_unconditional or ALIVE.search(" ".join((*addend.conditions, addend.text)))
    if not is_alive or is_goal(addend):
        return None
    return amount


def find_scale(source: RewardSource) -> Iterator[Sighting]:
    """Find constants of very different sizes, or very large ones."""
    sizes: dict[Addend, float] = {}
    for addend in source.addends:
        amount = source.amount(addend)
        size = abs(amount or addend.factor)
        if size and (amount or addend.factor != 1):
            sizes[addend] = size
    if not sizes:
        return
    large = max(sizes, key=lambda addend: sizes[addend])
    small = min(sizes, key=lambda addend: sizes[addend])
    if sizes[large] >= LARGEST or sizes[large] / sizes[small] > LARGEST_RATIO:
        claim = f"its constants go from {figure(sizes[small])} to {figure(sizes[large])}: the small ones have no effect"
        texts = [(addend, f"{figure(addend.factor)} · {addend.text}") for addend in (large, small)]
        yield Sighting(tuple(source.at(addend.node, text) for addend, text in texts), claim)


def find_unused_terms(source: RewardSource) -> Iterator[Sighting]:
    """Find variables that look like terms and are never used."""
    nodes = list(ast.walk(source.function.node))
    used = {named(node) for node in nodes if isinstance(getattr(node, "ctx", None), ast.Load)}
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    for name, values in source.function.assigned.items():
        if TERM_NAME.search(name) and name not in used and name in names:
            value = values[0][0]
            evidence = source.at(value, f"{name} = {ast.unparse(value)}")
            claim = f"`{name}` is computed and never used: it does not enter the reward"
            yield Sighting((evidence,), claim, tries=(f"add `{name}` to the returned reward, or drop it",))


RULES: tuple[Rule[RewardSource], ...] = (
    Rule(
        "reward_unbounded",
        "medium",
        find_unbounded,
        ("bound it: np.clip, np.tanh, or exp(−distance)", "add a floor to the divisor"),
        cannot_see="names from other files",
    ),
    Rule("reward_sparse", "low", find_sparse, SHAPE_REWARD),
    Rule(
        "alive_bonus_beats_finishing",
        "high",
        find_living_bonus,
        ("pay less than finishing for a whole episode of staying, or a cost for every step",),
    ),
    Rule(
        "reward_scale",
        "low",
        find_scale,
        ("bring every term to the size of 1 per step before weighting", "set env.normalize.reward: true"),
    ),
    *shaping_findings.RULES,
    Rule("term_not_used", "medium", find_unused_terms),
)
