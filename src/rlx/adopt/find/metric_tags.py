"""Finds the names of the metrics that a program logs: by scalar writers, loggers with categories, dicts and tables."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rlx.adopt.find.constants import constant_text
from rlx.adopt.find.dict_keys import FileScope, dict_keys, filled, keyword_names, loop_names, variable_part
from rlx.adopt.find.text_patterns import nodes_around, put_together, text_pattern
from rlx.adopt.repository import ForeignRepository, PythonFile, dotted, literal
from rlx.adopt.scan_fact import Confidence, ScanFact

_SCALARS = (
    "add_scalar", "log_scalar", "write_scalar", "scalar_summary", "logkv", "logkv_mean", "record_tabular",
    "log_tabular",
)  # fmt: skip
_WRITES_VALUE = re.compile(r"^(write|log|add|record|track|report|send)_\w*(value|scalar|metric|summary|stat)\w*$")
"""A project's own methods that log one value; only their names with a `/` are taken for metrics."""
_RECORDS = ("record", "record_mean", "add", "put", "push", "write", "set", "store")
_TABLES = ("log", "log_metrics", "log_dict", "log_scalars", "log_data", "write_scalars", "logkvs", "scalars", "write")
_KEYWORD_TABLES = ("store_metrics", "store_key_value", "log_key_value", "store", "log_row")
"""Calls that log one value per keyword."""
_TRACKERS = ("wandb", "mlflow", "run", "wandb_run", "trackio", "swanlab", "experiment", "tracker")
_HEADER = re.compile(r"[A-Za-z_][\w/.-]*(,[A-Za-z_][\w/.-]*)+\r?\n")
"""The first line of a table that a program writes as text."""
_NAME_KEYWORDS = ("tag", "name", "key")
_TABLE_KEYWORDS = ("data", "metrics", "values", "dictionary")
_OWN_TABLES = ("log_dict", "log_metrics", "log_scalars")
"""Methods of a program's own class whose name says that their dict is a table of metrics."""
_LOG_FILE = re.compile(r"log|progress|metric|result|stat|train|eval|reward|return|score|history|monitor|episode")
_DEEPEST = 8


def metric_tags(file: PythonFile, repository: ForeignRepository) -> Iterator[ScanFact]:
    """Yield the names of the metrics, each as often as it is logged."""
    scope = FileScope(file, repository)
    categories = dict(_category_scopes(file))
    own = own_methods(repository)
    for call in file.calls:
        name = dotted(call.func)
        receiver, _, tail = name.rpartition(".")
        columns = list(_columns(call, tail, scope))
        if id(call) in categories:
            yield from _tag(call.args[0], file, category=categories[id(call)])
        elif _is_scalar(call, receiver, tail):
            for node in _names(_name_node(call), scope):
                yield from _tag(node, file, has_spaces=tail in _SCALARS)
        elif columns:
            for column in columns:
                yield from _tag(column, file)
        elif tail == "add_scalars" and len(call.args) > 1:
            for key in dict_keys(call.args[1], scope, _DEEPEST):
                yield from _tag(key, file, category=text_pattern(call.args[0]) or "*")
        elif tail in _KEYWORD_TABLES and _is_log(receiver):
            for node in keyword_names(call):
                yield from _tag(node, file)
        elif _is_table(call, tail) and _is_log(receiver):
            yield from _logged(call, receiver, scope)
        elif tail in own:
            yield from _by_own_methods(call, own[tail], scope)


def _name_node(call: ast.Call) -> ast.expr:
    """Return the argument that names a value: by keyword, else the first."""
    given = [keyword.value for keyword in call.keywords if keyword.arg in _NAME_KEYWORDS]
    return next(iter([*call.args[:1], *given]), call.func)


def _table_node(call: ast.Call) -> ast.expr | None:
    given = [keyword.value for keyword in call.keywords if keyword.arg in _TABLE_KEYWORDS]
    return next(iter([*call.args[:1], *given]), None)


def _is_table(call: ast.Call, tail: str) -> bool:
    """Return whether a logger's method gets a table; `logger.add(path)` of loguru gets a file."""
    given = _table_node(call)
    return (tail in _TABLES and given is not None) or (tail == "add" and isinstance(given, ast.Dict))


def _is_scalar(call: ast.Call, receiver: str, tail: str) -> bool:
    """Return whether a call logs one value under a name."""
    words = {keyword.arg for keyword in call.keywords}
    if "simple_value" in words:
        return True
    if not call.args:
        is_named = bool(words & {*_NAME_KEYWORDS})
        return is_named and (
            tail in _SCALARS
            or (tail == "scalar" and receiver.endswith("summary"))
            or (tail == "log" and "value" in words)
        )
    if tail in _SCALARS or (tail == "log_metric" and receiver == "mlflow"):
        return True
    if _WRITES_VALUE.search(tail):
        return len(call.args) >= 2 and "/" in text_pattern(call.args[0])
    if tail in _RECORDS:
        return _is_value(call.args[1:]) and "logger" in receiver.lower()
    if tail == "scalar":
        return _is_value(call.args[1:]) and (_is_log(receiver) or receiver.endswith("summary"))
    return tail == "log" and _is_value(call.args[1:]) and (not receiver or bool(text_pattern(call.args[0])))


