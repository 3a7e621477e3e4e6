"""Finds the keys of a dict expression: a literal, a list of pairs, a variable that was filled, a function's result."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from rlx.adopt.find.imported_files import imported_files, module_index
from rlx.adopt.find.text_patterns import nodes_around, text_pattern
from rlx.adopt.repository import ForeignRepository, PythonFile, dotted

_MEDIA = ("Video", "Image", "Histogram", "Table", "Audio", "Html", "Plotly")
_DICTS = ("dict", "OrderedDict", "collections.OrderedDict")
_SAME_KEYS = ("deepcopy", "copy", "device_get", "asdict", "_asdict", "vars", "flatten_dict")
"""Functions and methods whose result has the keys of their argument, or of their object."""
_TREE_MAPS = ("tree_map", "map")
_USUAL_METHODS = frozenset(("get", "items", "keys", "values", "copy", "pop", "step", "reset", "mean", "item"))
"""Methods of too many classes to search the whole project for them."""
MOST_FILES = 40
"""How many of the files that a program imports are searched for the function that returns a dict."""
MOST_FUNCTIONS = 20
"""How many functions of one name are read, if it is not known which of them a program calls."""
MOST_EXPRESSIONS = 2000
"""How many expressions of a file are followed: functions that call each other would be followed without end."""
_Comprehension = ast.ListComp | ast.GeneratorExp | ast.DictComp


@dataclass(frozen=True)
class FileScope:
    """The file in which an expression is written, and the repository around it."""

    file: PythonFile
    repository: ForeignRepository


def dict_keys(node: ast.expr, scope: FileScope, depth: int) -> Iterator[ast.expr]:
    """Yield the expressions of the keys; images and films are left out."""
    spent: dict[str, int] = scope.repository.cache.setdefault("dict expressions", {})
    spent[scope.file.path] = spent.get(scope.file.path, 0) + 1
    if depth <= 0 or spent[scope.file.path] > MOST_EXPRESSIONS:
        return
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                yield from dict_keys(value, scope, depth)
            elif not is_media(value):
                yield key
    elif isinstance(node, ast.DictComp):
        yield from _comprehended(node.key, node, scope, depth)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        yield from dict_keys(node.left, scope, depth)
        yield from dict_keys(node.right, scope, depth)
    elif isinstance(node, ast.IfExp):
        yield from dict_keys(node.body, scope, depth)
        yield from dict_keys(node.orelse, scope, depth)
    elif isinstance(node, ast.Call):
        yield from _call_keys(node, scope, depth)
    elif isinstance(node, (ast.Name, ast.Attribute)):
        yield from _variable_keys(node, scope, depth)


def _call_keys(call: ast.Call, scope: FileScope, depth: int) -> Iterator[ast.expr]:
    """Yield the keys of a call's result: of `dict(…)`, of a function that keeps its argument's keys, or of its own."""
    tail = dotted(call.func).rpartition(".")[2]
    if dotted(call.func) in _DICTS:
        yield from keyword_names(call)
        for argument in call.args:
            yield from _pair_keys(argument, scope, depth)
    elif tail in _TREE_MAPS and len(call.args) > 1:
        yield from dict_keys(call.args[1], scope, depth - 1)
    elif tail in _SAME_KEYS:
        kept = next(iter(call.args), None)
        if kept is None and isinstance(call.func, ast.Attribute):
            kept = call.func.value
        if kept is not None:
            yield from dict_keys(kept, scope, depth - 1)
            yield from _field_names(kept, scope)
    else:
        yield from _returned_keys(call, scope, depth)


def _field_names(node: ast.expr, scope: FileScope) -> Iterator[ast.expr]:
    """Yield the fields of the data class that an object was made of in the same function."""
    made = node
    for other in nodes_around(node, scope.file):
        if isinstance(other, ast.Assign) and dotted(other.targets[0]) == dotted(node):
            made = other.value
    if not isinstance(made, ast.Call):
        return
    name = dotted(made.func).rpartition(".")[2]
    own = [found for found in scope.file.classes if found.name == name]
    if not own and name:
        other_file = scope.repository.file_of_class(name)
        own = [found for found in other_file.classes if found.name == name] if other_file else []
    for statement in own[0].body if own else ():
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield ast.copy_location(ast.Constant(statement.target.id), node)


def loop_names(variable: ast.Name, scope: FileScope, depth: int) -> list[ast.expr]:
    """Return the expressions that a `for` around a variable gives it: constant words, or the keys of a dict."""
    names: list[ast.expr] = []
    for node in nodes_around(variable, scope.file):
        if isinstance(node, ast.For) and node.lineno <= variable.lineno <= (node.end_lineno or 0):
            names += _bound(variable.id, node.target, node.iter, scope, depth)
    return names


def variable_part(node: ast.expr) -> ast.Name | None:
    """Return the only variable of a name: of `key`, `"train/" + key` or an f-string; None for other expressions."""
    parts = [node]
    if isinstance(node, ast.JoinedStr):
        parts = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [part for part in (node.left, node.right) if not isinstance(part, ast.Constant)]
    if len(parts) == 1 and isinstance(parts[0], ast.Name):
        return parts[0]
    return None


def filled(node: ast.expr, values: list[ast.expr]) -> list[ast.expr]:
    """Return a name once per value of its variable; as it is written if a value is not known."""
    texts = [text_pattern(value) for value in values]
    if not texts or not all(text and "*" not in text for text in texts):
        return [node]
    pattern = text_pattern(node) or "*"
    return [ast.copy_location(ast.Constant(pattern.replace("*", text, 1)), node) for text in texts]


def keyword_names(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the names of a call's keywords, as constants."""
    for keyword in call.keywords:
        if keyword.arg and not is_media(keyword.value):
            yield ast.copy_location(ast.Constant(keyword.arg), keyword.value)


