"""Restores the state that `capture` read, by changing the attributes of a freshly made environment.

Nothing is imported and no constructor is called. An object that the fresh environment lacks is made from a plain Python
class that it already holds, or that is defined in the same module as one of those. A name from the state only chooses
among these classes. Everything is checked before anything is written.
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

import rlx.envs.snapshot.mujoco_state as mujoco_state
from rlx.envs.foreign_call import ForeignError, call_foreign
from rlx.envs.global_rng import global_generators_kept
from rlx.envs.remote.remote_env import RemoteVector
from rlx.envs.snapshot.capture import FACTORIES, FORMAT, AnyEnv, State, capture_value, subspaces
from rlx.envs.snapshot.value_kinds import (
    SEQUENCES,
    Trail,
    Uncapturable,
    attributes_of,
    class_name,
    is_env,
    kind_of,
    payload_of,
    slots_of,
    walk,
)

_MISSING = object()
_DICTS: dict[str, Any] = {"dict": dict, "OrderedDict": OrderedDict, "Counter": Counter}
_BIT_GENERATORS = frozenset({"PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"})


def restore(env: AnyEnv, state: State) -> None:
    """Give a freshly made environment the state of another; raise `Uncapturable` if a part does not fit.

    Either everything fits or nothing is written. If parts are missing that an environment creates in `reset`, it is
    reset first.
    """
    if state.get("format") != FORMAT:
        raise Uncapturable("the environment's state", f"has format {state.get('format')}, not {FORMAT}")
    if isinstance(env, RemoteVector) and "process" in state:
        env.restore(state)
        return
    if isinstance(env, RemoteVector) or "process" in state:
        raise Uncapturable("the environment's state", "was not saved by a process like the one that restores it")
    try:
        writes = _plan(env, state)
    except Uncapturable:
        with global_generators_kept(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                call_foreign(lambda: env.reset(seed=0))
            except ForeignError as error:
                raise Uncapturable(type(env).__name__, f"raised in reset: {error}") from error
        writes = _plan(env, state)
    for write in writes:
        write()


def _plan(env: AnyEnv, state: State) -> list[Callable[[], None]]:
    classes = {class_name(type(value)): type(value) for value in walk(env)}
    planner = _Planner(state["nodes"], classes)
    if planner.value(state["root"], env) is not env:
        raise Uncapturable(type(env).__name__, "is not the environment that the state was taken from")
    return planner.writes


class _Planner(Trail):
    """Matches a state with live objects; `writes` are the changes that make them equal."""

    def __init__(self, nodes: list[Any], classes: dict[str, type]) -> None:
        super().__init__()
        self.nodes = nodes
        self.classes = classes
        self.writes: list[Callable[[], None]] = []
        self.made: dict[int, Any] = {}
        self.claimed: dict[int, object] = {}

    def value(self, kept: Any, live: Any) -> Any:
        """Return the value that replaces `live`, so that it equals `kept`."""
        if type(kept) is tuple:
            return tuple(self.items(kept, live))
        if type(kept) is not list:
            return kept
        tag = kept[0]
        if tag == "ref":
            return self._node(kept[1], live)
        if tag not in _VALUES:
            raise self.refuse(f"has an unknown kind of value, {tag!r}")
        return _VALUES[tag](self, kept, live)

    def _node(self, number: int, live: Any) -> Any:
        if number not in self.made:
            tag = self.nodes[number][0]
            if tag not in _NODES:
                raise self.refuse(f"has an unknown kind of part, {tag!r}")
            # Containers and objects enter `made` before their items, which may refer to them.
            self.made[number] = _NODES[tag](self, number, self.nodes[number], live)
        return self.made[number]

    def at(self, step: str, kept: Any, live: Any) -> Any:
        """Return the replacement of a value that is one step further along the trail."""
        if type(kept) is not list and type(kept) is not tuple:
            return kept
        self.trail.append(step)
        value = self.value(kept, live)
        self.trail.pop()
        return value

    def items(self, kept: Any, live: Any) -> list[Any]:
        """Match items in order; items beyond the live ones have nothing to be matched with."""
        live_items = list(live) if isinstance(live, (list, tuple, deque)) else []
        live_items += [_MISSING] * (len(kept) - len(live_items))
        return [self.at(f"[{index}]", item, live_items[index]) for index, item in enumerate(kept)]

    def pairs(self, kept: list[Any], live: Any) -> dict[Any, Any]:
        live_items = live if isinstance(live, dict) else {}
        result: dict[Any, Any] = {}
        for kept_key, kept_item in kept:
            key = self.at(".key", kept_key, _MISSING)
            result[key] = self.at(f"[{key!r}]", kept_item, live_items.get(key, _MISSING))
        return result

    def claim(self, live: Any) -> bool:
        """Take a live object for one node; a second node needs another object."""
        if live is _MISSING or id(live) in self.claimed:
            return False
        self.claimed[id(live)] = live
        return True

    def reuse(self, live: Any, cls: type, make: Callable[[], Any]) -> Any:
        """Return the live object if it has the right class and is not claimed, otherwise a new one."""
        return live if type(live) is cls and self.claim(live) else make()

    def class_named(self, name: str, live: Any) -> Any:
        """Return the live object's class, a class that the environment holds, or one defined next to those."""
        if class_name(type(live)) == name:
            return type(live)
        if name not in self.classes:
            modules = {cls.__module__ for cls in self.classes.values() if kind_of(cls) == "object"}
            values = [value for module in modules for value in vars(sys.modules.get(module, sys)).values()]
            neighbours = [value for value in values if isinstance(value, type) and class_name(value) == name]
            for cls in neighbours:
                if kind_of(cls) in ("object", "named", "enum"):
                    self.classes[name] = cls
        if name not in self.classes:
            raise self.refuse(f"is a {name}, and the environment has none to make one from")
        return self.classes[name]

    # Values

    def make_enum(self, kept: list[Any], live: Any) -> Any:
        members = self.class_named(kept[1], live).__members__
        if kept[2] not in members:
            raise self.refuse(f"was {kept[1]}.{kept[2]}, which no longer exists")
        return members[kept[2]]

    def unchanged(self, kept: list[Any], live: Any, before: str) -> Any:
        """Return the live value, which must be equal to the kept one: it cannot be restored."""
        if live is _MISSING or kind_of(type(live)) != kept[0] or capture_value(live)["root"] != kept:
            raise self.refuse(f"{before}, and a new environment has another")
        return live

    def make_path(self, kept: list[Any], live: Any) -> Any:
        if not isinstance(live, PurePath):
            raise self.refuse(f"was the path {kept[1]}, and a new environment has none")
        return live

    def make_method(self, kept: list[Any], live: Any) -> Any:
        owner = self.at(".__self__", kept[2], getattr(live, "__self__", _MISSING))
        if getattr(live, "__self__", None) is owner and live.__func__.__name__ == kept[1]:
            return live
        function: Any = getattr(type(owner), kept[1], None)
        if kind_of(type(function)) != "code":
            raise self.refuse(f"was a method {kept[1]}, which no longer exists")
        return function.__get__(owner)

    # Nodes: containers and arrays are new objects, so that a constant that they shared with others stays unchanged

    def make_list(self, number: int, node: list[Any], live: Any) -> Any:
        made = self.made[number] = []
        made.extend(self.items(node[1], live))
        return made

    def make_deque(self, number: int, node: list[Any], live: Any) -> Any:
        made = self.made[number] = deque(maxlen=node[1])
        made.extend(self.items(node[2], live))
        return made

    def make_dict(self, number: int, node: list[Any], live: Any) -> Any:
        _, kind, factory, kept = node
        if kind != "defaultdict":
            made = _DICTS[kind]()
        elif isinstance(live, defaultdict):
            made = defaultdict(live.default_factory)
        elif factory is None or factory in FACTORIES:
            made = defaultdict(FACTORIES.get(factory))
        else:
            raise self.refuse(f"is a defaultdict of {factory}, and a new environment has none")
        self.made[number] = made
        made.update(self.pairs(kept, live))
        return made

    def make_sequence(self, number: int, node: list[Any], live: Any) -> Any:
        if node[1] not in SEQUENCES or "pygame" not in sys.modules:
            raise self.refuse(f"is a {node[1]}, which is unknown here")
        return getattr(sys.modules["pygame"], node[1].rpartition(".")[2])(*node[2])

    def make_array(self, number: int, node: list[Any], live: Any) -> Any:
        _, values, order, is_writeable = node
        if isinstance(live, np.ndarray) and live.flags.writeable and _has_foreign_memory(live):
            if live.shape != values.shape or live.dtype != values.dtype:
                raise self.refuse(f"had shape {values.shape}, and a new environment has {live.shape}")
            self.writes.append(lambda: np.copyto(live, values))
            return live
        made = np.array(values, order=order, copy=True)
        made.flags.writeable = is_writeable
        return made

    def make_objects(self, number: int, node: list[Any], live: Any) -> Any:
        made = self.made[number] = np.empty(tuple(node[1]), dtype=object)
        live_items = list(live.ravel()) if isinstance(live, np.ndarray) else _MISSING
        for index, item in enumerate(self.items(node[2], live_items)):
            made.reshape(-1)[index] = item
        return made

    def make_view(self, number: int, node: list[Any], live: Any) -> Any:
        _, base, dtype, offset, shape, strides, is_writeable = node
        base = self.value(base, _MISSING)
        buffer = base if base.flags.c_contiguous else base.T
        try:
            made: Any = np.ndarray(tuple(shape), np.dtype(dtype), buffer, offset, tuple(strides))
        except (ValueError, TypeError) as error:
            raise self.refuse(f"is a view that does not fit: {error}") from None
        made.flags.writeable = is_writeable and base.flags.writeable
        return made

    def make_generator(self, number: int, node: list[Any], live: Any) -> Any:
        if isinstance(live, np.random.Generator) and self.claim(live):
            bits = self.value(node[1], live.bit_generator)
            if live.bit_generator is bits:
                return live
        else:
            bits = self.value(node[1], _MISSING)
        return np.random.Generator(bits)

    def make_bits(self, number: int, node: list[Any], live: Any) -> Any:
        _, name, state, seeds = node
        if type(live).__name__ == name and seeds is None and self.claim(live):
            made = live
        elif name not in _BIT_GENERATORS:
            raise self.refuse(f"uses the random generator {name}, which is not NumPy's")
        elif seeds is None:
            made = getattr(np.random, name)(0)
        else:
            entropy, key, pool, children = seeds
            seed_sequence = np.random.SeedSequence(entropy, spawn_key=key, pool_size=pool, n_children_spawned=children)
            made = getattr(np.random, name)(seed_sequence)
        self.writes.append(lambda: setattr(made, "state", state))
        return made

    def make_random_state(self, number: int, node: list[Any], live: Any) -> Any:
        made = self.reuse(live, np.random.RandomState, lambda: np.random.RandomState(0))
        self.writes.append(lambda: made.set_state(node[1]))
        return made

    def make_random(self, number: int, node: list[Any], live: Any) -> Any:
        _, version, words, gauss = node
        made = self.reuse(live, random.Random, lambda: random.Random(0))
        self.writes.append(lambda: made.setstate((version, tuple(int(word) for word in words), gauss)))
        return made

    def make_tensor(self, number: int, node: list[Any], live: Any) -> Any:
        made = sys.modules["torch"].from_numpy(np.array(node[2], copy=True))
        if str(made.dtype) != node[1]:
            raise self.refuse(f"was a tensor of {node[1]}")
        return made

    def make_torch_generator(self, number: int, node: list[Any], live: Any) -> Any:
        torch = sys.modules["torch"]
        made = self.reuse(live, torch.Generator, torch.Generator)
        self.writes.append(lambda: made.set_state(torch.from_numpy(np.array(node[1], copy=True))))
        return made

    def make_space(self, number: int, node: list[Any], live: Any) -> Any:
        _, name, kept, parts = node
        if class_name(type(live)) != name or len(subspaces(live)) != len(parts):
            raise self.refuse(f"was a {name}, and a new environment has another space")
        self.made[number] = live
        for part, space in zip(parts, subspaces(live), strict=True):
            self.value(part, space)
        generator = self.value(kept, getattr(live, "_np_random", None))
        self.writes.append(lambda: setattr(live, "_np_random", generator))
        return live

    def make_physics(self, number: int, node: list[Any], live: Any) -> Any:
        if kind_of(type(live)) != "physics" or not mujoco_state.fits_data(live, node[2]):
            raise self.refuse("is a simulation of another size")
        self.value(node[1], live.model)
        self.writes.append(lambda: mujoco_state.write_data(live, node[2]))
        return live

    def make_model(self, number: int, node: list[Any], live: Any) -> Any:
        if kind_of(type(live)) != "model" or not mujoco_state.fits_model(live, node[1]):
            raise self.refuse("is another MuJoCo model")
        self.writes.append(lambda: mujoco_state.write_model(live, node[1]))
        return live

    # Objects are changed in place, attribute by attribute

    def make_object(self, number: int, node: list[Any], live: Any) -> Any:
        _, name, kept, skipped, payload = node
        is_live = class_name(type(live)) == name and self.claim(live)
        target = self.made[number] = live if is_live else self._new_object(name)
        if is_env(target):
            self.trail.append(type(target).__name__)
        current = dict(attributes_of(target))
        attributes = {key: self.at(f".{key}", item, current.get(key, _MISSING)) for key, item in kept.items()}
        gone = [key for key in current if key not in attributes and key not in skipped]
        items: Any = None
        if payload is not None:
            items = self.pairs(payload, target) if isinstance(target, dict) else self.items(payload, target)
        if is_env(target):
            self.trail.pop()
        if is_live:
            self.writes.append(lambda: _set_object(target, attributes, gone, items))
        else:  # a new object may be a key of a dict, which needs its hash at once
            _set_object(target, attributes, gone, items)
        return target

    def _new_object(self, name: str) -> Any:
        cls = self.class_named(name, _MISSING)
        if issubclass(cls, (gymnasium.Env, VectorEnv)):
            raise self.refuse(f"is a {name}, and a new environment has none there")
        container: Any = payload_of(cls) or object
        return container.__new__(cls)