@dataclass(frozen=True)
class OwnMethod:
    """A function of the project that hands a metric's name, or a dict of them, to a logger."""

    parameters: tuple[str, ...]
    defaults: dict[str, ast.expr]
    name: ast.expr
    """The name as the function writes it, with its parameters."""
    key: str
    """The variable that stands for a key of the dict; empty if the function logs one value."""
    table: str
    """The parameter that is the dict."""


def own_methods(repository: ForeignRepository) -> dict[str, list[OwnMethod]]:
    """Return the functions of the project that log what they are given, by their names."""
    known: dict[str, list[OwnMethod]] = repository.cache.setdefault("own log methods", {})
    if "" not in known:
        known[""] = []
        for file in repository.programs:
            if _LOGS.search(file.text):
                for name, method in _own_methods_of(file):
                    known.setdefault(name, []).append(method)
    return known


_LOGS = re.compile(
    r"add_scalar|\.logkv|record_tabular|summary\.scalar|log_scalar|wandb\.log|\.log\(|log_metric|simple_value"
)


def _own_methods_of(file: PythonFile) -> Iterator[tuple[str, OwnMethod]]:
    for function in file.functions:
        arguments = [*function.args.args, *function.args.kwonlyargs]
        parameters = tuple(argument.arg for argument in arguments if argument.arg not in ("self", "cls"))
        if not parameters or function.name.startswith("__"):
            continue
        nodes = file.inside(function)
        defaults = dict(zip(reversed(parameters), reversed(function.args.defaults), strict=False))
        for node in _logged_names(nodes):
            used = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            loop = _loop_over(nodes, used, parameters)
            if loop or (used & set(parameters)):
                key, table = loop or ("", "")
                yield function.name, OwnMethod(parameters, defaults, node, key, table)


def _logged_names(nodes: list[ast.AST]) -> Iterator[ast.expr]:
    """Yield the names that the calls in a function log, as they are written."""
    for call in nodes:
        if not isinstance(call, ast.Call):
            continue
        receiver, _, tail = dotted(call.func).rpartition(".")
        first = _table_node(call)
        if tail == "log" and receiver.rpartition(".")[2] in _TRACKERS and isinstance(first, ast.Dict):
            yield from (key for key in first.keys if key is not None and not isinstance(key, ast.Constant))
        elif _is_scalar(call, receiver, tail) and tail != "log" and not isinstance(_name_node(call), ast.Constant):
            yield _name_node(call)


def _loop_over(nodes: list[ast.AST], used: set[str], parameters: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the key and the dict of a `for key, value in dict.items()` whose key a name has."""
    for node in nodes:
        if isinstance(node, ast.For) and isinstance(node.target, ast.Tuple) and isinstance(node.iter, ast.Call):
            table = dotted(node.iter.func).removesuffix(".items")
            key = dotted(node.target.elts[0])
            if key in used and table in parameters:
                return key, table
    return None


def _by_own_methods(call: ast.Call, methods: list[OwnMethod], scope: FileScope) -> Iterator[ScanFact]:
    """Yield the tags of a call of the project's own log function."""
    for method in methods[:_DEEPEST]:
        given = dict(zip(method.parameters, call.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        texts = {name: text_pattern(node) for name, node in {**method.defaults, **given}.items()}
        if not method.table:
            names = {part.id for part in ast.walk(method.name) if isinstance(part, ast.Name)}
            if any(texts.get(name) and name in given for name in names):
                yield from _tag(ast.copy_location(ast.Constant(put_together(method.name, texts)), call), scope.file)
        elif method.table in given:
            for key in dict_keys(given[method.table], scope, _DEEPEST):
                text = put_together(method.name, {**texts, method.key: text_pattern(key)})
                yield from _tag(ast.copy_location(ast.Constant(text), key), scope.file)


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


def _columns(call: ast.Call, tail: str, scope: FileScope) -> list[ast.expr]:
    """Return the columns of a table that a call writes: its first line, as text or list, or a frame of pandas."""
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
    if tail == "to_csv" and isinstance(call.func, ast.Attribute) and _LOG_FILE.search(text_pattern(first)):
        return _frame_columns(call.func.value, scope)
    return []


def _frame_columns(frame: ast.expr, scope: FileScope) -> list[ast.expr]:
    """Return the columns of a frame of pandas that is made of a dict, or of a list of dicts."""
    for node in nodes_around(frame, scope.file):
        if isinstance(node, ast.Assign) and isinstance(frame, ast.Name) and dotted(node.targets[0]) == frame.id:
            frame = node.value
    if not isinstance(frame, ast.Call) or not dotted(frame.func).endswith("DataFrame") or not frame.args:
        return []
    return list(dict_keys(frame.args[0], scope, _DEEPEST))


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
    first = _table_node(call)
    if first is None:
        return
    if _is_value(call.args[1:]) and text_pattern(first):
        yield from _tag(first, scope.file)
        return
    category = ""
    if receiver.rpartition(".")[2].lower().strip("_") not in _TRACKERS:
        category = _category([*call.args[1:], *(keyword.value for keyword in call.keywords)])
    is_table = category or receiver != "self" or dotted(call.func).rpartition(".")[2] in _OWN_TABLES
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
