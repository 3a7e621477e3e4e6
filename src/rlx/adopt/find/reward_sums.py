"""Finds the terms of a reward that a plain environment adds up: in a sum, by `reward += …`, or in a dict of terms."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from rlx.adopt.find.dict_keys import keyword_names
from rlx.adopt.repository import PythonFile, dotted, literal
from rlx.adopt.scan_fact import ScanFact

_ENVIRONMENT = re.compile(
    r"(Env|Task|Environment|Robot|World|Game|Domain|Reward|Rewards)(V?\d+|_v\d+|Base|Class)?$|Env|Task(?=[A-Z_\d]|$)"
)
_OTHER_CLASS = re.compile(
    r"Wrapper|Buffer|Agent|Policy|Runner|Trainer|Learner|Memory|Model|Network|Logger|Normali[sz]er|Monitor|VecEnv|VectorEnv"
)
_METHOD = re.compile(
    r"^_*(step|step_impl|post_physics_step|rew|rewards?|(compute|calculate|calc|get|eval|evaluate|update)_*((?!.*(cost|penalty))\w*_)?(rewards?|rew)(_\w+)?|"
    r"reward_(fn|func|function)|(computeReward|getReward|calcReward|calculateReward)s?)$",
)
"""Methods that return the whole reward of a step; `_reward_speed` is one term by itself."""
_TOTAL = re.compile(
    r"^_*((total|step|final|scalar|shaped|weighted|sum|overall|instant|task)_?)?(reward|rew|rewards|r|rew_buf|reward_buf|total_reward|total)(_(sum|total|buf))?$"
)
"""Names of the variables that hold the whole reward of a step."""
_GENERIC = re.compile(
    r"^_*(rewards?|rews?|costs?|penalt(y|ies)|total\w*|sum|ret|returns?|bonus(es)?|done|dones|terminated|truncated|gamma|discount|value|"
    r"next_\w+|last_\w+|prev_\w+|self|r|x|y|z|a|b|c|dt|np|torch|math|i|j|k|info|action|actions|obs|state)$|value|return"
)
_WEIGHT = re.compile(
    r"(^|_)(weights?|scales?|coefs?|coeffs?|coefficients?|gain|factor|mult|multiplier|lambda|alpha|beta|const\w*|dt|rate)(_|\d|$)|^(w|k|c)\d*(_|$)|Scale$|Weight$",
)
_TABLE = re.compile(
    r"^_*((rew|reward)s?_?(terms?|dict|parts?|components?|details|breakdown)|rewards|rews|reward_components?|(rew|reward)s?_?info)$"
)
_SHELL = re.compile(r"^_*(compute|calculate|calc|get|eval|evaluate)_+|^_*reward_(?=\w)|^_+")
_CALL_ENDS = re.compile(r"_(reward|rew)$")
_REWARD_WORD = re.compile(r"(rew|reward|penalty|cost|bonus)(_|$)")
_REPORTED = re.compile(
    r"^(rew|reward|penalty|cost)s?_(?!total|sum|range|scale)[a-z]|^(?!(total|episode|ep|cum\w*|mean|avg|sum|last|max|min|best|env)_)\w+_(rew|reward|penalty|cost|bonus)$"
)
"""Keys of a step's `info` that are parts of its reward."""
_CHOICES = ("where", "select")
_SHAPERS = (
    "clip",
    "clamp",
    "float",
    "maximum",
    "minimum",
    "max",
    "min",
    "squeeze",
    "tensor",
    "array",
    "nan_to_num",
    "float32",
    "asarray",
)
"""Functions that only limit or convert the whole reward."""
_LISTS = ("sum", "dot", "stack", "prod", "fsum", "add_n", "reduce_sum")
_WHOLE = re.compile(
    r"(^|_)(env|base|raw|adjusted|original|old|total|sum|new|current|my|all)_|reward_?(val|value|sum|fn|func)$|^(None|nan)$"
)
"""Names of a whole reward that another function computed."""
_STEPS = ("step", "step_impl", "_step", "step_wait")
_MATHS = ("np", "numpy", "jnp", "torch", "math", "th", "tf", "jax", "F", "jp")
_NOT_A_TERM = re.compile(r"agent|player|^\d|^(__all__|total|sum|reward|rewards)$")
_DEEPEST = 6
_COMPUTED = (ast.BinOp, ast.Call, ast.IfExp, ast.Compare, ast.UnaryOp)


