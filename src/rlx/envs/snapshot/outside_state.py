"""Finds state that an environment keeps outside its objects: module variables, class attributes, closures."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from rlx.envs.foreign_call import ForeignError, call_foreign
from rlx.envs.snapshot.capture import capture_value
from rlx.envs.snapshot.value_kinds import LEAVES, Uncapturable, class_name, is_env, kind_of, walk
from rlx.errors import RlxError

_LIBRARIES = tuple(
    str(Path(path).resolve()) for path in {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}
)
_OWN = str(Path(__file__).resolve().parents[2])
_INSTALLED = ("site-packages", "dist-packages")  # also those of another environment that this one can see


def hidden_state(env: object) -> dict[str, Any]:
    """Return the visible part of such state by readable names; it is compared, never restored."""
    reachable = list(walk(env))
    known = {id(value) for value in reachable}
    classes = {base: None for value in reachable for base in type(value).__mro__ if _is_written_by_people(base)}
    functions = {value: None for value in reachable if isinstance(value, FunctionType)}
    found: dict[str, Any] = {}
    for cls in classes:
        functions.update(dict.fromkeys(_functions_of(cls)))
        found.update({name: value for name, value in _class_attributes(cls) if id(value) not in known})
    for function in functions:
        found.update({name: value for name, value in _bound_values(function) if id(value) not in known})
    for module in _modules({cls.__module__ for cls in classes} | {function.__module__ for function in functions}):
        found.update({name: value for name, value in _variables(module) if id(value) not in known})
    return {name: frozen(value) for name, value in found.items()}


def frozen(value: object) -> Any:
    """Return a copy of a value that can be compared later, as much of it as can be read."""
    try:
        return capture_value(value)
    except (Uncapturable, RecursionError):
        return f"{type(value).__name__} {_repr(value)}"


def _repr(value: object) -> str:
    try:
        return call_foreign(lambda: repr(value))[:1000]
    except (ForeignError, RlxError):
        return ""


def _is_written_by_people(cls: type) -> bool:
    return cls.__module__ not in ("builtins", "typing", "abc", "enum") and not cls.__module__.startswith("numpy")


def _functions_of(cls: type) -> Iterator[FunctionType]:
    for value in vars(cls).values():
        for part in (value, getattr(value, "__func__", None), getattr(value, "fget", None)):
            if isinstance(part, FunctionType):
                yield part


def _class_attributes(cls: type) -> Iterator[tuple[str, Any]]:
    for name, value in vars(cls).items():
        if not name.startswith("__") and not name.startswith("_abc_") and _is_data(value):
            yield f"the class attribute `{class_name(cls).rpartition('.')[2]}.{name}`", value


def _bound_values(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the variables a function closes over and its default arguments."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            value = cell.cell_contents
        except ValueError:  # not bound yet
            continue
        if _is_data(value):
            yield f"the closure variable `{name}` of `{function.__qualname__}`", value
    for index, value in enumerate(function.__defaults__ or ()):
        if type(value) not in LEAVES and _is_data(value):
            yield f"default argument {index + 1} of `{function.__qualname__}`", value


def _variables(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, value in vars(module).items():
        if not name.startswith("__") and _is_data(value):
            yield f"the module variable `{name}` of `{Path(module.__file__ or '').name}`", value


def _is_data(value: object) -> bool:
    return not is_env(value) and kind_of(type(value)) not in ("code", "method", "skip", "space", "constant", "enum")


def _modules(names: set[str]) -> list[ModuleType]:
    """Return the project's own modules, with those that they import from."""
    found: dict[str, ModuleType] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        module = sys.modules.get(name)
        if name in found or module is None or not _is_own(module):
            continue
        found[name] = module
        for value in vars(module).values():
            waiting.append(value.__name__ if isinstance(value, ModuleType) else str(getattr(value, "__module__", "")))
    return list(found.values())


def _is_own(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    return bool(file) and _is_peoples(str(file))


@cache
def _is_peoples(file: str) -> bool:
    path = Path(file).resolve()
    return not str(path).startswith((*_LIBRARIES, _OWN)) and not any(name in path.parts for name in _INSTALLED)
