"""Putting an environment back where `capture` found it: attributes of what is already there, nothing else.

Nothing is imported and no constructor is called. An object that the fresh environment lacks is made from a class of
plain Python that it holds already, or that stands in the same module as one of those; a name from the data only chooses
among these. Everything is checked before anything is written.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from rlx.envs import physics
from rlx.envs.capture import FACTORIES, FORMAT, AnyEnv, State, capture_value, subspaces
from rlx.envs.generators import global_generators_kept
from rlx.envs.kinds import (
    SEQUENCES,
    Uncapturable,
    attributes_of,
    class_name,
    is_env,
    kind_of,
    payload_of,
    slots_of,
)
from rlx.envs.walk import walk

_MISSING = object()
_VALUES = frozenset(
    {"skip", "complex", "range", "frozenset", "named", "enum", "constant", "table", "path", "code", "method"}
)
_NODES = frozenset(
    {"list", "set", "deque", "dict", "bytearray", "sequence", "array", "objects", "view", "generator", "bits",
     "random_state", "random", "tensor", "torch_generator", "space", "physics", "model", "object"}
)  # fmt: skip
_DICTS: dict[str, Any] = {"dict": dict, "OrderedDict": OrderedDict, "Counter": Counter}
_BIT_GENERATORS = frozenset({"PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"})


def restore(env: AnyEnv, state: State) -> None:
    """Give a freshly made environment the state of another; `Uncapturable` says what does not fit.

    Everything fits or nothing is written; but where parts are missing that an environment makes of itself in `reset`,
    it is reset first.
    """
    if state.get("format") != FORMAT:
        raise Uncapturable("the environment's state", f"has format {state.get('format')}, not {FORMAT}")
    try:
        writes = _plan(env, state)
    except Uncapturable:
        _reset(env)
        writes = _plan(env, state)
    for write in writes:
        write()


def _reset(env: AnyEnv) -> None:
    with global_generators_kept(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            env.reset(seed=0)
        except Exception as error:
            raise Uncapturable(type(env).__name__, f"raised {type(error).__name__} in reset: {error}") from error


def _plan(env: AnyEnv, state: State) -> list[Callable[[], None]]:
    planner = _Planner(state["nodes"], classes_in(env))
    found = planner.value(state["root"], env)
    if found is not env:
        raise Uncapturable(type(env).__name__, "is not what the state was taken from")
    return planner.writes


def classes_in(env: AnyEnv) -> dict[str, type]:
    """Return the classes of everything an environment holds, by name."""
    return {class_name(type(value)): type(value) for value in walk(env)}


class _Planner:
    """Matches a state with live objects; `writes` are the changes that make them equal."""

    def __init__(self, nodes: list[Any], classes: dict[str, type]) -> None:
        self.nodes = nodes
        self.classes = classes
        self.writes: list[Callable[[], None]] = []
        self.made: dict[int, Any] = {}
        self.claimed: dict[int, object] = {}
        self.trail: list[str] = []

    def refuse(self, why: str) -> Uncapturable:
        start = max((index for index, part in enumerate(self.trail) if part[0] not in ".["), default=0)
        return Uncapturable("".join(self.trail[start:]) or "the environment", why)

    def value(self, kept: Any, live: Any) -> Any:
        """Return what takes the place of `live` so that it equals `kept`."""
        if type(kept) is tuple:
            return self._tuple(kept, live)
        if type(kept) is not list:
            return kept
        tag = kept[0]
        if tag == "ref":
            return self._node(kept[1], live)
        if tag not in _VALUES:
            raise self.refuse(f"has an unknown kind of value, {tag!r}")
        return getattr(self, f"_{tag}")(kept, live)

    def at(self, step: str, kept: Any, live: Any) -> Any:
        if type(kept) is not list and type(kept) is not tuple:
            return kept
        self.trail.append(step)
        found = self.value(kept, live)
        self.trail.pop()
        return found

    def items(self, kept: Any, live: Any) -> list[Any]:
        """Match items in order; those beyond the live ones have nothing to be matched with."""
        lives = list(live) if isinstance(live, (list, tuple, deque)) else []
        return [
            self.at(f"[{index}]", item, lives[index] if index < len(lives) else _MISSING)
            for index, item in enumerate(kept)
        ]

    def _node(self, number: int, live: Any) -> Any:
        if number not in self.made:
            node = self.nodes[number]
            if node[0] not in _NODES:
                raise self.refuse(f"has an unknown kind of part, {node[0]!r}")
            getattr(self, f"_make_{node[0]}")(number, node, live)
        return self.made[number]

    def claim(self, live: Any) -> bool:
        """Take a live object for one node; a second node needs another object."""
        if live is _MISSING or id(live) in self.claimed:
            return False
        self.claimed[id(live)] = live
        return True

    def class_named(self, name: str) -> type:
        """Return one of the classes the environment is made of, or one that is written beside them."""
        if name not in self.classes:
            self.classes.update(self._neighbours(name))
        if name not in self.classes:
            raise self.refuse(f"is a {name}, and the environment has none to make one from")
        return self.classes[name]

    def _neighbours(self, name: str) -> dict[str, type]:
        modules = {cls.__module__ for cls in self.classes.values() if kind_of(cls) == "object"}
        beside = [value for module in modules for value in vars(sys.modules.get(module, sys)).values()]
        classes = [value for value in beside if isinstance(value, type) and class_name(value) == name]
        return {class_name(cls): cls for cls in classes if kind_of(cls) in ("object", "named", "enum")}

    # Values

    def _tuple(self, kept: tuple[Any, ...], live: Any) -> Any:
        return tuple(self.items(kept, live))

    def _skip(self, kept: list[Any], live: Any) -> Any:
        return None if live is _MISSING else live

    def _complex(self, kept: list[Any], live: Any) -> Any:
        return complex(kept[1], kept[2])

    def _range(self, kept: list[Any], live: Any) -> Any:
        return range(*kept[1:])

    def _frozenset(self, kept: list[Any], live: Any) -> Any:
        return frozenset(self.items(kept[1:], _MISSING))

    def _named(self, kept: list[Any], live: Any) -> Any:
        cls = type(live) if class_name(type(live)) == kept[1] else self.class_named(kept[1])
        return tuple.__new__(cls, self.items(kept[2:], live))

    def _enum(self, kept: list[Any], live: Any) -> Any:
        cls: Any = type(live) if class_name(type(live)) == kept[1] else self.class_named(kept[1])
        if kept[2] not in cls.__members__:
            raise self.refuse(f"was {kept[1]}.{kept[2]}, which is no longer there")
        return cls.__members__[kept[2]]

    def _constant(self, kept: list[Any], live: Any) -> Any:
        return self._unchanged(kept, live, f"was {kept[1].partition(' ')[2]}")

    def _table(self, kept: list[Any], live: Any) -> Any:
        return self._unchanged(kept, live, "had other contents")

    def _unchanged(self, kept: list[Any], live: Any, what: str) -> Any:
        if live is _MISSING or capture_value(live)["root"] != kept:
            raise self.refuse(f"{what}, and a new environment has another")
        return live

    def _path(self, kept: list[Any], live: Any) -> Any:
        if not isinstance(live, PurePath):
            raise self.refuse(f"was the path {kept[1]}, and a new environment has none")
        return live

    def _code(self, kept: list[Any], live: Any) -> Any:
        if live is _MISSING or kind_of(type(live)) != "code" or capture_value(live)["root"] != kept:
            raise self.refuse(f"was the function or class {kept[1]}, and a new environment has another")
        return live

    def _method(self, kept: list[Any], live: Any) -> Any:
        owner = self.at(".__self__", kept[2], getattr(live, "__self__", _MISSING))
        if getattr(live, "__self__", None) is owner and live.__func__.__name__ == kept[1]:
            return live
        function = getattr(type(owner), kept[1], None)
        if kind_of(type(function)) != "code":
            raise self.refuse(f"was a method {kept[1]}, which is no longer there")
        return function.__get__(owner)  # type: ignore[union-attr]

    # Nodes: containers and arrays are made anew, so that a constant they shared with others stays as it is

    def _make_list(self, number: int, node: list[Any], live: Any) -> None:
        made = self.made[number] = []
        made.extend(self.items(node[1], live))

    def _make_set(self, number: int, node: list[Any], live: Any) -> None:
        self.made[number] = set(self.items(node[1], _MISSING))

    def _make_deque(self, number: int, node: list[Any], live: Any) -> None:
        made = self.made[number] = deque(maxlen=node[1])
        made.extend(self.items(node[2], live))

    def _make_dict(self, number: int, node: list[Any], live: Any) -> None:
        made = self.made[number] = self._empty_dict(node[1], node[2], live)
        made.update(self.pairs(node[3], live))

    def _empty_dict(self, kind: str, factory: str | None, live: Any) -> Any:
        if kind != "defaultdict":
            return _DICTS[kind]()
        if isinstance(live, defaultdict):
            return defaultdict(live.default_factory)
        if factory is not None and factory not in FACTORIES:
            raise self.refuse(f"is a defaultdict of {factory}, and a new environment has none")
        return defaultdict(FACTORIES[factory] if factory else None)

    def pairs(self, kept: list[Any], live: Any) -> dict[Any, Any]:
        lives = live if isinstance(live, dict) else {}
        found: dict[Any, Any] = {}
        for kept_key, kept_item in kept:
            key = self.at(".key", kept_key, _MISSING)
            found[key] = self.at(f"[{key!r}]", kept_item, lives.get(key, _MISSING))
        return found

    def _make_bytearray(self, number: int, node: list[Any], live: Any) -> None:
        self.made[number] = bytearray(node[1])

    def _make_sequence(self, number: int, node: list[Any], live: Any) -> None:
        if node[1] not in SEQUENCES or "pygame" not in sys.modules:
            raise self.refuse(f"is a {node[1]}, which is unknown here")
        cls = getattr(sys.modules["pygame"], node[1].rpartition(".")[2])
        self.made[number] = cls(*node[2])

    def _make_array(self, number: int, node: list[Any], live: Any) -> None:
        if isinstance(live, np.ndarray) and _is_foreign(live) and live.flags.writeable:
            self._fill(number, node[1], live)
        else:
            made = self.made[number] = np.array(node[1], order=node[2], copy=True)
            made.flags.writeable = node[3]

    def _fill(self, number: int, values: Any, live: np.ndarray[Any, Any]) -> None:
        """Write into memory that belongs to somebody else, such as a simulator."""
        if live.shape != values.shape or live.dtype != values.dtype:
            raise self.refuse(f"had shape {values.shape}, and a new environment has {live.shape}")
        self.made[number] = live
        self.writes.append(lambda: np.copyto(live, values))

    def _make_objects(self, number: int, node: list[Any], live: Any) -> None:
        made = self.made[number] = np.empty(tuple(node[1]), dtype=object)
        flat = made.reshape(-1)
        lives = list(live.ravel()) if isinstance(live, np.ndarray) else _MISSING
        for index, item in enumerate(self.items(node[2], lives)):
            flat[index] = item

    def _make_view(self, number: int, node: list[Any], live: Any) -> None:
        _, whole, dtype, offset, shape, strides, is_writeable = node
        base = self.value(whole, _MISSING)
        buffer = base if base.flags.c_contiguous else base.T
        try:
            made = np.ndarray(tuple(shape), np.dtype(dtype), buffer, offset, tuple(strides))
        except (ValueError, TypeError) as error:
            raise self.refuse(f"is a view that does not fit: {error}") from None
        made.flags.writeable = is_writeable and base.flags.writeable
        self.made[number] = made

    def _make_generator(self, number: int, node: list[Any], live: Any) -> None:
        has_one = isinstance(live, np.random.Generator) and self.claim(live)
        bits = self.value(node[1], live.bit_generator if has_one else _MISSING)
        self.made[number] = live if has_one and live.bit_generator is bits else np.random.Generator(bits)

    def _make_bits(self, number: int, node: list[Any], live: Any) -> None:
        _, name, state, seeds = node
        if type(live).__name__ == name and seeds is None and self.claim(live):
            self.made[number] = live
        else:
            live = self.made[number] = self._new_bits(name, seeds)
        self.writes.append(lambda: _set_state(live, state))

    def _new_bits(self, name: str, seeds: list[Any] | None) -> Any:
        if name not in _BIT_GENERATORS:
            raise self.refuse(f"uses the random generator {name}, which is not NumPy's")
        made: Callable[..., Any] = getattr(np.random, name)
        if seeds is None:
            return made(0)
        entropy, key, pool, children = seeds
        return made(np.random.SeedSequence(entropy, spawn_key=key, pool_size=pool, n_children_spawned=children))

    def _make_random_state(self, number: int, node: list[Any], live: Any) -> None:
        made = live if type(live) is np.random.RandomState and self.claim(live) else np.random.RandomState(0)
        self.made[number] = made
        self.writes.append(lambda: made.set_state(node[1]))

    def _make_random(self, number: int, node: list[Any], live: Any) -> None:
        _, version, words, gauss = node
        made = self.made[number] = live if type(live) is random.Random and self.claim(live) else random.Random(0)
        state = version, tuple(int(word) for word in words), gauss
        self.writes.append(lambda: made.setstate(state))

    def _make_tensor(self, number: int, node: list[Any], live: Any) -> None:
        made = sys.modules["torch"].from_numpy(np.array(node[2], copy=True))
        if str(made.dtype) != node[1]:
            raise self.refuse(f"was a tensor of {node[1]}")
        self.made[number] = made

    def _make_torch_generator(self, number: int, node: list[Any], live: Any) -> None:
        torch = sys.modules["torch"]
        made = self.made[number] = live if isinstance(live, torch.Generator) and self.claim(live) else torch.Generator()
        self.writes.append(lambda: made.set_state(torch.from_numpy(np.array(node[1], copy=True))))

    def _make_space(self, number: int, node: list[Any], live: Any) -> None:
        _, name, kept, parts = node
        if class_name(type(live)) != name or len(subspaces(live)) != len(parts):
            raise self.refuse(f"was a {name}, and a new environment has another space")
        self.made[number] = live
        for part, space in zip(parts, subspaces(live), strict=True):
            self.value(part, space)
        generator = self.value(kept, getattr(live, "_np_random", None))
        self.writes.append(lambda: setattr(live, "_np_random", generator))

    def _make_physics(self, number: int, node: list[Any], live: Any) -> None:
        if kind_of(type(live)) != "physics" or not physics.fits_data(live, node[2]):
            raise self.refuse("is a simulation of another size")
        self.value(node[1], live.model)
        self.made[number] = live
        self.writes.append(lambda: physics.write_data(live, node[2]))

    def _make_model(self, number: int, node: list[Any], live: Any) -> None:
        if kind_of(type(live)) != "model" or not physics.fits_model(live, node[1]):
            raise self.refuse("is another MuJoCo model")
        self.made[number] = live
        self.writes.append(lambda: physics.write_model(live, node[1]))

    # Objects are changed in place, attribute by attribute

    def _make_object(self, number: int, node: list[Any], live: Any) -> None:
        _, name, kept, skipped, payload = node
        is_there = class_name(type(live)) == name and self.claim(live)
        target = self.made[number] = live if is_there else self._new_object(name)
        if is_env(target):
            self.trail.append(type(target).__name__)
        current = dict(attributes_of(target))
        found = {key: self.at(f".{key}", item, current.get(key, _MISSING)) for key, item in kept.items()}
        gone = [key for key in current if key not in found and key not in skipped]
        items = None if payload is None else self._items_of(target, payload)
        if is_env(target):
            self.trail.pop()
        if is_there:
            self.writes.append(lambda: _set_object(target, found, gone, items))
        else:  # nobody knows it yet, and its hash may be needed to put it into a dict
            _set_object(target, found, gone, items)

    def _new_object(self, name: str) -> Any:
        cls = self.class_named(name)
        if issubclass(cls, (gymnasium.Env, VectorEnv)):
            raise self.refuse(f"is a {name}, and a new environment has none there")
        maker: Any = payload_of(cls) or object
        return maker.__new__(cls)

    def _items_of(self, target: Any, payload: list[Any]) -> Any:
        return self.pairs(payload, target) if isinstance(target, dict) else self.items(payload, target)


def _is_foreign(array: np.ndarray[Any, Any]) -> bool:
    """Say whether an array's memory belongs to something that is not an array."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.base is not None


def _set_state(bits: Any, state: Any) -> None:
    bits.state = state


def _set_object(target: Any, found: dict[str, Any], gone: list[str], items: Any) -> None:
    slots = set(slots_of(type(target)))
    own = getattr(target, "__dict__", None)
    for name, value in found.items():
        if own is None or name in slots:
            object.__setattr__(target, name, value)
        else:
            own[name] = value  # past any __setattr__ of the class's own
    for name in gone:
        if own is not None and name in own:
            del own[name]
        else:
            object.__delattr__(target, name)
    if items is not None:
        payload: Any = payload_of(type(target))
        payload.clear(target)
        fill = payload.update if payload in (dict, set) else payload.extend
        fill(target, items)