def reward_sums(file: PythonFile) -> Iterator[ScanFact]:
    """Yield the terms that the methods of environments, and functions such as `compute_reward`, add up."""
    if "rew" not in file.text and "def step(" not in file.text:
        return
    has_environment = False
    for node in file.classes:
        if not _is_environment(node):
            continue
        has_environment = True
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and _METHOD.match(method.name):
                yield from _of_function(method, file)
    for statement in file.tree.body:
        if isinstance(statement, ast.FunctionDef) and _is_whole_reward(statement, file, has_environment):
            is_sum = any(argument.arg == "env" for argument in statement.args.args[:1])
            yield from _of_function(statement, file, only_sums=is_sum)


def _is_whole_reward(function: ast.FunctionDef, file: PythonFile, has_environment: bool) -> bool:
    """Return whether a function may compute a whole reward."""
    if "rew" not in function.name:
        return False
    return has_environment or "reward" in file.path.lower() or function.name.startswith("compute_")


def _is_environment(node: ast.ClassDef) -> bool:
    """Return whether a class is an environment or a task: by its name, its base, or its methods."""
    names = [node.name, *(dotted(base).rpartition(".")[2] for base in node.bases)]
    if any(_OTHER_CLASS.search(name) for name in names):
        return False
    methods = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
    return any(_ENVIRONMENT.search(name) for name in names) or {"step", "reset"} <= methods


def _of_function(function: ast.FunctionDef, file: PythonFile, *, only_sums: bool = False) -> Iterator[ScanFact]:
    """Yield the terms in a function's dict of terms, else in its sum, else in what it reports, each once.

    A function that gets `env` is often a single term of Isaac Lab, whose factors are no terms (`only_sums`).
    """
    nodes = file.inside(function)
    found = list(_of_table(nodes)) or list(_of_sums(function, nodes, only_sums=only_sums))
    if not found and not only_sums:
        found = _reported(nodes)
    seen: set[str] = set()
    for name, node in found:
        if name not in seen:
            seen.add(name)
            yield ScanFact("reward term", name, file.path, getattr(node, "lineno", function.lineno), "medium")


def _of_table(nodes: list[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    """Yield the keys of a dict of terms: of its literal, and of those that are set one by one."""
    for node in nodes:
        if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.Return)) or node.value is None:
            continue
        target = None
        if isinstance(node, ast.Assign):
            target = node.targets[0]
        elif isinstance(node, ast.AnnAssign):
            target = node.target
        keys: list[ast.expr] = []
        if isinstance(target, ast.Subscript) and _TABLE.match(dotted(target.value).rpartition(".")[2]):
            keys = [target.slice]
        elif target is not None and _is_whole(target):
            keys = _written_keys(node.value)
        for key in keys:
            name = literal(key)
            if isinstance(name, str) and not _NOT_A_TERM.search(name):
                yield name, key


def _is_whole(target: ast.expr) -> bool:
    """Return whether a target holds all terms: `rewards`, `reward_terms`, or `info["reward_terms"]`."""
    if isinstance(target, ast.Subscript) and _TABLE.match(str(literal(target.slice))):
        return True
    return bool(_TABLE.match(dotted(target).rpartition(".")[2])) or _is_total(target)


def _reported(nodes: list[ast.AST]) -> list[tuple[str, ast.AST]]:
    """Return the keys named like rewards that a step reports, as in `info["reward_speed"] = …`; none if it is one."""
    found: dict[str, ast.AST] = {}
    for node in nodes:
        keys: list[ast.expr] = []
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            if re.search("info|extras|metrics", dotted(node.targets[0].value)):
                keys = [node.targets[0].slice]
        elif isinstance(node, (ast.Dict, ast.Call)):
            keys = _written_keys(node)
        for key in keys:
            name = literal(key)
            if isinstance(name, str) and _REPORTED.search(name) and not _NOT_A_TERM.search(name):
                found.setdefault(name, key)
    if len(found) < 2:
        return []
    return list(found.items())


