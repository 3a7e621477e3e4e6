"""What a value is when an environment's state is kept: plain, a container, an object, code, or nothing that can be."""

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
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec, WrapperSpec
from gymnasium.vector import AsyncVectorEnv, VectorEnv

from rlx.envs.source import PREFIX
from rlx.errors import RlxError

LEAVES = frozenset({type(None), bool, int, float, str, bytes})


class Uncapturable(RlxError):
    """A part of an environment whose state cannot be read or put back; `path` names it."""

    def __init__(self, path: str, why: str) -> None:
        shown = path if len(path) <= 100 else f"{path[:50]}…{path[-40:]}"
        super().__init__(f"`{shown}` {why}")
        self.path = path


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
    (AsyncVectorEnv, "runs its environments in other processes"),
    (random.SystemRandom, "draws from the operating system"),
    ((types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType), "is a generator, whose position is hidden"),
    (io.IOBase, "is an open file"),
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
# What draws; nothing the dynamics depend on (what does, such as pygame's Rect, is listed in SEQUENCES).
_DRAWING = frozenset(
    {"pygame", "pyglet", "OpenGL", "glfw", "matplotlib", "PIL", "tkinter", "imageio", "moviepy", "cv2"}
)
SEQUENCES = frozenset(
    {"pygame.Rect", "pygame.rect.Rect", "pygame.rect.FRect", "pygame.math.Vector2", "pygame.math.Vector3"}
)
_MUJOCO_STATE = {"MjData": "physics", "MjModel": "model"}

_kinds: dict[type, str] = dict(_BY_TYPE)


def kind_of(cls: type) -> str:
    """Return the kind of a type; one with a space in it is the reason why it cannot be kept."""
    found = _kinds.get(cls)
    if found is None:
        found = _kinds[cls] = _find_kind(cls)
    return found


def _find_kind(cls: type) -> str:
    for base, kind in _BY_BASE:
        if issubclass(cls, base):
            return kind
    return _by_module(cls) or _by_shape(cls)


def _by_module(cls: type) -> str | None:
    module = getattr(cls, "__module__", None) or ""  # SWIG makes types without one
    top = module.partition(".")[0]
    if f"{module}.{cls.__name__}" in SEQUENCES:
        return "sequence"
    if top == "mujoco":
        return _MUJOCO_STATE.get(cls.__name__, "skip" if _draws_mujoco(cls) else f"is a mujoco.{cls.__name__}")
    if module == "gymnasium.envs.mujoco.mujoco_rendering" or (top in _DRAWING and not is_plain_class(cls)):
        return "skip"
    if top == "torch" and cls.__name__ in ("Tensor", "Generator"):
        return "tensor" if cls.__name__ == "Tensor" else "torch_generator"
    if top == "pandas":
        return "table"
    if top in _OUTSIDE:
        return f"is a {cls.__qualname__}, whose state is outside Python"
    return None


def _draws_mujoco(cls: type) -> bool:
    return cls.__name__.startswith(("Mjv", "Mjr", "Renderer", "GLContext"))


def _by_shape(cls: type) -> str:
    if issubclass(cls, tuple):
        return "named" if hasattr(cls, "_fields") else f"is a {cls.__qualname__}, a tuple with more to it"
    if hasattr(cls, "thisown"):  # a SWIG proxy, as Box2D has them
        return f"is a {cls.__qualname__} of compiled code"
    return "object" if is_plain_class(cls) else f"is a {cls.__qualname__} of compiled code"


def is_plain_class(cls: type) -> bool:
    """Say whether instances are their attributes (and items, for a list or dict of one's own), and nothing in C."""
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
    """Return an object's attributes: its dict, and its slots where they are set."""
    own: dict[str, Any] = getattr(value, "__dict__", {})
    slots = slots_of(type(value))
    if not slots:
        return own
    return {**{name: getattr(value, name) for name in slots if hasattr(value, name)}, **own}


def class_name(cls: type) -> str:
    """Name a class as module and qualified name; a project's own file by its stem, so that projects can be moved."""
    module = cls.__module__
    if module.startswith(PREFIX):
        module = module.partition(".")[2]
    return f"{module}.{cls.__qualname__}"


def is_env(value: object) -> bool:
    """Say whether a value is an environment, a wrapper or a vector of them."""
    return isinstance(value, (gymnasium.Env, VectorEnv))


# Attributes of environments and wrappers that describe them and are no state, and Gymnasium's big constant tables.
_DESCRIPTION = frozenset({"metadata", "_metadata", "spec", "_cached_spec", "_saved_kwargs", "env_fns"})


def is_description(owner: object, name: str) -> bool:
    """Say whether an attribute of an environment is fixed by how it was made."""
    if not is_env(owner):
        return False
    return name in _DESCRIPTION or (name == "P" and type(owner).__module__.startswith("gymnasium.envs.toy_text"))
