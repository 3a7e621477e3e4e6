"""The identity of an idea: what a diff changes, without comments and layout, and how many ideas it holds."""

from __future__ import annotations

import ast
import difflib
import json
import re
from collections.abc import Iterator

from rlx import files
from rlx.loop.lab.lab_folder import EVALUATOR
from rlx.loop.lab.staged_change import StagedChange
from rlx.study.candidate.diff_scope import FileChange

TRAIN_FILE = "candidate/train.py"


def fingerprint(change: StagedChange) -> str:
    """Return a hash of the idea: the changed keys, and the statements that differ. Comments and layout do not count."""
    statements = [[file.path, *_changed_statements(file)] for file in change.changes if file.path != TRAIN_FILE]
    content = {"keys": change.keys, "statements": [entry for entry in statements if len(entry) > 1]}
    return files.sha256(json.dumps(content, sort_keys=True, default=str).encode())[:16]


def is_empty(change: StagedChange) -> bool:
    """Say whether a change does nothing: no key and no statement differs."""
    own = [file for file in change.changes if file.path != TRAIN_FILE]
    return not change.keys and not any(_changed_statements(file) or _is_not_python(file) for file in own)


def parts(change: StagedChange) -> list[str]:
    """Return the ideas of a diff: every changed key, and every changed function, class or top-level statement."""
    found = list(change.keys)
    for file in change.changes:
        if file.path != TRAIN_FILE:
            found += [f"{file.path}::{name}" for name in _changed_names(file)]
    return sorted(set(found))


def module_uses(change: StagedChange, module: str = EVALUATOR) -> list[str]:
    """Return the places in the changed files that import a module, or hold its name or path in a text literal."""
    name_or_path = rf"(?:^|[/\\'\"]){module}(?:$|[/\\'\"]|\.\w)"
    import_statement = rf"\b(?:import|from)\s+{module}\b"
    literal = re.compile(f"{name_or_path}|{import_statement}")
    found = []
    for file in change.changes:
        for node in ast.walk(_without_docstrings(_tree(file.after))):
            is_imported = any(name.partition(".")[0] == module for name in _imported(node))
            if is_imported or literal.search(_text(node)):
                found.append(f"{file.path}:{node.lineno}")  # type: ignore[attr-defined]
    return found


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(alias.name for alias in node.names)]
    return []


def _text(node: ast.AST) -> str:
    """Return the text of a literal; empty for any other node."""
    if not isinstance(node, ast.Constant):
        return ""
    if isinstance(node.value, bytes):
        return node.value.decode(errors="replace")
    if isinstance(node.value, str):
        return node.value
    return ""


def _is_not_python(change: FileChange) -> bool:
    return not change.path.endswith(".py")


def _tree(source: bytes | None) -> ast.Module:
    try:
        return ast.parse(source or b"")
    except (SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])


def _lines(source: bytes | None) -> list[str]:
    """Return a file's statements without comments and layout; a file that is not Python, line by line."""
    tree = _tree(source)
    if tree.body:
        return ast.unparse(_without_docstrings(tree)).splitlines()
    return (source or b"").decode(errors="replace").splitlines()


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            if is_text and isinstance(first.value.value, str):  # type: ignore[union-attr]
                node.body = node.body[1:] or [ast.Pass()]
    return tree


def _changed_statements(change: FileChange) -> list[str]:
    lines = difflib.ndiff(_lines(change.before), _lines(change.after))
    return [line for line in lines if line[:1] in "+-" and line[2:].strip()]


def _changed_names(change: FileChange) -> Iterator[str]:
    """Yield the functions, methods and other statements of a file whose code differs."""
    before = _named_code(change.before)
    after = _named_code(change.after)
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield name


def _named_code(source: bytes | None) -> dict[str, str]:
    named: dict[str, str] = {}
    for node in _without_docstrings(_tree(source)).body:
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                name = getattr(inner, "name", "body")
                key = f"{node.name}.{name}"
                named[key] = named.get(key, "") + ast.unparse(inner)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            named[node.name] = ast.unparse(node)
        elif not isinstance(node, (ast.Import, ast.ImportFrom)):
            named["module"] = named.get("module", "") + ast.unparse(node)
    return named
