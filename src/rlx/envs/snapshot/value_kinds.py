"""The kinds of values that an environment's state consists of, and the values that cannot be kept."""

from __future__ import annotations

import collections
import copyreg
import datetime
import decimal
import enum
import fractions
import functools
import io
import logging
import operator
import pathlib
import random
import re
import threading
import types
import typing
import uuid
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec, WrapperSpec
from gymnasium.vector import AsyncVectorEnv, VectorEnv

from rlx.envs.import_object import PREFIX
from rlx.errors import RlxError

LEAVES = frozenset({type(None), bool, int, float, str, bytes})


class Uncapturable(RlxError):
    """A part of an environment whose state cannot be read or restored; `path` names it."""

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        if len(path) > 100:
            path = f"{path[:50]}…{path[-40:]}"
        super().__init__(f"`{path}` {why}")


class Unkept(str):
    """The reason why values of a type cannot be kept, in place of their kind."""


class Trail:
    """The place in an environment that a walk has reached, for messages."""

    def __init__(self) -> None:
        self.trail: list[str] = []

    def path(self) -> str:
        """Return the current place, starting at the innermost environment: `LunarLander.world`."""
        start = max((index for index, part in enumerate(self.trail) if part[0] not in ".["), default=0)
        return "".join(self.trail[start:]) or "the environment"

    def refuse(self, why: str) -> Uncapturable:
        return Uncapturable(self.path(), why)


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a `class` statement, not in C
_POINTER = 8

_BY_TYPE: dict[type, str] = {
    tuple: "tuple", list: "list", set: "set", frozenset: "frozenset", bytearray: "bytearray", complex: "complex",
    range: "range", dict: "dict", collections.OrderedDict: "dict", collections.Counter: "dict",
    collections.defaultdict: "dict", collections.deque: "deque", np.ndarray: "array", np.random.Generator: "generator",
    np.random.RandomState: "random_state", random.Random: "random", types.MethodType: "method",
}  # fmt: skip
_BY_BASE: tuple[tuple[Any, str], ...] = (
    (np.generic, "scalar"),
    (pathlib.PurePath, "path"),
    (enum.Enum, "enum"),
    (gymnasium.Space, "space"),
    ((EnvSpec, WrapperSpec, logging.Logger, type(threading.Lock()), type(threading.RLock())), "skip"),
    (np.random.BitGenerator, "bits"),
    (AsyncVectorEnv, Unkept("runs its environments in other processes")),
    (random.SystemRandom, Unkept("draws from the operating system")),
    (
        (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType),
        Unkept("is a generator, whose position is hidden"),
    ),
    (io.IOBase, Unkept("is an open file")),
    (
        (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type, np.ufunc, functools.partial, property,
         types.MethodWrapperType, staticmethod, classmethod, types.GenericAlias, operator.itemgetter,
         operator.attrgetter, operator.methodcaller),
        "code",
    ),
    (
        (np.dtype, datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, re.Pattern,
         decimal.Decimal, fractions.Fraction, uuid.UUID, types.EllipsisType, slice),
        "constant",
    ),
)  # fmt: skip
# Python classes whose state is not in Python: processes, sockets, threads, databases.
_OUTSIDE = frozenset(
    {"subprocess", "socket", "multiprocessing", "concurrent", "asyncio", "threading", "_thread", "queue", "select",
     "selectors", "ssl", "http", "urllib", "sqlite3", "ctypes", "_ctypes", "tempfile", "weakref", "contextvars"}
)  # fmt: skip
# Drawing libraries. The dynamics do not depend on them, except on the types in SEQUENCES, such as pygame's Rect.
_DRAWING = frozenset(
    {"pygame", "pyglet", "OpenGL", "glfw", "matplotlib", "PIL", "tkinter", "imageio", "moviepy", "cv2"}
)
SEQUENCES = frozenset(
    {"pygame.Rect", "pygame.rect.Rect", "pygame.rect.FRect", "pygame.math.Vector2", "pygame.math.Vector3"}
)
_MUJOCO_STATE = {"MjData": "physics", "MjModel": "model"}
_BY_NAME = {("torch", "Tensor"): "tensor", ("torch", "Generator"): "torch_generator", ("pandas", ""): "table"}

_kinds: dict[type, str] = dict(_BY_TYPE)


def kind_of(cls: type) -> str:
    """Return the kind of a type, or an `Unkept` with the reason why its values cannot be kept."""
    kind = _kinds.get(cls)
    if kind is None:
        kind = _kinds[cls] = _find_kind(cls)
    return kind


def _find_kind(cls: type) -> str:
    for base, kind in _BY_BASE:
        if issubclass(cls, base):
            return kind
    return _by_module(cls) or _by_shape(cls)


