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
MOST_FILES = 40
"""How many of the files that a program imports are searched for the function that returns a dict."""
_Comprehension = ast.ListComp | ast.GeneratorExp | ast.DictComp


@dataclass(frozen=True)
class FileScope:
    """The file in which an expression is written, and the repository around it."""

    file: PythonFile
    repository: ForeignRepository


def dict_keys(node: ast.expr, scope: FileScope, depth: int) -> Iterator[ast.expr]:
    """Yield the expressions of the keys; images and films are left out."""
    if depth == 0:
        return
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                yield from dict_keys(value, scope, depth)
            elif not is_media(value):
                yield key
    elif isinstance(node, ast.DictComp):
        yield from _comprehended(node.key, node, scope, depth)
    elif isinstance(node, ast.Call) and dotted(node.func) in _DICTS:
        yield from keyword_names(node)
        for argument in node.args:
            yield from _pair_keys(argument, scope, depth)
    elif isinstance(node, ast.Call):
        yield from _returned_keys(node, scope, depth)
    elif isinstance(node, ast.Name):
        yield from _variable_keys(node, scope, depth)


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
    if isinstance(node, ast.Dict):
        yield from dict_keys(node, scope, depth)
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


def _variable_keys(variable: ast.Name, scope: FileScope, depth: int) -> Iterator[ast.expr]:
    """Yield the keys that a function puts into a variable, by assignments, items and `update`."""
    around = nodes_around(variable, scope.file)
    if not any(isinstance(node, (ast.Assign, ast.AnnAssign)) and _assigns(node, variable.id) for node in around):
        around = scope.file.nodes
    for node in around:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            if _assigns(node, variable.id):
                yield from dict_keys(node.value, scope, depth - 1)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
                item = node.targets[0]
                if dotted(item.value) == variable.id and text_pattern(item.slice) and not is_media(node.value):
                    yield item.slice
        elif isinstance(node, ast.Call) and dotted(node.func) == f"{variable.id}.update":
            yield from keyword_names(node)
            for argument in node.args:
                yield from dict_keys(argument, scope, depth - 1)


def _assigns(node: ast.Assign | ast.AnnAssign, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _returned_keys(call: ast.Call, scope: FileScope, depth: int) -> Iterator[ast.expr]:
    """Yield the keys of the dict that a function returns: of the same file, or else of a file that it imports."""
    receiver, _, name = dotted(call.func).rpartition(".")
    first = receiver.partition(".")[0]
    own = [scope]
    if first in scope.file.packages and first not in module_index(scope.repository):
        own = []  # a function of a library
    elif "." in receiver or not any(function.name == name for function in scope.file.functions):
        files = imported_files(scope.repository, scope.file)[:MOST_FILES]
        own = [FileScope(file, scope.repository) for file in files]
    for place in own:
        for function in place.file.functions:
            if function.name == name:
                for node in place.file.inside(function):
                    if isinstance(node, ast.Return) and node.value is not None:
                        yield from dict_keys(node.value, place, depth - 1)