def is_media(node: ast.expr) -> bool:
    """Return whether a value is a picture, a film or a table, and no number."""
    return isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _MEDIA


def _pair_keys(node: ast.expr, scope: FileScope, depth: int) -> Iterator[ast.expr]:
    """Yield the first items of pairs: of a list of tuples, or of a comprehension over one."""
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        if isinstance(node.elt, ast.Tuple) and node.elt.elts:
            yield from _comprehended(node.elt.elts[0], node, scope, depth)
        return
    if isinstance(node, (ast.Dict, ast.Call, ast.Attribute)):
        yield from dict_keys(node, scope, depth - 1)
        return
    if isinstance(node, ast.Name) and not _rows(node, scope):
        yield from dict_keys(node, scope, depth - 1)
        return
    for row in _rows(node, scope):
        if isinstance(row, ast.Tuple) and row.elts:
            yield row.elts[0]


def _comprehended(key: ast.expr, node: _Comprehension, scope: FileScope, depth: int) -> Iterator[ast.expr]:
    """Yield the keys of a comprehension: those that its loop gives to the key's name, else the key as it is written."""
    names: list[ast.expr] = []
    variable = variable_part(key)
    if variable is not None:
        for loop in node.generators:
            names += _bound(variable.id, loop.target, loop.iter, scope, depth)
    yield from filled(key, names)


def _bound(name: str, target: ast.expr, source: ast.expr, scope: FileScope, depth: int) -> list[ast.expr]:
    """Return the expressions that a loop over a list, or over the items of a dict, gives to one name of its target."""
    targets = [target]
    if isinstance(target, (ast.Tuple, ast.List)):
        targets = target.elts
    place = next((index for index, item in enumerate(targets) if isinstance(item, ast.Name) and item.id == name), None)
    if place is None:
        return []
    if isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute):
        is_keys = source.func.attr == "items" and len(targets) == 2 and place == 0
        if is_keys or (source.func.attr == "keys" and len(targets) == 1):
            return list(dict_keys(source.func.value, scope, depth - 1))
        return []
    rows = _rows(source, scope)
    if len(targets) == 1:
        return rows
    return [row.elts[place] for row in rows if isinstance(row, ast.Tuple) and len(row.elts) == len(targets)]