def _by_module(cls: type) -> str | None:
    module = getattr(cls, "__module__", None) or ""  # SWIG makes types without one
    package = module.partition(".")[0]
    name = cls.__name__
    if f"{module}.{name}" in SEQUENCES:
        return "sequence"
    if package == "mujoco":
        if name.startswith(("Mjv", "Mjr", "Renderer", "GLContext")):
            return "skip"
        return _MUJOCO_STATE.get(name, Unkept(f"is a mujoco.{name}"))
    if module == "gymnasium.envs.mujoco.mujoco_rendering" or (package in _DRAWING and not is_plain_class(cls)):
        return "skip"
    if package in _OUTSIDE:
        return Unkept(f"is a {cls.__qualname__}, whose state is outside Python")
    return _BY_NAME.get((package, name)) or _BY_NAME.get((package, ""))


def _by_shape(cls: type) -> str:
    if issubclass(cls, tuple):
        return "named" if hasattr(cls, "_fields") else Unkept(f"is a {cls.__qualname__}, a tuple with more to it")
    if hasattr(cls, "thisown") or not is_plain_class(cls):  # `thisown`: a SWIG proxy, as Box2D has them
        return Unkept(f"is a {cls.__qualname__} of compiled code")
    return "object"


def is_plain_class(cls: type) -> bool:
    """Return whether instances consist of attributes (and items, for a subclass of list or dict), and nothing in C."""
    payload = payload_of(cls)
    for base in cls.__mro__:
        if base in (object, typing.Generic, payload) or (payload is not None and issubclass(payload, base)):
            continue
        is_python = bool(base.__flags__ & _HEAP_TYPE) and bool(base.__dictoffset__ or "__slots__" in vars(base))
        if not is_python or isinstance(vars(base).get("__new__"), types.BuiltinFunctionType):
            return False
    extra = 2 + len(slots_of(cls))  # the dict, the list of weak references, the slots
    return cls.__basicsize__ <= (payload or object).__basicsize__ + _POINTER * extra


def payload_of(cls: type) -> type | None:
    """Return the built-in container a class derives from, if any."""
    return next((base for base in (collections.deque, dict, list, set) if issubclass(cls, base)), None)


def slots_of(cls: type) -> list[str]:
    """Return the names of a class's slots, its bases' included."""
    return list(copyreg._slotnames(cls))  # type: ignore[attr-defined]


def attributes_of(value: object) -> dict[str, Any]:
    """Return an object's attributes: its dict, and the slots that are set."""
    own: dict[str, Any] = getattr(value, "__dict__", {})
    slots = slots_of(type(value))
    if not slots:
        return own
    return {**{name: getattr(value, name) for name in slots if hasattr(value, name)}, **own}


def class_name(cls: type) -> str:
    """Return module and qualified name of a class; a project's own file by its stem, so that projects can move."""
    module = cls.__module__
    if module.startswith(PREFIX):
        module = module.partition(".")[2]
    return f"{module}.{cls.__qualname__}"


def is_env(value: object) -> bool:
    """Return whether a value is an environment, a wrapper or a vector of them."""
    return isinstance(value, (gymnasium.Env, VectorEnv))


_CONTAINERS = ("list", "tuple", "named", "set", "frozenset", "deque")
# Attributes that describe an environment or wrapper and are not state; and Gymnasium's big constant tables.
_DESCRIPTION = frozenset({"metadata", "_metadata", "spec", "_cached_spec", "_saved_kwargs", "env_fns"})


def is_description(owner: object, name: str) -> bool:
    """Return whether an attribute of an environment is fixed by how it was made."""
    if not is_env(owner):
        return False
    return name in _DESCRIPTION or (name == "P" and type(owner).__module__.startswith("gymnasium.envs.toy_text"))


def walk(root: object) -> Iterator[Any]:
    """Yield every object that is reachable from `root` through attributes and containers, once."""
    seen: dict[int, Any] = {}  # keeps objects alive, so that their ids stay unique
    waiting: list[Any] = [root]
    while waiting:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        yield value
        waiting.extend(part for part in _parts(value, kind_of(type(value))) if type(part) not in LEAVES)


def _parts(value: Any, kind: str) -> list[Any]:
    if kind == "method":
        return [value.__self__]
    parts: list[Any] = []
    if isinstance(value, dict) and kind in ("dict", "object"):
        parts = [*value.keys(), *value.values()]
    elif kind in _CONTAINERS or (kind == "object" and payload_of(type(value)) is not None):
        parts = list(value)
    if kind == "object":
        parts += [item for name, item in attributes_of(value).items() if not is_description(value, name)]
    return parts
