"""What a foreign program can be told: its config system, and its options as far as its source says them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlx.evaluate.sources import files_behind
from rlx.study.task import Argv


@dataclass(frozen=True)
class Option:
    value: str | int | float | bool | None
    line: int


@dataclass(frozen=True)
class Options:
    """The config system of a program with the file that names it, and of argparse the options that it takes."""

    system: Any = "none"
    file: str = ""
    known: Mapping[str, Option] = field(default_factory=dict)


def options_of(
    entries: Sequence[str], train: Argv, *, root: Path, folders: Sequence[str] = (".",), override: str | None = None
) -> Options:
    """Look for options in the entry file and in what it imports of the project; the first that has a system counts."""
    for file in (*entries[:1], *files_behind(entries[:1], root=root, folders=folders)):
        try:
            tree = ast.parse((root / file).read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        system = next((one for one in ("hydra", "tyro", "gin", "argparse") if one in _imported(tree)), None)
        if system == "argparse":
            return _argparse(tree, file, train, override)
        if system is not None:
            return Options(system, file)
    return Options()


def _argparse(tree: ast.Module, file: str, train: Argv, override: str | None) -> Options:
    """Return argparse's options as keys; where keys are written otherwise, they are another system's."""
    if override is not None and not override.startswith("--{key}"):
        return Options("custom")
    return Options("argparse", file, dict(_arguments(tree, train)))


def _imported(tree: ast.Module) -> set[str]:
    nodes = list(ast.walk(tree))
    found = {alias.name.partition(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return found | {(node.module or "").partition(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}


def _arguments(tree: ast.Module, words: Argv) -> Iterator[tuple[str, Option]]:
    """Yield the options that take a value, without those of other sub-commands; a default that is computed is None."""
    others = {name for name, command in _subparsers(tree).items() if command not in words}
    for call in (node for node in ast.walk(tree) if _is_call(node, "add_argument")):
        assert isinstance(call, ast.Call)
        names = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        long = next((name[2:] for name in names if name.startswith("--")), None)
        given = {one.arg: one.value for one in call.keywords}
        if long and "action" not in given and _receiver(call) not in others:
            yield long, Option(_constant(given.get("default")), call.lineno)


def _subparsers(tree: ast.Module) -> dict[str, str]:
    """Return the variables that hold a sub-command's parser, or a group of it, with the sub-command's name."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Name) or not isinstance(node.value, ast.Call):
            continue
        first = node.value.args[0] if node.value.args else None
        if _is_call(node.value, "add_parser") and isinstance(first, ast.Constant):
            found[target.id] = str(first.value)
        elif _is_call(node.value, "add_argument_group") and _receiver(node.value) in found:
            found[target.id] = found[_receiver(node.value)]
    return found


def _is_call(node: ast.AST, method: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method


def _receiver(call: ast.Call) -> str:
    assert isinstance(call.func, ast.Attribute)
    return call.func.value.id if isinstance(call.func.value, ast.Name) else ""


def _constant(node: ast.expr | None) -> str | int | float | bool | None:
    try:
        value = ast.literal_eval(node) if node is not None else None
    except (ValueError, TypeError):
        return None
    return value if isinstance(value, (str, int, float)) else None
