"""Reads the options that tyro and dataclass parsers take from classes: nested classes become dotted keys."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rlx.adopt.find.options.option import ProgramOption
from rlx.adopt.repository import ForeignRepository, PythonFile, dotted, literal, spelled

DATACLASS_PARSERS = (
    "pyrallis.wrap", "pyrallis.parse", "draccus.wrap", "draccus.parse", "simple_parsing.parse", "chz.entrypoint",
)  # fmt: skip
_DEEPEST = 5


def tyro_options(repository: ForeignRepository, chain: Sequence[PythonFile]) -> Iterator[ProgramOption]:
    """Yield the fields of the class or function that `tyro.cli` gets; nested classes become dotted keys."""
    classes = _Classes(repository)
    for file in chain:
        classes.add(file)
    for file in chain:
        functions = {function.name: function for function in file.functions}
        for call in file.calls:
            if dotted(call.func) != "tyro.cli" or not call.args:
                continue
            target = _class_name(call.args[0])
            if target in classes:
                yield from _fields(target, classes, prefix="", depth=0)
                return
            if target in functions:
                yield from _parameters(functions[target], file, classes)
                return
    for file in chain:
        for node in file.classes:
            if _is_dataclass(node) and re.search(r"(Args|Config|Cfg|Options|Settings)$", node.name):
                yield from _fields(node.name, classes, prefix="", depth=0)
                return


def dataclass_options(repository: ForeignRepository, chain: Sequence[PythonFile]) -> Iterator[ProgramOption]:
    """Yield the fields of the dataclass that pyrallis, draccus, simple-parsing or HfArgumentParser fills."""
    classes = _Classes(repository)
    for file in chain:
        classes.add(file)
    for file in chain:
        for name in _parsed_classes(file):
            if name in classes:
                for option in _fields(name, classes, prefix="", depth=0):
                    key = option.key.replace("-", "_")
                    yield replace(option, key=key, flag=f"--{key}", is_switch=False)
                return


def _parsed_classes(file: PythonFile) -> Iterator[str]:
    """Yield the names of the classes that a parser gets: as an argument, or as the type of a wrapped function's."""
    for function in file.functions:
        for decorator in function.decorator_list:
            if isinstance(decorator, ast.Call) and dotted(decorator.func) in DATACLASS_PARSERS and function.args.args:
                yield _class_name(function.args.args[0].annotation or ast.Constant(None))
    for call in file.calls:
        if dotted(call.func) in DATACLASS_PARSERS or dotted(call.func).endswith("HfArgumentParser"):
            for node in (*call.args, *(keyword.value for keyword in call.keywords)):
                for inner in ast.walk(node):
                    if isinstance(inner, (ast.Name, ast.Attribute)):
                        yield _class_name(inner)


class _Classes:
    """The classes of a repository by name, looked up when they are needed."""

    def __init__(self, repository: ForeignRepository) -> None:
        self._repository = repository
        self._known: dict[str, tuple[PythonFile, ast.ClassDef] | None] = {}

    def add(self, file: PythonFile) -> None:
        for node in file.classes:
            self._known.setdefault(node.name, (file, node))

    def __contains__(self, name: str) -> bool:
        if name not in self._known and name[:1].isupper():
            file = self._repository.file_of_class(name)
            if file is not None:
                self.add(file)
            self._known.setdefault(name, None)
        return self._known.get(name) is not None

    def __getitem__(self, name: str) -> tuple[PythonFile, ast.ClassDef]:
        known = self._known[name]
        assert known is not None
        return known


def _class_name(node: ast.AST) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    return dotted(node).rpartition(".")[2]


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any(
        "dataclass" in spelled(decorator) or "configclass" in spelled(decorator) for decorator in node.decorator_list
    )


def _parameters(function: ast.FunctionDef, file: PythonFile, classes: _Classes) -> Iterator[ProgramOption]:
    arguments = function.args.args
    defaults = [None] * (len(arguments) - len(function.args.defaults)) + list(function.args.defaults)
    for argument, default in zip(arguments, defaults, strict=True):
        kind = spelled(argument.annotation)
        if kind in classes:
            yield from _fields(kind, classes, prefix=f"{argument.arg}.", depth=1)
        else:
            yield _dashed(argument.arg, file.path, argument.lineno, literal(default), kind, is_required=default is None)


def _fields(name: str, classes: _Classes, *, prefix: str, depth: int) -> Iterator[ProgramOption]:
    file, node = classes[name]
    if depth > _DEEPEST:
        return
    for base in node.bases:
        above = _class_name(base)
        if above in classes and above != name:
            yield from _fields(above, classes, prefix=prefix, depth=depth + 1)
    for statement in node.body:
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        field_name = statement.target.id
        kind = spelled(statement.annotation)
        inner = next((word for word in re.findall(r"\w+", kind) if word in classes and word != name), None)
        if inner is not None and _is_dataclass(classes[inner][1]):
            yield from _fields(inner, classes, prefix=f"{prefix}{field_name}.", depth=depth + 1)
        elif "ClassVar" not in kind:
            value = _field_default(statement.value)
            is_required = statement.value is None
            yield _dashed(f"{prefix}{field_name}", file.path, statement.lineno, value, kind, is_required=is_required)


def _field_default(node: ast.expr | None) -> object:
    if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "field":
        return next((literal(keyword.value) for keyword in node.keywords if keyword.arg == "default"), None)
    return literal(node)


def _dashed(key: str, file: str, line: int, default: object, kind: str, *, is_required: bool) -> ProgramOption:
    is_switch = kind == "bool"
    flag = f"--{key.replace('_', '-')}"
    return ProgramOption(
        key.replace("_", "-"), flag, file, line, default, kind, is_required=is_required, is_switch=is_switch
    )
