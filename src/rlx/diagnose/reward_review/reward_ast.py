"""A reward function read from its source: its summands with their factors and conditions. Never executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rlx.errors import ConfigError, NotFound, did_you_mean

REWARD_NAME = re.compile(r"rew", re.I)
TRIVIAL_CALLS = ("float", "int", "bool", "abs", "float32", "float64", "asarray", "array")
_DEPTH = 12


@dataclass(frozen=True)
class Addend:
    """One summand of a reward. `factor` is the product of its constants, `conditions` are the ifs around it."""

    node: ast.expr
    factor: float
    conditions: tuple[str, ...]
    line: int

    @property
    def text(self) -> str:
        return ast.unparse(self.node)


@dataclass(frozen=True)
class RewardFunction:
    """A function that computes a reward, and the known values of the names in it."""

    name: str
    node: ast.FunctionDef
    assigned: Mapping[str, tuple[tuple[ast.expr, tuple[str, ...]], ...]]
    constants: Mapping[str, float]
    addends: tuple[Addend, ...] = field(default=())

    def constant(self, node: ast.expr) -> float | None:
        """Return the number that an expression stands for: a literal, or a name for one in this file."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.constant(node.operand)
            return None if value is None else -value
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return float(node.value)
        return self.constants.get(named(node) or "")

    def meaning(self, node: ast.expr) -> list[ast.expr]:
        """Return the values assigned to a name in this function, or the expression itself if it is not such a name."""
        assigned = self.assigned.get(named(node) or "")
        return [value for value, _ in assigned] if assigned else [node]


def named(node: ast.AST) -> str | None:
    """Return the name of a variable or of an attribute of self."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return None


def called(node: ast.AST) -> str:
    """Return the last part of a called function's name, or nothing if the node is not a call."""
    target = node.func if isinstance(node, ast.Call) else None
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""


def parse(text: str, *, place: str) -> ast.Module:
    """Parse a file's source."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) else ""
        raise ConfigError(f"{place}{line}: {getattr(error, 'msg', error)}") from None


def reward_functions(tree: ast.Module, name: str | None, *, place: str) -> list[RewardFunction]:
    """Return the reward functions that a name stands for: a function, those of a class, or all of the file.

    A class also has those that it inherits, and functions of the file with a reward's name that these call.
    """
    known = _functions(tree)
    chosen = known
    if name is not None:
        chosen = _named_by(tree, name, known)
    if name in _classes(tree):
        chosen |= _called_by(chosen, known)
    if name is not None and not chosen:
        near = did_you_mean(name, list(known))
        hint = f"did you mean `{place}:{near}`?" if near else None
        raise NotFound(f"`{place}` has no function or class `{name}`", hint=hint)
    makers = {key: node for key, node in chosen.items() if key == name or _makes_reward(key, node)}
    if not makers:
        names = ", ".join(list(known)[:8]) or "none"
        hint = f"name one as {place}:NAME; its functions: {names}"
        raise NotFound(f"`{place}` has no function that computes a reward", hint=hint)
    constants = dict(_constants(tree))
    return [_read(key, node, constants) for key, node in makers.items()]


def _functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Return the functions of a file and, as `Class.method`, those of its classes."""
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in _classes(tree).values():
        methods = [method for method in node.body if isinstance(method, ast.FunctionDef)]
        functions |= {f"{node.name}.{method.name}": method for method in methods}
    return functions


def _classes(tree: ast.Module) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _named_by(
    tree: ast.Module, name: str, known: Mapping[str, ast.FunctionDef], depth: int = 0
) -> dict[str, ast.FunctionDef]:
    if name in known:
        return {name: known[name]}
    kind = _classes(tree).get(name)
    if kind is None or depth > _DEPTH:
        return {}
    inherited: dict[str, ast.FunctionDef] = {}
    for base in (base.id for base in reversed(kind.bases) if isinstance(base, ast.Name)):
        inherited |= _named_by(tree, base, known, depth + 1)
    own = {key: node for key, node in known.items() if key.startswith(f"{name}.")}
    overridden = {node.name for node in own.values()}
    return {key: node for key, node in inherited.items() if node.name not in overridden} | own


def _called_by(
    chosen: Mapping[str, ast.FunctionDef], known: Mapping[str, ast.FunctionDef]
) -> dict[str, ast.FunctionDef]:
    """Return the functions of the file with a reward's name that these call, directly or through each other."""
    reached: dict[str, ast.FunctionDef] = {}
    waiting = list(chosen.values())
    while waiting:
        calls = [node.func for node in ast.walk(waiting.pop()) if isinstance(node, ast.Call)]
        names = {call.id for call in calls if isinstance(call, ast.Name) and REWARD_NAME.search(call.id)}
        new = {name: known[name] for name in sorted(names & known.keys()) if name not in reached}
        reached |= new
        waiting += new.values()
    return reached


def _makes_reward(name: str, node: ast.FunctionDef) -> bool:
    own = name.rpartition(".")[2]
    returns = [part for part in ast.walk(node) if isinstance(part, ast.Return)]
    returned = [part.value for part in returns if part.value is not None]
    if own == "step":
        return any(isinstance(value, ast.Tuple) and len(value.elts) == 5 for value in returned)
    return bool(REWARD_NAME.search(own)) and bool(returned)


def _constants(tree: ast.Module) -> Iterator[tuple[str, float]]:
    """Yield the names that stand for one number in this file: in modules, classes, self and default arguments."""
    seen: dict[str, set[float | None]] = {}
    for node in ast.walk(tree):
        for name, value in (*_bindings(node), *_defaults(node)):
            seen.setdefault(name, set()).add(_literal(value))
    for name, values in seen.items():
        (first, *others) = values
        if first is not None and not others:
            yield name, first


