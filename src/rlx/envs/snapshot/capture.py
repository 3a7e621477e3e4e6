"""Reads an environment's state: every plain attribute of the environment and its wrappers, as a tree without code.

A state is {"format", "root", "nodes"}. A value in it is a plain value (also a tuple of values, or a NumPy scalar) or a
list that starts with its tag. Everything that can be shared or changed is a node, and ["ref", number] points to it.
Two names for one array are therefore still one array after `restore`.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

import rlx.envs.snapshot.mujoco_state as mujoco_state
from rlx.envs.remote.remote_env import RemoteVector
from rlx.envs.snapshot.value_kinds import (
    LEAVES,
    Trail,
    Uncapturable,
    Unkept,
    attributes_of,
    class_name,
    is_description,
    is_env,
    kind_of,
    payload_of,
)

State = dict[str, Any]
AnyEnv = gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]

FORMAT = 1
FACTORIES: dict[str, Any] = {kind.__name__: kind for kind in (int, float, str, list, dict, set, bool)}
_SKIP = ["skip"]
_GLOBAL_GENERATORS = (np.random.mtrand._rand, random._inst)  # the trainer keeps them


def capture(env: AnyEnv) -> State:
    """Return an environment's state, or raise `Uncapturable` with the name of the attribute that cannot be kept.

    The global random generators of Python, NumPy and torch are not part of it. An environment in another process reads
    its own state, as bytes that only that process understands.
    """
    if isinstance(env, RemoteVector):
        return {"format": FORMAT, **env.capture()}
    reader = _Reader()
    try:
        root = reader.value(env)
    except RecursionError:
        raise Uncapturable(reader.path(), "is nested too deeply") from None
    return {"format": FORMAT, "root": root, "nodes": reader.nodes}


def capture_value(value: object) -> State:
    """Return any value in the form of a state, to compare values that are not environments."""
    reader = _Reader()
    root = reader.value(value)
    return {"format": FORMAT, "root": root, "nodes": reader.nodes}


class _Reader(Trail):
    """Visits every object once and numbers the nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.alive: list[object] = []  # keeps objects alive, so that their ids stay unique

    def value(self, value: Any) -> Any:
        """Return a value in its stored form."""
        cls = type(value)
        if cls in LEAVES:
            return value
        kind = kind_of(cls)
        if isinstance(kind, Unkept):
            if is_env(value):
                self.trail.append(cls.__name__)
            raise self.refuse(f"{kind} and cannot be kept")
        if kind in _VALUES:
            return _VALUES[kind](self, value)
        if any(value is generator for generator in _GLOBAL_GENERATORS):
            return _SKIP
        number = self.numbers.get(id(value))
        if number is None:
            number = self.numbers[id(value)] = len(self.nodes)
            self.nodes.append(None)
            self.alive.append(value)
            self.nodes[number] = _NODES[kind](self, value)
        return ["ref", number]

    def at(self, step: str, value: Any) -> Any:
        """Return a value that is one step further along the trail."""
        if type(value) in LEAVES:
            return value
        self.trail.append(step)
        kept = self.value(value)
        self.trail.pop()
        return kept

    def items(self, values: Any) -> list[Any]:
        return [self.at(f"[{index}]", value) for index, value in enumerate(values)]

    def pairs(self, value: dict[Any, Any]) -> list[Any]:
        return [[self.at(".key", key), self.at(f"[{key!r}]", item)] for key, item in value.items()]


def _scalar(reader: _Reader, value: np.generic) -> Any:
    if value.dtype.kind in "OV":
        raise reader.refuse(f"is a {value.dtype} and cannot be kept")
    return value


def _code(reader: _Reader, value: Any) -> Any:
    return ["code", getattr(value, "__qualname__", None) or getattr(value, "__name__", type(value).__name__)]


def _table(reader: _Reader, value: Any) -> Any:
    """Return the digest of a pandas table, which is assumed not to change: it must be the same when restored."""
    try:
        rows = np.asarray(sys.modules["pandas"].util.hash_pandas_object(value))
    except TypeError:
        raise reader.refuse(f"is a {type(value).__qualname__} of pandas and cannot be kept") from None
    return ["table", hashlib.sha256(rows.tobytes()).hexdigest()]


def _dict(reader: _Reader, value: dict[Any, Any]) -> Any:
    factory = getattr(getattr(value, "default_factory", None), "__name__", None)
    return ["dict", type(value).__name__, factory, reader.pairs(value)]


def _array(reader: _Reader, value: np.ndarray[Any, Any]) -> Any:
    view = _view(reader, value)
    if view is not None:
        return view
    if value.dtype.kind == "O":
        return ["objects", list(value.shape), reader.items(value.ravel())]
    if value.dtype.kind == "V":
        raise reader.refuse("is an array of records and cannot be kept")
    order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
    return ["array", np.array(value, order="C", copy=True), order, value.flags.writeable]


