"""Finds the keys of a dict expression: a literal, a list of pairs, a variable that was filled, a function's result."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rlx.adopt.find.text_patterns import nodes_around, text_pattern
from rlx.adopt.repository import PythonFile, dotted

_MEDIA = ("Video", "Image", "Histogram", "Table", "Audio", "Html", "Plotly")
_DICTS = ("dict", "OrderedDict", "collections.OrderedDict")
_Comprehension = ast.ListComp | ast.GeneratorExp | ast.DictComp


def dict_keys(node: ast.expr, file: PythonFile, depth: int) -> Iterator[ast.expr]:
    """Yield the expressions of the keys; images and films are left out."""
    if depth == 0:
        return
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                yield from dict_keys(value, file, depth)
            elif not is_media(value):
                yield key
    elif isinstance(node, ast.DictComp):
        yield from _comprehended(node.key, node, file, depth)
    elif isinstance(node, ast.Call) and dotted(node.func) in _DICTS:
        yield from keyword_names(node)
        for argument in node.args:
            yield from _pair_keys(argument, file, depth)
    elif isinstance(node, ast.Call):
        yield from _returned_keys(node, file, depth)
    elif isinstance(node, ast.Name):
        yield from _variable_keys(node, file, depth)


def loop_names(variable: ast.Name, file: PythonFile, depth: int) -> list[ast.expr]:
    """Return the expressions that a `for` around a variable gives it: constant words, or the keys of a dict."""
    names: list[ast.expr] = []
    for node in nodes_around(variable, file):
        if isinstance(node, ast.For) and node.lineno <= variable.lineno <= (node.end_lineno or 0):
            names += _bound(variable.id, node.target, node.iter, file, depth)
    return names


def keyword_names(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the names of a call's keywords, as constants."""
    for keyword in call.keywords:
        if keyword.arg and not is_media(keyword.value):
            yield ast.copy_location(ast.Constant(keyword.arg), keyword.value)


def is_media(node: ast.expr) -> bool:
    """Return whether a value is a picture, a film or a table, and no number."""
    return isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _MEDIA


def _pair_keys(node: ast.expr, file: PythonFile, depth: int) -> Iterator[ast.expr]:
    """Yield the first items of pairs: of a list of tuples, or of a comprehension over one."""
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        if isinstance(node.elt, ast.Tuple) and node.elt.elts:
            yield from _comprehended(node.elt.elts[0], node, file, depth)
        return
    if isinstance(node, ast.Dict):
        yield from dict_keys(node, file, depth)
        return
    for row in _rows(node, file):
        if isinstance(row, ast.Tuple) and row.elts:
            yield row.elts[0]


def _comprehended(key: ast.expr, node: _Comprehension, file: PythonFile, depth: int) -> Iterator[ast.expr]:
    """Yield the keys of a comprehension: those that its loop gives to the key's name, else the key as it is written."""
    names: list[ast.expr] = []
    if isinstance(key, ast.Name):
        for loop in node.generators:
            names += _bound(key.id, loop.target, loop.iter, file, depth)
    yield from names or [key]


def _bound(name: str, target: ast.expr, source: ast.expr, file: PythonFile, depth: int) -> list[ast.expr]:
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
            return list(dict_keys(source.func.value, file, depth - 1))
        return []
    rows = _rows(source, file)
    if len(targets) == 1:
        return rows
    return [row.elts[place] for row in rows if isinstance(row, ast.Tuple) and len(row.elts) == len(targets)]


def _rows(node: ast.expr, file: PythonFile) -> list[ast.expr]:
    """Return the items of a list that is written in the source, also if it is in a variable."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return node.elts
    if not isinstance(node, ast.Name):
        return []
    for other in nodes_around(node, file):
        if not isinstance(other, (ast.Assign, ast.AnnAssign)) or not _assigns(other, node.id):
            continue
        if isinstance(other.value, (ast.List, ast.Tuple)):
            return other.value.elts
    return []


def _variable_keys(variable: ast.Name, file: PythonFile, depth: int) -> Iterator[ast.expr]:
    """Yield the keys that a function puts into a variable, by assignments, items and `update`."""
    around = nodes_around(variable, file)
    if not any(isinstance(node, (ast.Assign, ast.AnnAssign)) and _assigns(node, variable.id) for node in around):
        around = file.nodes
    for node in around:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            if _assigns(node, variable.id):
                yield from dict_keys(node.value, file, depth - 1)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
                item = node.targets[0]
                if dotted(item.value) == variable.id and text_pattern(item.slice) and not is_media(node.value):
                    yield item.slice
        elif isinstance(node, ast.Call) and dotted(node.func) == f"{variable.id}.update":
            yield from keyword_names(node)
            for argument in node.args:
                yield from dict_keys(argument, file, depth - 1)


def _assigns(node: ast.Assign | ast.AnnAssign, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def _returned_keys(call: ast.Call, file: PythonFile, depth: int) -> Iterator[ast.expr]:
    """Yield the keys of the dict that a function of the same file returns."""
    name = dotted(call.func).rpartition(".")[2]
    is_method_elsewhere = dotted(call.func).count(".") > 1
    for function in file.functions:
        if function.name == name and not is_method_elsewhere:
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    yield from dict_keys(node.value, file, depth - 1)