def _has_foreign_memory(array: np.ndarray[Any, Any]) -> bool:
    """Return whether an array's memory belongs to something that is not an array, such as a simulator."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array.base is not None


def _set_object(target: Any, attributes: dict[str, Any], gone: list[str], items: Any) -> None:
    slots = set(slots_of(type(target)))
    own = getattr(target, "__dict__", None)
    for name, value in attributes.items():
        if own is None or name in slots:
            object.__setattr__(target, name, value)
        else:
            own[name] = value  # does not call the class's own __setattr__
    for name in gone:
        if own is not None and name in own:
            del own[name]
        else:
            object.__delattr__(target, name)
    if items is not None:
        container: Any = payload_of(type(target))
        container.clear(target)
        fill = container.update if container in (dict, set) else container.extend
        fill(target, items)


_VALUES: dict[str, Callable[[_Planner, list[Any], Any], Any]] = {
    "skip": lambda plan, kept, live: None if live is _MISSING else live,
    "complex": lambda plan, kept, live: complex(kept[1], kept[2]),
    "range": lambda plan, kept, live: range(*kept[1:]),
    "frozenset": lambda plan, kept, live: frozenset(plan.items(kept[1:], _MISSING)),
    "named": lambda plan, kept, live: tuple.__new__(plan.class_named(kept[1], live), plan.items(kept[2:], live)),
    "constant": lambda plan, kept, live: plan.unchanged(kept, live, f"was {kept[1].partition(' ')[2]}"),
    "table": lambda plan, kept, live: plan.unchanged(kept, live, "had other contents"),
    "code": lambda plan, kept, live: plan.unchanged(kept, live, f"was the function or class {kept[1]}"),
    "enum": _Planner.make_enum,
    "path": _Planner.make_path,
    "method": _Planner.make_method,
}
_NODES: dict[str, Callable[[_Planner, int, list[Any], Any], Any]] = {
    "bytearray": lambda plan, number, node, live: bytearray(node[1]),
    "set": lambda plan, number, node, live: set(plan.items(node[1], _MISSING)),
    "list": _Planner.make_list,
    "deque": _Planner.make_deque,
    "dict": _Planner.make_dict,
    "sequence": _Planner.make_sequence,
    "array": _Planner.make_array,
    "objects": _Planner.make_objects,
    "view": _Planner.make_view,
    "generator": _Planner.make_generator,
    "bits": _Planner.make_bits,
    "random_state": _Planner.make_random_state,
    "random": _Planner.make_random,
    "tensor": _Planner.make_tensor,
    "torch_generator": _Planner.make_torch_generator,
    "space": _Planner.make_space,
    "physics": _Planner.make_physics,
    "model": _Planner.make_model,
    "object": _Planner.make_object,
}
