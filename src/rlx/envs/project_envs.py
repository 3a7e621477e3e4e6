"""The project's own environment classes, found in `envs/*.py` without importing anything."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

FOLDER = "envs"


@dataclass(frozen=True)
class OwnEnv:
    """A class that derives from `gymnasium.Env`, as `envs/file.py:Class`."""

    id: str
    summary: str


def own_envs(root: Path) -> list[OwnEnv]:
    """Return the environment classes of the project, by file and line; unreadable files are left out."""
    files = sorted((root / FOLDER).glob("*.py"))
    return [env for file in files for env in envs_in(file, name=f"{FOLDER}/{file.name}")]


def envs_in(file: Path, *, name: str) -> list[OwnEnv]:
    """Return the environment classes that one file defines."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    known: set[str] = set()
    for node in classes:  # a class may derive from one defined above it
        if any(_is_env(base, known) for base in node.bases):
            known.add(node.name)
    return [OwnEnv(f"{name}:{node.name}", _summary(node)) for node in classes if node.name in known]


def _is_env(base: ast.expr, known: set[str]) -> bool:
    if isinstance(base, ast.Subscript):  # Env[np.ndarray, int]
        base = base.value
    name = getattr(base, "attr", getattr(base, "id", ""))
    is_local = isinstance(base, ast.Name) and name in known
    return is_local or (name.endswith("Env") and name not in ("VectorEnv", "SyncVectorEnv", "AsyncVectorEnv"))


def _summary(node: ast.ClassDef) -> str:
    lines = (ast.get_docstring(node) or "").strip().splitlines()
    return lines[0] if lines else ""