def _written_keys(node: ast.expr) -> list[ast.expr]:
    """Return the keys of a dict that is written as a literal or as `dict(speed=1.0)`."""
    if isinstance(node, ast.Dict):
        return [key for key in node.keys if key is not None]
    if isinstance(node, ast.Call) and dotted(node.func) in ("dict", "OrderedDict"):
        return list(keyword_names(node))
    return []


def _of_sums(function: ast.FunctionDef, nodes: list[ast.AST], *, only_sums: bool) -> Iterator[tuple[str, ast.AST]]:
    local: dict[str, ast.expr] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if not isinstance(local.get(name), ast.BinOp):
                local[name] = node.value
    found: list[tuple[str, ast.AST]] = []
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List) and _is_total(node.targets[0]):
            items = [item for item in node.value.elts if not isinstance(item, ast.Subscript)]
            found += [term for item in items for term in _terms(item, local, _DEEPEST)]
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.Sub)):
            if _is_total(node.target):
                found += _terms(node.value, local, _DEEPEST)
        elif isinstance(node, ast.Assign) and _is_total(node.targets[0]):
            found += _started(node) + _summands(node.value, local) or ([] if only_sums else _rewards(node.value, local))
        elif isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg in ("reward", "rewards", "rew"):
                    found += _summands(keyword.value, local)
        elif isinstance(node, ast.Return) and node.value is not None:
            value = _returned_reward(node.value, is_step=function.name in _STEPS)
            if value is not None:
                found += _summands(value, local) or ([] if only_sums else _factors(value, local))
    if len({name for name, _ in found}) >= 2:
        yield from found


def _started(node: ast.Assign) -> list[tuple[str, ast.AST]]:
    """Return the first term of a reward that is added up in steps: `reward = speed`, before `reward += effort`."""
    value = node.value
    if isinstance(value, ast.Name) and not _is_generic(value.id) and not _WHOLE.search(value.id):
        return [(value.id, value)]
    return []


def _returned_reward(value: ast.expr, *, is_step: bool) -> ast.expr | None:
    """Return the reward among the results of a function: the first of a reward function, the second of a step."""
    if isinstance(value, ast.Tuple) and is_step:
        return value.elts[1] if len(value.elts) >= 4 else None
    if isinstance(value, ast.Tuple):
        return next(iter(value.elts), None)
    return None if is_step else value


def _is_total(node: ast.expr) -> bool:
    while isinstance(node, ast.Subscript):
        node = node.value
    return bool(_TOTAL.match(dotted(node).rpartition(".")[2]))


def _summands(node: ast.expr, local: dict[str, ast.expr]) -> list[tuple[str, ast.AST]]:
    """Return the terms of a sum, also if it is limited, chosen by a condition or written as a list; else none."""
    if isinstance(node, ast.Name) and (_is_sum(local.get(node.id)) or isinstance(local.get(node.id), ast.Call)):
        node = local[node.id]
    parts = _whole_parts(node, _DEEPEST)
    if len(parts) < 2 and not any(map(_is_sum, parts)):
        return []
    return [term for part in parts for term in _terms(part, local, _DEEPEST)]


def _whole_parts(node: ast.expr, depth: int) -> list[ast.expr]:
    """Return the expressions whose sum a whole reward is, or between which it chooses."""
    if depth == 0:
        return []
    if isinstance(node, ast.IfExp):
        return [*_whole_parts(node.body, depth - 1), *_whole_parts(node.orelse, depth - 1)]
    if not isinstance(node, ast.Call):
        return [node]
    name = dotted(node.func).rpartition(".")[2]
    if name in _CHOICES and len(node.args) == 3:
        return [part for other in node.args[1:] for part in _whole_parts(other, depth - 1) if _is_sum(part)]
    if name in _LISTS and node.args and isinstance(node.args[0], (ast.List, ast.Tuple)):
        return [item for item in node.args[0].elts if not isinstance(item, ast.Subscript)]
    if name in _SHAPERS and node.args:
        return _whole_parts(node.args[0], depth - 1)
    if name in (*_SHAPERS, "sum", "mean", "item") and isinstance(node.func, ast.Attribute) and not node.args:
        return _whole_parts(node.func.value, depth - 1)
    return [node]


