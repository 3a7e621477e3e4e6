"""A reward function as its source has it: what it adds up, with which factor, on which condition; never executed."""

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
    """One thing a reward adds: `factor` is the product of the constants before it, `conditions` the ifs around it."""

    node: ast.expr
    factor: float
    conditions: tuple[str, ...]
    line: int

    @property
    def text(self) -> str:
        return ast.unparse(self.node)


@dataclass(frozen=True)
class RewardFunction:
    """A function that makes a reward, and what is known about the names in it."""

    name: str
    node: ast.FunctionDef
    assigned: Mapping[str, tuple[tuple[ast.expr, tuple[str, ...]], ...]]
    constants: Mapping[str, float]
    addends: tuple[Addend, ...] = field(default=())

    def constant(self, node: ast.expr) -> float | None:
        """Return the number an expression stands for: a literal, or a name that is one in this file."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.constant(node.operand)
            return None if value is None else -value
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return float(node.value)
        return self.constants.get(named(node) or "")

    def meaning(self, node: ast.expr) -> list[ast.expr]:
        """Return what a name was assigned in this function, the expression itself where it is none."""
        name = named(node) or ""
        return [value for value, _ in self.assigned[name]] if name in self.assigned else [node]


def named(node: ast.AST) -> str | None:
    """Return the name of a variable or of an attribute of self."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return node.attr
    return None


def called(node: ast.AST) -> str:
    """Return the last part of a called function's name; empty where the node is no call."""
    if not isinstance(node, ast.Call):
        return ""
    target = node.func
    return target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""