def assignments(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """Yield the targets of an assignment with the value."""
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, ast.AnnAssign):
        yield node.target, node.value


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.AugAssign):  # the name then stands for more than one number
        yield named(node.target) or "", node.target
    for target, value in assignments(node):
        if value is not None:
            yield named(target) or "", value


def _defaults(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.FunctionDef):
        arguments = node.args.args[len(node.args.args) - len(node.args.defaults) :]
        pairs = [*zip(arguments, node.args.defaults, strict=True)]
        keywords = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        pairs += [(argument, value) for argument, value in keywords if value is not None]
        yield from ((argument.arg, value) for argument, value in pairs)


def _literal(node: ast.expr) -> float | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _read(name: str, node: ast.FunctionDef, constants: Mapping[str, float]) -> RewardFunction:
    assigned: dict[str, list[tuple[ast.expr, tuple[str, ...]]]] = {}
    returned: list[tuple[ast.expr, tuple[str, ...]]] = []
    for statement, conditions in _statements(node.body, ()):
        _take(statement, conditions, assigned, returned)
    frozen = {key: tuple(values) for key, values in assigned.items()}
    own = {key: value for key, value in constants.items() if key not in assigned}
    bare = RewardFunction(name, node, frozen, own)
    addends = [addend for value, conditions in returned for addend in _expand(bare, value, 1.0, conditions, ())]
    return RewardFunction(name, node, frozen, own, tuple(dict.fromkeys(addends)))


def _statements(body: list[ast.stmt], conditions: tuple[str, ...]) -> Iterator[tuple[ast.stmt, tuple[str, ...]]]:
    """Yield every statement with the conditions around it."""
    for statement in body:
        yield statement, conditions
        if isinstance(statement, ast.If):
            test = ast.unparse(statement.test)
            yield from _statements(statement.body, (*conditions, test))
            yield from _statements(statement.orelse, (*conditions, f"not ({test})"))
        elif isinstance(statement, (ast.For, ast.While, ast.With, ast.Try)):
            yield from _statements(statement.body, conditions)


def _take(
    statement: ast.stmt,
    conditions: tuple[str, ...],
    assigned: dict[str, list[tuple[ast.expr, tuple[str, ...]]]],
    returned: list[tuple[ast.expr, tuple[str, ...]]],
) -> None:
    if isinstance(statement, ast.Return) and statement.value is not None:
        value = statement.value
        if isinstance(value, ast.Tuple) and value.elts:
            value = value.elts[1 if len(value.elts) == 5 else 0]
        returned.append((value, conditions))
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.op, (ast.Add, ast.Sub)):
        value = statement.value
        if isinstance(statement.op, ast.Sub):
            value = ast.copy_location(ast.UnaryOp(ast.USub(), value), value)
        assigned.setdefault(_holder(statement.target), []).append((value, conditions))
    for target, assigned_value in assignments(statement):
        if assigned_value is not None:
            assigned.setdefault(_holder(target), []).append((assigned_value, conditions))


def _holder(target: ast.expr) -> str:
    """Return the name of a target, and `terms` for `terms["x"]`: a value under a key belongs to the dict."""
    if isinstance(target, ast.Subscript):
        target = target.value
    return named(target) or ""


def _expand(
    function: RewardFunction, node: ast.expr, factor: float, conditions: tuple[str, ...], path: tuple[str, ...]
) -> Iterator[Addend]:
    """Split a sum into its summands, through names that were assigned in the function."""
    if len(path) > _DEPTH:
        return
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        yield from _expand(function, node.left, factor, conditions, path)
        if isinstance(node.op, ast.Sub):
            factor = -factor
        yield from _expand(function, node.right, factor, conditions, path)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from _expand(function, node.operand, -factor, conditions, path)
    elif isinstance(node, ast.IfExp):
        test = ast.unparse(node.test)
        yield from _expand(function, node.body, factor, (*conditions, test), path)
        yield from _expand(function, node.orelse, factor, (*conditions, f"not ({test})"), path)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and (split := _constant_factor(function, node)):
        yield from _expand(function, split[1], split[0] * factor, conditions, path)
    elif isinstance(node, ast.Dict):
        for value in node.values:
            yield from _expand(function, value, factor, conditions, path)
    elif (inner := _transparent(node)) is not None:
        yield from _expand(function, inner, factor, conditions, path)
    elif (name := named(node)) in function.assigned and name not in path:
        assert name is not None
        for value, own_conditions in function.assigned[name]:
            merged = tuple(dict.fromkeys((*conditions, *own_conditions)))
            yield from _expand(function, value, factor, merged, (*path, name))
    else:
        yield Addend(node, factor, conditions, node.lineno)


def _constant_factor(function: RewardFunction, node: ast.BinOp) -> tuple[float, ast.expr] | None:
    for constant, rest in ((node.left, node.right), (node.right, node.left)):
        value = function.constant(constant)
        if value is not None and function.constant(rest) is None:
            return value, rest
    return None


def _transparent(node: ast.expr) -> ast.expr | None:
    """Return the expression that `float(x)` or `sum(terms.values())` stand for."""
    if not isinstance(node, ast.Call) or len(node.args) != 1:
        return None
    only = node.args[0]
    if called(node) in TRIVIAL_CALLS and called(node) != "abs":
        return only
    if (
        called(node) == "sum"
        and called(only) == "values"
        and isinstance(only, ast.Call)
        and isinstance(only.func, ast.Attribute)
    ):
        return only.func.value
    return None
