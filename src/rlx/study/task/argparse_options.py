"""The config system of a foreign program, and the options that its source declares."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlx.adopt.find.options.program_options import options_of_program
from rlx.adopt.repository import ForeignRepository
from rlx.evaluate.env_sources import files_behind
from rlx.study.task.task import Argv


@dataclass(frozen=True)
class Option:
    value: str | int | float | bool | None
    line: int


@dataclass(frozen=True)
class Options:
    """The config system of a program, the file that imports it, and the options if it is argparse."""

    system: Any = "none"
    file: str = ""
    known: Mapping[str, Option] = field(default_factory=dict)


def options_of(
    entries: Sequence[str], train: Argv, *, root: Path, folders: Sequence[str] = (".",), override: str | None = None
) -> Options:
    """Search the entry file and the project files that it imports; the first one with a config system counts."""
    for file in (*entries[:1], *files_behind(entries[:1], root=root, folders=folders)):
        try:
            tree = ast.parse((root / file).read_bytes())
        except (OSError, SyntaxError, ValueError):
            continue
        system = next((name for name in ("hydra", "tyro", "gin", "argparse") if name in _imported(tree)), None)
        if system == "argparse":
            return _argparse(tree, file, train, override)
        if system == "tyro":
            return Options(system, file, _tyro(root, entries[0]))
        if system is not None:
            return Options(system, file)
    return Options()


def _tyro(root: Path, entry: str) -> dict[str, Option]:
    """Return the fields of the class that a tyro program reads, under the names of its flags."""
    repository = ForeignRepository(root)
    program = repository.by_path(entry)
    if program is None:
        return {}
    options: dict[str, Option] = {}
    for option in options_of_program(repository, program).options:
        value = option.default
        if not isinstance(value, (str, int, float, bool)):
            value = None
        if not option.is_switch:
            options[option.key] = Option(value, option.line)
    return options


def _argparse(tree: ast.Module, file: str, train: Argv, override: str | None) -> Options:
    """Return argparse's options as keys; a template of another form belongs to another config system."""
    if override is not None and not override.startswith("--{key}"):
        return Options("custom")
    return Options("argparse", file, dict(_arguments(tree, train)))


def _imported(tree: ast.Module) -> set[str]:
    nodes = list(ast.walk(tree))
    names = {alias.name.partition(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {(node.module or "").partition(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}


def _arguments(tree: ast.Module, words: Argv) -> Iterator[tuple[str, Option]]:
    """Yield the options that take a value, without those of other sub-commands; a computed default is None."""
    others = {name for name, command in _subparsers(tree).items() if command not in words}
    for call in (node for node in ast.walk(tree) if _is_call(node, "add_argument")):
        assert isinstance(call, ast.Call)
        names = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        long = next((name[2:] for name in names if name.startswith("--")), None)
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        if long and "action" not in keywords and _receiver(call) not in others:
            yield long, Option(_constant(keywords.get("default")), call.lineno)


def _subparsers(tree: ast.Module) -> dict[str, str]:
    """Return the variables that hold a sub-command's parser or argument group, with the sub-command's name."""
    commands: dict[str, str] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        target = node.targets[0]
        if not isinstance(target, ast.Name):
            continue
        constants = [arg for arg in node.value.args[:1] if isinstance(arg, ast.Constant)]
        if _is_call(node.value, "add_parser") and constants:
            commands[target.id] = str(constants[0].value)
        elif _is_call(node.value, "add_argument_group") and _receiver(node.value) in commands:
            commands[target.id] = commands[_receiver(node.value)]
    return commands


def _is_call(node: ast.AST, method: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method


def _receiver(call: ast.Call) -> str:
    assert isinstance(call.func, ast.Attribute)
    return getattr(call.func.value, "id", "")


def _constant(node: ast.expr | None) -> str | int | float | bool | None:
    if node is None:
        return None
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        return None
    if not isinstance(value, (str, int, float)):
        return None
    return value
