"""Finds the names of the metrics that a program logs: by scalar writers, loggers with categories, and dicts."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from rlx.adopt.find.text_patterns import nodes_around, text_pattern
from rlx.adopt.repository import PythonFile, dotted, literal
from rlx.adopt.scan_fact import Confidence, ScanFact

_SCALARS = ("add_scalar", "log_scalar", "write_scalar", "scalar_summary", "logkv", "logkv_mean")
_RECORDS = ("record", "record_mean")
_TABLES = ("log", "log_metrics", "log_dict", "log_scalars", "log_data", "write_scalars", "logkvs")
_TRACKERS = ("wandb", "mlflow", "run", "wandb_run", "trackio", "swanlab", "experiment", "tracker")
_MEDIA = ("Video", "Image", "Histogram", "Table", "Audio", "Html", "Plotly")
_DEEPEST = 3


def metric_tags(file: PythonFile) -> Iterator[ScanFact]:
    """Yield the names of the metrics, each as often as it is logged."""
    scopes = dict(_category_scopes(file))
    for call in file.calls:
        name = dotted(call.func)
        receiver, _, tail = name.rpartition(".")
        if id(call) in scopes:
            yield from _tag(call.args[0], file, category=scopes[id(call)])
        elif (tail in _SCALARS and call.args) or (tail in _RECORDS and len(call.args) >= 2 and "logger" in name):
            yield from _tag(call.args[0], file)
        elif tail in _TABLES and call.args and _is_log(receiver):
            yield from _logged(call, receiver, file)
        elif (name == "mlflow.log_metric" and call.args) or (name == "log" and _is_value(call.args[1:])):
            yield from _tag(call.args[0], file)


def _is_log(receiver: str) -> bool:
    """Return whether an object is named like a logger or a tracker."""
    last = receiver.rpartition(".")[2].lower().strip("_")
    return receiver == "self" or "logger" in last or last in _TRACKERS or "writer" in last


def _logged(call: ast.Call, receiver: str, file: PythonFile) -> Iterator[ScanFact]:
    """Yield the tags of one log call: of a name with a value, or of a dict with an optional category."""
    first = call.args[0]
    if _is_value(call.args[1:]) and text_pattern(first):
        yield from _tag(first, file)
        return
    category = ""
    if receiver.rpartition(".")[2].lower().strip("_") not in _TRACKERS:
        category = _category([*call.args[1:], *(keyword.value for keyword in call.keywords)])
    is_table = category or receiver != "self"
    if text_pattern(first) or not is_table:
        return
    keys = list(_dict_keys(first, file, _DEEPEST))
    for key in keys:
        yield from _tag(key, file, category=category)
    if category and not keys:
        yield ScanFact("metric tag", f"{category}/*", file.path, call.lineno, "medium")


def _category_scopes(file: PythonFile) -> Iterator[tuple[int, str]]:
    """Yield the calls of a function that a `with` block binds to a category: `with log_in(step, "eval") as log`."""
    for block in file.nodes:
        if not isinstance(block, ast.With):
            continue
        for item in block.items:
            opened = item.context_expr
            if not isinstance(opened, ast.Call) or not isinstance(item.optional_vars, ast.Name):
                continue
            category = _category([*opened.args, *(keyword.value for keyword in opened.keywords)])
            if not category:
                continue
            for node in ast.walk(block):
                is_ours = isinstance(node, ast.Call) and dotted(node.func) == item.optional_vars.id
                if is_ours and isinstance(node, ast.Call) and _is_value(node.args[1:]):
                    yield id(node), category


def _category(arguments: Sequence[ast.expr]) -> str:
    """Return the one constant word among arguments, such as `eval`; empty if there is none."""
    words = [value for node in arguments if isinstance(value := literal(node), str)]
    if len(words) == 1 and words[0].replace("_", "").isalnum():
        return words[0]
    return ""


def _is_value(arguments: Sequence[ast.expr]) -> bool:
    return bool(arguments) and not isinstance(literal(arguments[0]), str)


def _tag(node: ast.expr, file: PythonFile, *, category: str = "") -> Iterator[ScanFact]:
    text = text_pattern(node)
    if text.strip("*/") and (" " not in text or "/" in text) and len(text) < 100:
        confidence: Confidence = "high"
        if "*" in text:
            confidence = "medium"
        if category:
            text = f"{category}/{text}"
        yield ScanFact("metric tag", text, file.path, node.lineno, confidence=confidence)


def _dict_keys(node: ast.expr, file: PythonFile, depth: int) -> Iterator[ast.expr]:
    """Yield the keys of a dict expression: a literal, a variable that was filled, or the result of a function."""
    if depth == 0:
        return
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                yield from _dict_keys(value, file, depth)
            elif not _is_media(value):
                yield key
    elif isinstance(node, ast.DictComp):
        yield node.key
    elif isinstance(node, ast.Call) and dotted(node.func) == "dict":
        yield from _keywords(node)
    elif isinstance(node, ast.Call):
        yield from _returned_keys(node, file, depth)
    elif isinstance(node, ast.Name):
        yield from _variable_keys(node, file, depth)


def _keywords(call: ast.Call) -> Iterator[ast.expr]:
    for keyword in call.keywords:
        if keyword.arg and not _is_media(keyword.value):
            yield ast.copy_location(ast.Constant(keyword.arg), keyword.value)


def _is_media(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] in _MEDIA


def _variable_keys(variable: ast.Name, file: PythonFile, depth: int) -> Iterator[ast.expr]:
    """Yield the keys that a function puts into a variable, by assignments, items and `update`."""
    around = nodes_around(variable, file)
    if not any(isinstance(node, (ast.Assign, ast.AnnAssign)) and _assigns(node, variable.id) for node in around):
        around = file.nodes
    for node in around:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            if _assigns(node, variable.id):
                yield from _dict_keys(node.value, file, depth - 1)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
                item = node.targets[0]
                if dotted(item.value) == variable.id and text_pattern(item.slice) and not _is_media(node.value):
                    yield item.slice
        elif isinstance(node, ast.Call) and dotted(node.func) == f"{variable.id}.update":
            yield from _keywords(node)
            for argument in node.args:
                yield from _dict_keys(argument, file, depth - 1)


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
                    yield from _dict_keys(node.value, file, depth - 1)