def _rows(node: ast.expr, scope: FileScope) -> list[ast.expr]:
    """Return the items of a list that is written in the source, also if it is in a variable."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return node.elts
    if not isinstance(node, ast.Name):
        return []
    for other in nodes_around(node, scope.file):
        if not isinstance(other, (ast.Assign, ast.AnnAssign)) or not _assigns(other, node.id):
            continue
        if isinstance(other.value, (ast.List, ast.Tuple)):
            return other.value.elts
    return []


def _variable_keys(variable: ast.Name | ast.Attribute, scope: FileScope, depth: int) -> Iterator[ast.expr]:
    """Yield the keys that a function puts into a variable, by assignments, items and `update`.

    An attribute is filled by all functions of its file.
    """
    name = dotted(variable)
    around = nodes_around(variable, scope.file)
    is_local = any(isinstance(node, (ast.Assign, ast.AnnAssign)) and _places(node, name) for node in around)
    if not is_local or "." in name:
        around = scope.file.nodes
    for node in around:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            for place in _places(node, name):
                yield from _placed_keys(node.value, place, scope, depth - 1)
            yield from _item_set(node, name)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield from _added_by_call(node, node.func, name, scope, depth)


def _item_set(node: ast.Assign | ast.AnnAssign | ast.AugAssign, name: str) -> Iterator[ast.expr]:
    """Yield the key of `name["loss"] = …` or `name["loss"] += …`."""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    if not isinstance(target, ast.Subscript) or node.value is None or is_media(node.value):
        return
    if dotted(target.value) == name and text_pattern(target.slice):
        yield target.slice


def _added_by_call(
    call: ast.Call, method: ast.Attribute, name: str, scope: FileScope, depth: int
) -> Iterator[ast.expr]:
    """Yield the keys that a call adds to a dict, or to an item of it: `update`, `setdefault`, `name["loss"].append`."""
    item = method.value
    if isinstance(item, ast.Subscript) and method.attr in ("append", "extend", "update", "add", "push"):
        if dotted(item.value) == name and text_pattern(item.slice):
            yield item.slice
    elif dotted(item) != name:
        return
    elif method.attr == "update":
        yield from keyword_names(call)
        for argument in call.args:
            yield from dict_keys(argument, scope, depth - 1)
    elif method.attr == "setdefault" and call.args and text_pattern(call.args[0]):
        yield call.args[0]
    elif method.attr == "append" and call.args:
        yield from dict_keys(call.args[0], scope, depth - 1)


def _places(node: ast.Assign | ast.AnnAssign | ast.AugAssign, name: str) -> list[tuple[int, ...]]:
    """Return where a name is in the targets of an assignment: `()` for itself, `(1,)` in `state, name = …`."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [place for target in targets for place in _within(target, name)]


def _within(target: ast.expr, name: str) -> list[tuple[int, ...]]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [(index, *place) for index, item in enumerate(target.elts) for place in _within(item, name)]
    if isinstance(target, (ast.Name, ast.Attribute)) and dotted(target) == name:
        return [()]
    return []


def _placed_keys(value: ast.expr, place: tuple[int, ...], scope: FileScope, depth: int) -> Iterator[ast.expr]:
    """Yield the keys of a value, or of one place of the tuple that it is."""
    if not place:
        yield from dict_keys(value, scope, depth)
    elif isinstance(value, ast.Tuple) and len(value.elts) > place[0]:
        yield from _placed_keys(value.elts[place[0]], place[1:], scope, depth)
    elif isinstance(value, ast.Call):
        yield from _returned_keys(value, scope, depth, place)


def _assigns(node: ast.Assign | ast.AnnAssign, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _returned_keys(call: ast.Call, scope: FileScope, depth: int, place: tuple[int, ...] = ()) -> Iterator[ast.expr]:
    """Yield the keys of the dict that a function returns, or has in a place of the tuple that it returns.

    The function is looked up in the same file, else in those that it imports, else in the whole project.
    """
    if depth <= 0:
        return
    function, place = _called(call, place)
    receiver, _, name = dotted(function).rpartition(".")
    first = receiver.partition(".")[0]
    if not name or (first in scope.file.packages and first not in module_index(scope.repository)):
        return  # a function of a library
    own = [(scope.file, found) for found in scope.file.functions if found.name == name]
    if "." in receiver or not own:
        files = imported_files(scope.repository, scope.file)[:MOST_FILES]
        own += [(file, found) for file in files for found in file.functions if found.name == name]
    if not own and receiver and name not in _USUAL_METHODS:
        own = _functions_named(scope.repository).get(name, [])[:MOST_FUNCTIONS]
    for file, found in own:
        for node in file.inside(found):
            if isinstance(node, ast.Return) and node.value is not None:
                yield from _placed_keys(node.value, place, FileScope(file, scope.repository), depth - 1)


def _called(call: ast.Call, place: tuple[int, ...]) -> tuple[ast.expr, tuple[int, ...]]:
    """Return the function that a call runs, also through JAX's gradients and scans, and the place of its result."""
    inner = call.func
    if isinstance(inner, ast.Call) and inner.args:
        tail = dotted(inner.func).rpartition(".")[2]
        if tail == "value_and_grad" and place[:1] == (0,):
            place = place[1:]
        return inner.args[0], place
    if dotted(inner).rpartition(".")[2] == "scan" and call.args:
        return call.args[0], place
    return inner, place


def _functions_named(repository: ForeignRepository) -> dict[str, list[tuple[PythonFile, ast.FunctionDef]]]:
    """Return all functions of the programs by their names."""
    known: dict[str, list[tuple[PythonFile, ast.FunctionDef]]] = repository.cache.setdefault("functions", {})
    if not known:
        for file in repository.programs:
            for function in file.functions:
                known.setdefault(function.name, []).append((file, function))
    return known
