"""Reads constant texts by their names: of a module, of a class, or imported from another file of the project."""

from __future__ import annotations

import ast

from rlx.adopt.find.imported_files import module_index, resolve
from rlx.adopt.repository import ForeignRepository, PythonFile, dotted, literal


def constant_text(node: ast.expr, file: PythonFile, repository: ForeignRepository) -> str:
    """Return the text of a constant such as `SCORE` or `Tags.SCORE`; empty if the source does not say it."""
    name = dotted(node).removesuffix(".value")
    own = _texts(file, repository).get(name)
    if own is not None:
        return own
    first = name.partition(".")[0]
    for module in file.imports:
        if module != first and not module.endswith(f".{first}"):
            continue
        path = resolve(module, file, module_index(repository))
        inner = name.removeprefix(f"{first}.")
        if path is None:  # a name that is imported from a module
            path = resolve(module.rpartition(".")[0] or ".", file, module_index(repository))
            inner = name
        target = repository.by_path(path) if path else None
        if target is not None and inner in _texts(target, repository):
            return _texts(target, repository)[inner]
    return ""


def _texts(file: PythonFile, repository: ForeignRepository) -> dict[str, str]:
    """Return the texts that a module, its classes and its functions assign once to a name."""
    known: dict[str, dict[str, str]] = repository.cache.setdefault("constant texts", {})
    if file.path not in known:
        found: dict[str, str] = {}
        bodies: list[tuple[str, list[ast.stmt]]] = [("", file.tree.body)]
        bodies += [(f"{node.name}.", node.body) for node in file.classes]
        bodies += [("", node.body) for node in file.functions]
        for prefix, body in bodies:
            for name, text in _assigned(body):
                found.setdefault(prefix + name, text)
        known[file.path] = found
    return known[file.path]


def _assigned(body: list[ast.stmt]) -> list[tuple[str, str]]:
    rows = []
    for statement in body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            text = literal(statement.value)
            if isinstance(text, str):
                rows.append((statement.targets[0].id, text))
    return rows
