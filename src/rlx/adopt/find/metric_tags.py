"""Finds the names of the metrics that a program logs: by scalar writers, loggers with categories, dicts and tables."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from rlx.adopt.find.constants import constant_text
from rlx.adopt.find.dict_keys import FileScope, dict_keys, filled, keyword_names, loop_names, variable_part
from rlx.adopt.find.text_patterns import text_pattern
from rlx.adopt.repository import ForeignRepository, PythonFile, dotted, literal
from rlx.adopt.scan_fact import Confidence, ScanFact

_SCALARS = ("add_scalar", "log_scalar", "write_scalar", "scalar_summary", "logkv", "logkv_mean")
_WRITES_VALUE = re.compile(r"^(write|log|add|record|track|report|send)_\w*(value|scalar|metric|summary|stat)\w*$")
"""A project's own methods that log one value; only their names with a `/` are taken for metrics."""
_RECORDS = ("record", "record_mean")
_TABLES = ("log", "log_metrics", "log_dict", "log_scalars", "log_data", "write_scalars", "logkvs", "scalars", "write")
_KEYWORD_TABLES = ("store_metrics", "store_key_value", "log_key_value", "store", "log_row")
"""Calls that log one value per keyword."""
_TRACKERS = ("wandb", "mlflow", "run", "wandb_run", "trackio", "swanlab", "experiment", "tracker")
_HEADER = re.compile(r"[A-Za-z_][\w/.-]*(,[A-Za-z_][\w/.-]*)+\r?\n")
"""The first line of a table that a program writes as text."""
_DEEPEST = 5


def metric_tags(file: PythonFile, repository: ForeignRepository) -> Iterator[ScanFact]:
    """Yield the names of the metrics, each as often as it is logged."""
    scope = FileScope(file, repository)
    categories = dict(_category_scopes(file))
    for call in file.calls:
        name = dotted(call.func)
        receiver, _, tail = name.rpartition(".")
        columns = list(_columns(call, tail))
        if id(call) in categories:
            yield from _tag(call.args[0], file, category=categories[id(call)])
        elif _is_scalar(call, receiver, tail):
            for node in _names(call.args[0], scope):
                yield from _tag(node, file, has_spaces=tail in _SCALARS)
        elif columns:
            for column in columns:
                yield from _tag(column, file)
        elif tail in _KEYWORD_TABLES and _is_log(receiver):
            for node in keyword_names(call):
                yield from _tag(node, file)
        elif tail in _TABLES and call.args and _is_log(receiver):
            yield from _logged(call, receiver, scope)


def _is_scalar(call: ast.Call, receiver: str, tail: str) -> bool:
    """Return whether a call logs one value under a name."""
    if not call.args:
        return False
    if tail in _SCALARS or (tail == "log_metric" and receiver == "mlflow"):
        return True
    if _WRITES_VALUE.search(tail):
        return len(call.args) >= 2 and "/" in text_pattern(call.args[0])
    if tail in _RECORDS:
        return len(call.args) >= 2 and "logger" in receiver
    if tail == "scalar":
        return _is_value(call.args[1:]) and (_is_log(receiver) or receiver.endswith("summary"))
    return tail == "log" and _is_value(call.args[1:]) and (not receiver or bool(text_pattern(call.args[0])))


def _names(node: ast.expr, scope: FileScope) -> list[ast.expr]:
    """Return the expressions of a metric's name: the text itself, a constant, or what a loop around it gives it."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        text = constant_text(node, scope.file, scope.repository)
        if text:
            return [ast.copy_location(ast.Constant(text), node)]
    variable = variable_part(node)
    if variable is None:
        return [node]
    return filled(node, loop_names(variable, scope, _DEEPEST))


def _columns(call: ast.Call, tail: str) -> list[ast.expr]:
    """Return the columns of a table, if a call writes its first line: as text, as a list, or by `DictWriter`."""
    first = next(iter(call.args), None)
    text = literal(first)
    if tail == "write" and isinstance(text, str) and _HEADER.fullmatch(text):
        return [ast.copy_location(ast.Constant(name), call) for name in text.strip().split(",")]
    if tail == "writerow":
        return _texts(first)
    if tail == "DictWriter":
        given = next((keyword.value for keyword in call.keywords if keyword.arg == "fieldnames"), None)
        if given is None and len(call.args) > 1:
            given = call.args[1]
        return _texts(given)
    return []


def _texts(node: ast.expr | None) -> list[ast.expr]:
    """Return the items of a list of at least two texts; items that are computed are left out."""
    if not isinstance(node, (ast.List, ast.Tuple)) or len(node.elts) < 2:
        return []
    return [item for item in node.elts if isinstance(literal(item), str)]


def _is_log(receiver: str) -> bool:
    """Return whether an object is named like a logger or a tracker."""
    last = receiver.rpartition(".")[2].lower().strip("_")
    return receiver == "self" or "logger" in last or last in _TRACKERS or "writer" in last


def _logged(call: ast.Call, receiver: str, scope: FileScope) -> Iterator[ScanFact]:
    """Yield the tags of one log call: of a name with a value, or of a dict with an optional category."""
    first = call.args[0]
    if _is_value(call.args[1:]) and text_pattern(first):
        yield from _tag(first, scope.file)
        return
    category = ""
    if receiver.rpartition(".")[2].lower().strip("_") not in _TRACKERS:
        category = _category([*call.args[1:], *(keyword.value for keyword in call.keywords)])
    is_table = category or receiver != "self"
    if text_pattern(first) or not is_table:
        return
    keys = list(dict_keys(first, scope, _DEEPEST))
    for key in keys:
        yield from _tag(key, scope.file, category=category)
    if category and not keys:
        yield ScanFact("metric tag", f"{category}/*", scope.file.path, call.lineno, "medium")


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


def _tag(node: ast.expr, file: PythonFile, *, category: str = "", has_spaces: bool = False) -> Iterator[ScanFact]:
    text = text_pattern(node)
    if text.strip("*/") and (has_spaces or " " not in text or "/" in text) and len(text) < 100:
        confidence: Confidence = "high"
        if "*" in text:
            confidence = "medium"
        if category:
            text = f"{category}/{text}"
        yield ScanFact("metric tag", text, file.path, node.lineno, confidence=confidence)