def _is_sum(node: ast.expr | None) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub))


def _factors(node: ast.expr, local: dict[str, ast.expr]) -> list[tuple[str, ast.AST]]:
    """Return the factors of a product of plain variables, as dm_control's tasks return it."""
    parts = _multiplied(node)
    if len(parts) < 2 or not all(isinstance(part, ast.Name) and part.id in local for part in parts):
        return []
    return [(part.id, part) for part in parts if isinstance(part, ast.Name) and not _is_generic(part.id)]


def _rewards(node: ast.expr, local: dict[str, ast.expr]) -> list[tuple[str, ast.AST]]:
    """Return the factors of a product that are named like rewards, or that the function has computed before."""
    names = [part for part in _multiplied(node) if isinstance(part, ast.Name) and not _is_generic(part.id)]
    found = [part for part in names if _REWARD_WORD.search(part.id) or isinstance(local.get(part.id), _COMPUTED)]
    if len(found) < 2:
        return []
    return [(part.id, part) for part in found]


def _multiplied(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        return [*_multiplied(node.left), *_multiplied(node.right)]
    return [node]


def _terms(node: ast.expr, local: dict[str, ast.expr], depth: int) -> list[tuple[str, ast.AST]]:
    """Return the names of the summands of an expression, with their places."""
    if depth == 0:
        return []
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        return [*_terms(node.left, local, depth), *_terms(node.right, local, depth)]
    if isinstance(node, ast.UnaryOp):
        return _terms(node.operand, local, depth)
    if isinstance(node, ast.IfExp):
        return _terms(node.body, local, depth - 1)
    if isinstance(node, ast.Name) and _is_generic(node.id):
        value = local.get(node.id)
        if value is None or (isinstance(value, ast.Name) and value.id == node.id):
            return []
        return _terms(value, {name: other for name, other in local.items() if name != node.id}, depth - 1)
    inner = [part for part in _multiplied(node) if _is_sum(part)]
    found = [term for part in inner for term in _terms(part, local, depth - 1) if _REWARD_WORD.search(term[0])]
    name = _name_of(node)
    if name and not _is_generic(name):
        found.append((name, node))
    return found


def _is_generic(name: str) -> bool:
    return bool(_GENERIC.search(name)) or len(name) < 2


def _name_of(node: ast.expr) -> str:
    """Return what a summand is called: by its variable, its function, or else its weight."""
    if isinstance(node, ast.UnaryOp):
        return _name_of(node.operand)
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr.lstrip("_")
    if isinstance(node, ast.Subscript):
        name = literal(node.slice)
        return name if isinstance(name, str) else _name_of(node.value)
    if isinstance(node, ast.Call):
        return _called(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Pow, ast.Add, ast.Sub)):
        return _name_of(node.left)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        names = [name for part in _multiplied(node) if (name := _name_of(part))]
        plain = [name for name in names if not _WEIGHT.search(name) and not _is_generic(name)]
        if plain:
            return next((name for name in plain if _REWARD_WORD.search(name)), plain[0])
        weights = [name for name in names if _WEIGHT.search(name)]
        return _WEIGHT.sub("", weights[0]).strip("_") if weights else ""
    return ""


def _called(call: ast.Call) -> str:
    """Return the name of the function that computes a summand; of a function of mathematics, its argument's."""
    receiver, _, name = dotted(call.func).rpartition(".")
    if receiver.partition(".")[0] in _MATHS or name in (
        "abs",
        "float",
        "int",
        "max",
        "min",
        "sum",
        "len",
        "bool",
        "exp",
        "norm",
        "sqrt",
    ):
        return next((found for argument in call.args if (found := _name_of(argument)) and not _is_generic(found)), "")
    if (
        name in ("mean", "sum", "item", "clip", "float", "to", "squeeze", "norm", "copy", "dot", "tanh", "exp")
        or not name
    ):
        return _name_of(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    shortened = _CALL_ENDS.sub("", _SHELL.sub("", _SHELL.sub("", name)))
    return shortened or name