def _view(reader: _Reader, value: np.ndarray[Any, Any]) -> Any:
    """Return a view with its base array, so that it still follows that array; None for other arrays."""
    base = value
    while isinstance(base.base, np.ndarray):
        base = base.base
    is_simple = type(base) is np.ndarray and (base.flags.c_contiguous or base.flags.f_contiguous)
    if base is value or base.base is not None or not is_simple or base.dtype.kind in "OV":
        return None
    offset = value.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    geometry = [value.dtype.str, offset, list(value.shape), list(value.strides), value.flags.writeable]
    return ["view", reader.value(base), *geometry]


def _bits(reader: _Reader, value: Any) -> Any:
    return ["bits", type(value).__name__, value.state, _seed_sequence(value)]


def _seed_sequence(bits: Any) -> list[Any] | None:
    """Return the state that `spawn` continues from, if it has been used."""
    seeds = getattr(bits, "seed_seq", None)
    if type(seeds) is not np.random.SeedSequence or not seeds.n_children_spawned:
        return None
    entropy: Any = seeds.entropy
    if not isinstance(entropy, int):
        entropy = [int(word) for word in entropy or []]
    return [entropy, [int(word) for word in seeds.spawn_key], seeds.pool_size, seeds.n_children_spawned]


def _random(reader: _Reader, value: random.Random) -> Any:
    version, words, gauss = value.getstate()
    return ["random", version, np.array(words, dtype=np.uint64), gauss]


def _tensor(reader: _Reader, value: Any) -> Any:
    if value.requires_grad or value.device.type != "cpu" or not str(value.layout).endswith("strided"):
        raise reader.refuse("is a tensor that is learned, sparse or on a device and cannot be kept")
    try:
        return ["tensor", str(value.dtype), value.numpy().copy()]
    except TypeError as error:  # bfloat16 and the like
        raise reader.refuse(f"is a tensor of {value.dtype} and cannot be kept") from error


def _space(reader: _Reader, value: Any) -> Any:
    """Return a space's random generator; the rest of a space is fixed."""
    parts = [reader.value(part) for part in subspaces(value)]
    return ["space", class_name(type(value)), reader.value(getattr(value, "_np_random", None)), parts]


def _object(reader: _Reader, value: Any) -> Any:
    if is_env(value):
        reader.trail.append(type(value).__name__)
    kept: dict[str, Any] = {}
    skipped: list[str] = []
    for name, item in list(attributes_of(value).items()):
        stored = _SKIP if is_description(value, name) else reader.at(f".{name}", item)
        if stored is _SKIP:
            skipped.append(name)
        else:
            kept[name] = stored
    container = payload_of(type(value))
    payload: Any = None
    if container is not None:
        payload = reader.pairs(value) if container is dict else reader.items(value)
    if is_env(value):
        reader.trail.pop()
    return ["object", class_name(type(value)), kept, skipped, payload]


Read = Callable[[_Reader, Any], Any]
# Values that cannot be shared. A path says where the project is; a project may move, so `restore` keeps the new path.
_VALUES: dict[str, Read] = {
    "skip": lambda reader, value: _SKIP,
    "scalar": _scalar,
    "complex": lambda reader, value: ["complex", value.real, value.imag],
    "range": lambda reader, value: ["range", value.start, value.stop, value.step],
    "tuple": lambda reader, value: tuple(reader.items(value)),
    "named": lambda reader, value: ["named", class_name(type(value)), *reader.items(value)],
    "frozenset": lambda reader, value: ["frozenset", *reader.items(value)],
    "enum": lambda reader, value: ["enum", class_name(type(value)), value.name],
    "constant": lambda reader, value: ["constant", f"{class_name(type(value))} {value!r}"],
    "path": lambda reader, value: ["path", str(value)],
    "code": _code,
    "method": lambda reader, value: ["method", value.__func__.__name__, reader.at(".__self__", value.__self__)],
    "table": _table,
}
_NODES: dict[str, Read] = {
    "list": lambda reader, value: ["list", reader.items(value)],
    "set": lambda reader, value: ["set", reader.items(value)],
    "deque": lambda reader, value: ["deque", value.maxlen, reader.items(value)],
    "dict": _dict,
    "bytearray": lambda reader, value: ["bytearray", bytes(value)],
    "sequence": lambda reader, value: ["sequence", class_name(type(value)), list(value)],
    "array": _array,
    "generator": lambda reader, value: ["generator", reader.value(value.bit_generator)],
    "bits": _bits,
    "random_state": lambda reader, value: ["random_state", value.get_state(legacy=False)],
    "random": _random,
    "tensor": _tensor,
    "torch_generator": lambda reader, value: ["torch_generator", value.get_state().numpy().copy()],
    "space": _space,
    "physics": lambda reader, value: ["physics", reader.value(value.model), mujoco_state.read_data(value)],
    "model": lambda reader, value: ["model", mujoco_state.read_model(value)],
    "object": _object,
}


def subspaces(space: Any) -> list[Any]:
    """Return the spaces that a composite space consists of, in order."""
    parts: list[Any] = []
    for value in vars(space).values():
        if isinstance(value, dict):
            value = tuple(value.values())
        members = value if isinstance(value, (list, tuple)) else [value]
        parts.extend(member for member in members if isinstance(member, gymnasium.Space))
    return parts