def parse(text: str, *, place: str) -> ast.Module:
    """Parse a file's source."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) else ""
        raise ConfigError(f"{place}{line}: {getattr(error, 'msg', error)}") from None


def reward_functions(tree: ast.Module, name: str | None, *, place: str) -> list[RewardFunction]:
    """Return the reward functions that a name means: a function, a class's, or all of the file.

    A class's are also those that it inherits, and functions of the file that these call and that are named so.
    """
    known = _functions(tree)
    chosen = known if name is None else _named_by(tree, name, known)
    chosen |= _called_by(chosen, known) if name in _classes(tree) else {}
    if name is not None and not chosen:
        near = did_you_mean(name, list(known))
        hint = f"did you mean `{place}:{near}`?" if near else None
        raise NotFound(f"`{place}` has no function or class `{name}`", hint=hint)
    makers = {key: node for key, node in chosen.items() if key == name or _makes_reward(key, node)}
    if not makers:
        shown = ", ".join(list(known)[:8]) or "none"
        hint = f"name one, as {place}:NAME; its functions: {shown}"
        raise NotFound(f"`{place}` has no function that makes a reward", hint=hint)
    constants = dict(_constants(tree))
    return [_read(key, node, constants) for key, node in makers.items()]


def _functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    """Return the functions of a file and, as `Class.method`, those of its classes."""
    found = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in _classes(tree).values():
        found |= {f"{node.name}.{one.name}": one for one in node.body if isinstance(one, ast.FunctionDef)}
    return found


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
    found: dict[str, ast.FunctionDef] = {}
    for base in (base.id for base in reversed(kind.bases) if isinstance(base, ast.Name)):
        found |= _named_by(tree, base, known, depth + 1)
    own = {key: node for key, node in known.items() if key.startswith(f"{name}.")}
    overridden = {node.name for node in own.values()}
    return {key: node for key, node in found.items() if node.name not in overridden} | own


def _called_by(
    chosen: Mapping[str, ast.FunctionDef], known: Mapping[str, ast.FunctionDef]
) -> dict[str, ast.FunctionDef]:
    """Return the functions of the file that are named after a reward and that these call, through each other too."""
    found: dict[str, ast.FunctionDef] = {}
    waiting = list(chosen.values())
    while waiting:
        calls = [node.func for node in ast.walk(waiting.pop()) if isinstance(node, ast.Call)]
        names = {one.id for one in calls if isinstance(one, ast.Name) and REWARD_NAME.search(one.id)}
        new = {name: known[name] for name in sorted(names & known.keys()) if name not in found}
        found |= new
        waiting += new.values()
    return found


def _makes_reward(name: str, node: ast.FunctionDef) -> bool:
    own = name.rpartition(".")[2]
    returned = [one.value for one in ast.walk(node) if isinstance(one, ast.Return) and one.value is not None]
    if own == "step":
        return any(isinstance(value, ast.Tuple) and len(value.elts) == 5 for value in returned)
    return bool(REWARD_NAME.search(own)) and bool(returned)


def _constants(tree: ast.Module) -> Iterator[tuple[str, float]]:
    """Yield the names that stand for one number in this file: of modules, classes, self and default arguments."""
    seen: dict[str, set[float | None]] = {}
    for node in ast.walk(tree):
        for name, value in (*_bindings(node), *_defaults(node)):
            seen.setdefault(name, set()).add(_literal(value))
    for name, values in seen.items():
        if len(values) == 1 and (only := next(iter(values))) is not None:
            yield name, only


def _bindings(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, (ast.AnnAssign, ast.AugAssign))
        else []
    )
    value = getattr(node, "value", None)
    for target in targets:
        name = named(target)
        if name is not None and isinstance(value, ast.expr):
            yield name, value if not isinstance(node, ast.AugAssign) else target


def _defaults(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.FunctionDef):
        several = node.args.args[len(node.args.args) - len(node.args.defaults) :]
        yield from ((one.arg, value) for one, value in zip(several, node.args.defaults, strict=True))
        named_only = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        yield from ((one.arg, value) for one, value in named_only if value is not None)


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
    found = [one for value, conditions in returned for one in _expand(bare, value, 1.0, conditions, ())]
    return RewardFunction(name, node, frozen, own, tuple(dict.fromkeys(found)))


def _statements(body: list[ast.stmt], conditions: tuple[str, ...]) -> Iterator[tuple[ast.stmt, tuple[str, ...]]]:
    """Yield every statement with the conditions it stands under."""
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
        name, value = named(statement.target) or _key_of(statement.target), statement.value
        if isinstance(statement.op, ast.Sub):
            value = ast.copy_location(ast.UnaryOp(ast.USub(), value), value)
        assigned.setdefault(name, []).append((value, conditions))
    elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            assigned.setdefault(named(target) or _key_of(target), []).append((statement.value, conditions))


def _key_of(target: ast.expr) -> str:
    """Return `terms` for `terms["x"]`: what is stored under a key belongs to the dict."""
    return named(target.value) or "" if isinstance(target, ast.Subscript) else ""


def _expand(
    function: RewardFunction, node: ast.expr, factor: float, conditions: tuple[str, ...], path: tuple[str, ...]
) -> Iterator[Addend]:
    """Take a sum apart into what it adds, through names that were assigned in the function."""
    if len(path) > _DEPTH:
        return
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        sign = 1.0 if isinstance(node.op, ast.Add) else -1.0
        yield from _expand(function, node.left, factor, conditions, path)
        yield from _expand(function, node.right, sign * factor, conditions, path)
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
        for value, under in function.assigned[name]:
            yield from _expand(function, value, factor, tuple(dict.fromkeys((*conditions, *under))), (*path, name))
    else:
        yield Addend(node, factor, conditions, node.lineno)


def _constant_factor(function: RewardFunction, node: ast.BinOp) -> tuple[float, ast.expr] | None:
    for one, other in ((node.left, node.right), (node.right, node.left)):
        value = function.constant(one)
        if value is not None and function.constant(other) is None:
            return value, other
    return None


def _transparent(node: ast.expr) -> ast.expr | None:
    """Return what `float(x)` or `sum(terms.values())` stand for."""
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
