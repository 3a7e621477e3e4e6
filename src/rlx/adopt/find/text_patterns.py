"""Reads texts that a program puts together, such as paths and metric names, as patterns."""

from __future__ import annotations

import ast
import re

from rlx.adopt.repository import PythonFile, dotted, literal

_PLACEHOLDER = re.compile(
    r"<.*|\[.*|\{.*|\.\.\.|your\w*|my_?\w*|[a-z]+_(name|id)|path/to.*|/path/.*|X+|[A-Z]+_[A-Z_]+|"
    r"(ENV|ALGO|TASK|NAME|PATH|FILE|DIR|FOLDER|SEED|CONFIG|RUN|ID)",
)


_FORMAT = re.compile(r"%(\(\w+\))?[-+ #0]*\d*(\.\d+)?[sdifegxr]")


def is_placeholder(word: str) -> bool:
    """Return whether a word of a documented command stands for one that the reader chooses: `<env>`, `env_id`."""
    return bool(_PLACEHOLDER.fullmatch(word))


def text_pattern(node: ast.AST | None) -> str:
    """Return a text expression as a pattern: computed parts become `*`; empty if nothing of it is known."""
    if node is None:
        return ""
    value = literal(node)
    if isinstance(value, str):
        return value
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "*" for part in node.values]
        return "".join(map(str, parts))
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
        joint = "/" if isinstance(node.op, ast.Div) else ""
        return f"{text_pattern(node.left) or '*'}{joint}{text_pattern(node.right) or '*'}"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return _FORMAT.sub("*", text_pattern(node.left))
    if isinstance(node, ast.Call):
        return _call_pattern(node)
    if isinstance(node, ast.IfExp):
        return text_pattern(node.body) or text_pattern(node.orelse)
    return ""


def put_together(node: ast.expr, known: dict[str, str]) -> str:
    """Return a text expression as a pattern in which the texts of some variables are known."""
    if isinstance(node, ast.Name):
        return known.get(node.id) or "*"
    if isinstance(node, ast.JoinedStr):
        values = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
        return "".join(put_together(value, known) for value in values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return put_together(node.left, known) + put_together(node.right, known)
    return text_pattern(node) or "*"


def _call_pattern(call: ast.Call) -> str:
    tail = dotted(call.func).rpartition(".")[2]
    if tail == "join" and call.args and not isinstance(getattr(call.func, "value", None), ast.Constant):
        return "/".join(text_pattern(arg) or "*" for arg in call.args)
    if tail in ("Path", "PurePath", "str", "abspath", "expanduser") and call.args:
        return text_pattern(call.args[0])
    if tail == "format" and isinstance(call.func, ast.Attribute):
        return re.sub(r"\{[^}]*\}", "*", text_pattern(call.func.value))
    return ""


def nodes_around(node: ast.AST, file: PythonFile) -> list[ast.AST]:
    """Return the nodes of the innermost function around a node, or of the whole file if it is in no function."""
    line = getattr(node, "lineno", 0)
    around = [function for function in file.functions if function.lineno <= line <= (function.end_lineno or 0)]
    if around:
        return file.inside(max(around, key=lambda function: function.lineno))
    return file.nodes
