"""Reading an environment's state: every plain attribute of the environment and its wrappers, as a tree without code.

A state is {"format", "root", "nodes"}. A value in it is a plain value (also a tuple of values, a NumPy scalar) or a
list that starts with its tag; whatever can be shared or changed is a node, and ["ref", number] points to it, so that
two names for one array are still one array afterwards.
"""

from __future__ import annotations

import hashlib
import random
import sys
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from rlx.envs import physics
from rlx.envs.kinds import (
    LEAVES,
    Uncapturable,
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
PLAIN_DTYPES = frozenset("biuf")
FACTORIES: dict[str, Any] = {made.__name__: made for made in (int, float, str, list, dict, set, bool)}
_SKIP = ["skip"]


def capture(env: AnyEnv) -> State:
    """Return the state of an environment, or raise `Uncapturable` naming the attribute that cannot be kept.

    Python's, NumPy's and torch's global random generators are not part of it.
    """
    reader = _Reader()
    try:
        root = reader.value(env)
    except RecursionError:
        raise Uncapturable(reader.path(), "is nested too deeply") from None
    return {"format": FORMAT, "root": root, "nodes": reader.nodes}


def capture_value(value: object) -> State:
    """Return any value in the form of a state; for comparing what is not an environment."""
    reader = _Reader()
    root = reader.value(value)
    return {"format": FORMAT, "root": root, "nodes": reader.nodes}


class _Reader:
    """Walks the objects once; `trail` is where it stands, for the message."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.alive: list[object] = []  # an id is only good while its object lives
        self.trail: list[str] = []

    def path(self) -> str:
        """Name the current place from the innermost environment on: `LunarLander.world`."""
        start = max((index for index, part in enumerate(self.trail) if part[0] not in ".["), default=0)
        return "".join(self.trail[start:]) or "the environment"

    def refuse(self, why: str) -> Uncapturable:
        return Uncapturable(self.path(), f"{why} and cannot be kept")

    def value(self, value: Any) -> Any:
        cls = type(value)
        if cls in LEAVES:
            return value
        kind = kind_of(cls)
        if " " in kind:
            if is_env(value):
                self.trail.append(cls.__name__)
            raise self.refuse(kind)
        read = getattr(self, f"_{kind}")
        return read(value)

    def at(self, step: str, value: Any) -> Any:
        """Read a value one step further along the trail."""
        if type(value) in LEAVES:
            return value
        self.trail.append(step)
        found = self.value(value)
        self.trail.pop()
        return found

    def items(self, values: Any) -> list[Any]:
        return [self.at(f"[{index}]", value) for index, value in enumerate(values)]

    def node(self, value: object) -> tuple[int, bool]:
        """Return a shared value's number, and whether it is new."""
        number = self.numbers.get(id(value))
        if number is not None:
            return number, False
        number = self.numbers[id(value)] = len(self.nodes)
        self.nodes.append(None)
        self.alive.append(value)
        return number, True

    # Values

    def _skip(self, value: Any) -> Any:
        return _SKIP

    def _scalar(self, value: np.generic) -> Any:
        if value.dtype.kind in "OV":
            raise self.refuse(f"is a {value.dtype}")
        return value

    def _complex(self, value: complex) -> Any:
        return ["complex", value.real, value.imag]

    def _range(self, value: range) -> Any:
        return ["range", value.start, value.stop, value.step]

    def _tuple(self, value: tuple[Any, ...]) -> Any:
        return tuple(self.items(value))

    def _named(self, value: tuple[Any, ...]) -> Any:
        return ["named", class_name(type(value)), *self.items(value)]

    def _frozenset(self, value: frozenset[Any]) -> Any:
        return ["frozenset", *self.items(value)]

    def _enum(self, value: Any) -> Any:
        return ["enum", class_name(type(value)), value.name]

    def _constant(self, value: Any) -> Any:
        return ["constant", f"{class_name(type(value))} {value!r}"]

    def _path(self, value: Any) -> Any:
        """A path tells where the project is; a project may be moved, so the fresh environment's stands."""
        return ["path", str(value)]

    def _code(self, value: Any) -> Any:
        return ["code", getattr(value, "__qualname__", None) or getattr(value, "__name__", type(value).__name__)]

    def _method(self, value: Any) -> Any:
        return ["method", value.__func__.__name__, self.at(".__self__", value.__self__)]

    def _table(self, value: Any) -> Any:
        """A pandas table is taken for data that does not change: its digest must be the same when restored."""
        hashed = sys.modules["pandas"].util.hash_pandas_object
        try:
            rows = np.asarray(hashed(value))
        except TypeError:
            raise self.refuse(f"is a {type(value).__qualname__} of pandas") from None
        return ["table", hashlib.sha256(rows.tobytes()).hexdigest()]

    # Nodes

    def _list(self, value: list[Any]) -> Any:
        number, is_new = self.node(value)
        if is_new:
            self.nodes[number] = ["list", self.items(value)]
        return ["ref", number]

    def _set(self, value: set[Any]) -> Any:
        number, is_new = self.node(value)
        if is_new:
            self.nodes[number] = ["set", self.items(value)]
        return ["ref", number]

    def _deque(self, value: Any) -> Any:
        number, is_new = self.node(value)
        if is_new:
            self.nodes[number] = ["deque", value.maxlen, self.items(value)]
        return ["ref", number]

    def _dict(self, value: dict[Any, Any]) -> Any:
        number, is_new = self.node(value)
        if is_new:
            factory = getattr(getattr(value, "default_factory", None), "__name__", None)
            self.nodes[number] = ["dict", type(value).__name__, factory, self.pairs(value)]
        return ["ref", number]

    def pairs(self, value: dict[Any, Any]) -> list[Any]:
        return [[self.at(".key", key), self.at(f"[{key!r}]", item)] for key, item in value.items()]

    def _bytearray(self, value: bytearray) -> Any:
        number, is_new = self.node(value)
        if is_new:
            self.nodes[number] = ["bytearray", bytes(value)]
        return ["ref", number]

    def _sequence(self, value: Any) -> Any:
        number, is_new = self.node(value)
        if is_new:
            self.nodes[number] = ["sequence", class_name(type(value)), list(value)]
        return ["ref", number]

    def _array(self, value: np.ndarray[Any, Any]) -> Any:
        number, is_new = self.node(value)
        if is_new:
            self.nodes[number] = self._view_of(value) or self._whole(value)
        return ["ref", number]

    def _whole(self, value: np.ndarray[Any, Any]) -> Any:
        if value.dtype.kind == "O":
            return ["objects", list(value.shape), self.items(value.ravel())]
        if value.dtype.kind == "V":
            raise self.refuse("is an array of records")
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        return ["array", np.array(value, order="C", copy=True), order, value.flags.writeable]

    def _view_of(self, value: np.ndarray[Any, Any]) -> Any:
        """Read a view as such, so that it still follows the array it looks at."""
        whole = value
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        is_simple = type(whole) is np.ndarray and (whole.flags.c_contiguous or whole.flags.f_contiguous)
        if whole is value or whole.base is not None or not is_simple or whole.dtype.kind in "OV":
            return None
        offset = value.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
        geometry = [value.dtype.str, offset, list(value.shape), list(value.strides), value.flags.writeable]
        return ["view", self.value(whole), *geometry]

    def _generator(self, value: np.random.Generator) -> Any:
        number, is_new = self.node(value)
        if is_new:
            self.nodes[number] = ["generator", self.value(value.bit_generator)]
        return ["ref", number]

    def _bits(self, value: Any) -> Any:
        number, is_new = self.node(value)
        if is_new:
            self.nodes[number] = ["bits", type(value).__name__, value.state, _seed_sequence(value)]
        return ["ref", number]

    def _random_state(self, value: np.random.RandomState) -> Any:
        if value is np.random.mtrand._rand:
            return _SKIP  # the global one: the trainer keeps it
        number, is_new = self.node(value)
        if is_new:
            self.nodes[number] = ["random_state", value.get_state(legacy=False)]
        return ["ref", number]

    def _random(self, value: random.Random) -> Any:
        if value is random._inst:
            return _SKIP  # the global one: the trainer keeps it
        number, is_new = self.node(value)
        if is_new:
            version, words, gauss = value.getstate()
            self.nodes[number] = ["random", version, np.array(words, dtype=np.uint64), gauss]
        return ["ref", number]

    def _tensor(self, value: Any) -> Any:
        if value.requires_grad or value.device.type != "cpu" or not str(value.layout).endswith("strided"):
            raise self.refuse("is a tensor that is learned, sparse or on a device")
        number, is_new = self.node(value)
        if is_new:
            self.nodes[number] = ["tensor", str(value.dtype), self._bytes_of(value)]
        return ["ref", number]

    def _bytes_of(self, value: Any) -> Any:
        try:
            return value.numpy().copy()
        except TypeError as error:  # bfloat16 and the like
            raise self.refuse(f"is a tensor of {value.dtype}") from error

    def _torch_generator(self, value: Any) -> Any:
        number, is_new = self.node(value)
        if is_new:
            self.nodes[number] = ["torch_generator", value.get_state().numpy().copy()]
        return ["ref", number]

    def _space(self, value: Any) -> Any:
        """A space's definition is fixed; its random generator is state."""
        number, is_new = self.node(value)
        if is_new:
            parts = [self.value(part) for part in subspaces(value)]
            self.nodes[number] = [
                "space",
                class_name(type(value)),
                self.value(getattr(value, "_np_random", None)),
                parts,
            ]
        return ["ref", number]

    def _physics(self, value: Any) -> Any:
        number, is_new = self.node(value)
        if is_new:
            self.nodes[number] = ["physics", self.value(value.model), physics.read_data(value)]
        return ["ref", number]

    def _model(self, value: Any) -> Any:
        number, is_new = self.node(value)
        if is_new:
            self.nodes[number] = ["model", physics.read_model(value)]
        return ["ref", number]

    def _object(self, value: Any) -> Any:
        number, is_new = self.node(value)
        if is_new:
            if is_env(value):
                self.trail.append(type(value).__name__)
            kept, skipped = self._attributes(value)
            self.nodes[number] = ["object", class_name(type(value)), kept, skipped, self._payload(value)]
            if is_env(value):
                self.trail.pop()
        return ["ref", number]

    def _attributes(self, value: Any) -> tuple[dict[str, Any], list[str]]:
        kept: dict[str, Any] = {}
        skipped: list[str] = []
        for name, item in list(attributes_of(value).items()):
            if type(item) in LEAVES:
                kept[name] = item
                continue
            found = _SKIP if is_description(value, name) else self.at(f".{name}", item)
            if found is _SKIP:
                skipped.append(name)
            else:
                kept[name] = found
        return kept, skipped

    def _payload(self, value: Any) -> Any:
        payload = payload_of(type(value))
        if payload is None:
            return None
        return self.pairs(value) if payload is dict else self.items(value)


def _seed_sequence(bits: Any) -> list[Any] | None:
    """Keep what `spawn` continues from, where it has been used."""
    seeds = getattr(bits, "seed_seq", None)
    if type(seeds) is not np.random.SeedSequence or not seeds.n_children_spawned:
        return None
    entropy = seeds.entropy if isinstance(seeds.entropy, int) else [int(word) for word in seeds.entropy or []]
    return [entropy, [int(word) for word in seeds.spawn_key], seeds.pool_size, seeds.n_children_spawned]


def subspaces(space: Any) -> list[Any]:
    """Return the spaces a composite space is made of, in order."""
    found: list[Any] = []
    for value in vars(space).values():
        members = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else [value]
        found.extend(member for member in members if isinstance(member, gymnasium.Space))
    return found
