"""Reads the options that a parser takes from a function or class: typer, Fire, jsonargparse, sacred, Tap."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from rlx.adopt.find.options.option import ProgramOption
from rlx.adopt.repository import ForeignRepository, PythonFile, dotted, literal, spelled

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def typer_options(repository: ForeignRepository, chain: Sequence[PythonFile]) -> Iterator[ProgramOption]:
    """Yield the parameters of typer's commands; those without a default are positional."""
    for file in chain:
        if "typer" not in file.packages:
            continue
        given = _given(file, ("typer.run",))
        for function in file.functions:
            decorators = [dotted(_called(node)).rpartition(".")[2] for node in function.decorator_list]
            if function.name in given or "command" in decorators or "callback" in decorators:
                yield from _parameters(function, file, is_dashed=True)


def fire_options(repository: ForeignRepository, chain: Sequence[PythonFile]) -> Iterator[ProgramOption]:
    """Yield the parameters of the functions, or of the classes' constructors, that Fire gets."""
    yield from _of_given(chain, ("fire.Fire", "Fire"))


def jsonargparse_options(repository: ForeignRepository, chain: Sequence[PythonFile]) -> Iterator[ProgramOption]:
    """Yield the parameters of the functions that jsonargparse's `CLI` gets; Lightning's always has a seed."""
    yield from _of_given(chain, ("CLI", "auto_cli", "jsonargparse.CLI", "jsonargparse.auto_cli"))
    for file in chain:
        for call in file.calls:
            if dotted(call.func).rpartition(".")[2] == "LightningCLI":
                yield ProgramOption("seed_everything", "--seed_everything", file.path, call.lineno, True, "int")


def sacred_options(repository: ForeignRepository, chain: Sequence[PythonFile]) -> Iterator[ProgramOption]:
    """Yield the variables of sacred's config functions. Sacred always has the key `seed`."""
    place: tuple[str, int] | None = None
    keys: set[str] = set()
    for file in chain:
        if "sacred" not in file.packages:
            continue
        for call in file.calls:
            if place is None and dotted(call.func).rpartition(".")[2] == "Experiment":
                place = file.path, call.lineno
        for function in file.functions:
            decorators = [dotted(_called(node)).rpartition(".")[2] for node in function.decorator_list]
            if "config" in decorators:
                for option in _assigned(function, file.path):
                    keys.add(option.key)
                    yield option
    if place is not None and "seed" not in keys:
        yield ProgramOption("seed", "seed=", *place, type="int")


def tap_options(repository: ForeignRepository, chain: Sequence[PythonFile]) -> Iterator[ProgramOption]:
    """Yield the fields of the classes that derive from `Tap`, the typed argument parser."""
    for file in chain:
        for node in file.classes:
            if not is_tap(node):
                continue
            for statement in node.body:
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    name, kind = statement.target.id, spelled(statement.annotation)
                    yield ProgramOption(
                        name, f"--{name}", file.path, statement.lineno, literal(statement.value), kind,
                        is_required=statement.value is None, is_switch=kind == "bool",
                    )  # fmt: skip


def is_tap(node: ast.ClassDef) -> bool:
    """Return whether a class is a typed argument parser."""
    return any(dotted(base).rpartition(".")[2] in ("Tap", "TypedArgumentParser") for base in node.bases)


def _called(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Call):
        return node.func
    return node


def _given(file: PythonFile, parsers: Sequence[str]) -> set[str]:
    """Return the names of the functions and classes that a parser gets, also in a list or a dict."""
    names: set[str] = set()
    for call in file.calls:
        if dotted(call.func) in parsers:
            arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
            names |= {node.id for argument in arguments for node in ast.walk(argument) if isinstance(node, ast.Name)}
    return names


def _of_given(chain: Sequence[PythonFile], parsers: Sequence[str]) -> Iterator[ProgramOption]:
    for file in chain:
        names = _given(file, parsers)
        for other in chain if names else ():
            for function in _starts(other, names):
                yield from _parameters(function, other, is_dashed=False)


def _starts(file: PythonFile, names: set[str]) -> Iterator[_Function]:
    """Yield the named functions of a module, and the constructors of its named classes."""
    for node in file.tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in names:
            yield node
        elif isinstance(node, ast.ClassDef) and node.name in names:
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    yield method


def _parameters(function: _Function, file: PythonFile, *, is_dashed: bool) -> Iterator[ProgramOption]:
    for argument, default in _arguments(function):
        if argument.arg in ("self", "cls"):
            continue
        flag, value = argument.arg, default
        if is_dashed:
            flag = flag.replace("_", "-")
        is_positional = default is None and is_dashed
        if isinstance(default, ast.Call) and dotted(default.func).rpartition(".")[2] in ("Option", "Argument"):
            is_positional = dotted(default.func).endswith("Argument")
            value = next(iter(default.args), None)
            names = [text for node in default.args if isinstance(text := literal(node), str)]
            flag = next((name for name in names if name.startswith("--")), flag).lstrip("-").partition("/")[0]
        kind = spelled(argument.annotation)
        yield ProgramOption(
            flag, flag if is_positional else f"--{flag}", file.path, argument.lineno, literal(value), kind,
            is_required=default is None, is_switch=kind == "bool" and is_dashed, is_positional=is_positional,
        )  # fmt: skip


def _arguments(function: _Function) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """Yield the parameters with their defaults; None where there is none."""
    arguments = function.args.args
    missing = len(arguments) - len(function.args.defaults)
    yield from zip(arguments, [*([None] * missing), *function.args.defaults], strict=True)
    yield from zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)


def _assigned(function: _Function, path: str) -> Iterator[ProgramOption]:
    for node in function.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, literal(node.value)
            yield ProgramOption(name, f"{name}=", path, node.lineno, value, type(value).__name__)
