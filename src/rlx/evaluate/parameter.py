"""A parameter of an environment and the values to try: `NAME=5:15:6`, `attr:gravity=8,9.8,12`, `model:body_mass=…`.

NAME is an argument of the environment, `attr:NAME` an attribute of it, `model:NAME` a factor on numbers of its MuJoCo
model. Values are a range with a count (`0.5:2:4`, `0.01:10:4:log`) or a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rlx.errors import RlxError, UsageError

if TYPE_CHECKING:
    from rlx.config.schema import Env

Kind = Literal["argument", "attribute", "model"]
Value = float | int | bool | str
PREFIXES: dict[str, Kind] = {"attr": "attribute", "model": "model"}
WRAPPERS: dict[Kind, str] = {"attribute": "set_attributes", "model": "scale_model"}
MOST_VALUES = 100


@dataclass(frozen=True)
class Parameter:
    """What to vary and through which values; `name` is as people write it, `key` without its prefix."""

    name: str
    kind: Kind
    key: str
    values: tuple[Value, ...]

    @property
    def is_numeric(self) -> bool:
        return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in self.values)

    def applied(self, env: Env, value: Value) -> Env:
        """Return the environment with this value."""
        if self.kind == "argument":
            return env.model_copy(update={"kwargs": {**env.kwargs, self.key: value}})
        from rlx.config.schema import Wrapper

        inner = Wrapper(name=WRAPPERS[self.kind], kwargs={self.key: value})
        return env.model_copy(update={"wrappers": (inner, *env.wrappers)})

    def nominal(self, env: Env, *, root: Path) -> Value | None:
        """Return the value the environment has as it is configured; None where that cannot be told."""
        if self.kind == "model":
            return 1.0
        value = _argument(env, self.key, root) if self.kind == "argument" else _attribute(env, self.key, root)
        return value if isinstance(value, (int, float, bool, str)) else None

    def refuse_absent(self, env: Env, *, root: Path) -> None:
        """Raise where the environment can be made with none of the values: then it does not have the parameter."""
        from rlx.envs.make import make_env

        first: RlxError | None = None
        for value in self.values:
            try:
                make_env(self.applied(env, value), root=root).close()
            except RlxError as error:
                first = first or error
            else:
                return
        if first is not None:
            raise first


def parse(text: str) -> Parameter:
    """Read `NAME=VALUES`."""
    name, is_given, given = text.partition("=")
    if not is_given or not name or not given:
        raise UsageError(f"`{text}` is no parameter with values", hint="gravity=5:15:6, or gravity=5,9.8,15")
    prefix, is_prefixed, key = name.partition(":")
    if is_prefixed and (prefix not in PREFIXES or not key):
        raise UsageError(f"`{name}`: nothing is called `{prefix}:`", hint="NAME, attr:NAME or model:NAME")
    kind = PREFIXES[prefix] if is_prefixed else "argument"
    values = values_of(given)
    if kind == "model" and not all(isinstance(value, (int, float)) for value in values):
        raise UsageError(f"`{text}`: a model's numbers are multiplied", hint=f"{name}=0.5:2:4")
    return Parameter(name, kind, key if is_prefixed else name, values)


def values_of(text: str) -> tuple[Value, ...]:
    """Read a range (`LOW:HIGH:COUNT`, `:log` for equal ratios) or a list of values, each once and in order."""
    values = _range(text) if ":" in text else [_value(part) for part in text.split(",") if part.strip()]
    unique = list(dict.fromkeys(values))
    if not unique or len(unique) > MOST_VALUES:
        raise UsageError(f"`{text}`: {len(unique)} values", hint=f"between 1 and {MOST_VALUES}")
    is_ordered = all(isinstance(value, (int, float)) for value in unique)
    return tuple(sorted(unique) if is_ordered else unique)


def _range(text: str) -> Sequence[Value]:
    hint = "LOW:HIGH:COUNT, e.g. 5:15:6, or 0.01:10:4:log"
    parts = text.split(":")
    spacing = parts.pop() if parts[-1] == "log" else "even"
    try:
        low, high, count = float(parts[0]), float(parts[1]), int(parts[2])
    except (ValueError, IndexError):
        raise UsageError(f"`{text}` is no range", hint=hint) from None
    if len(parts) != 3 or count < 2 or not np.isfinite([low, high]).all() or (spacing == "log" and min(low, high) <= 0):
        raise UsageError(f"`{text}` is no range", hint=hint)
    drawn = np.geomspace(low, high, count) if spacing == "log" else np.linspace(low, high, count)
    values = [float(f"{value:.12g}") for value in drawn]  # 0.1 + 0.2 is written 0.3
    is_whole = not any(mark in text for mark in ".e") and all(value == int(value) for value in values)
    return [int(value) for value in values] if is_whole else values


def _value(text: str) -> Value:
    word = text.strip()
    if word in ("true", "false"):
        return word == "true"
    for read in (int, float):
        try:
            return read(word)
        except ValueError:
            continue
    return word


def _argument(env: Env, key: str, root: Path) -> Any:
    from gymnasium.envs.registration import EnvSpec

    from rlx.envs.arguments import default_of
    from rlx.envs.lookup import creator_of
    from rlx.envs.make import named_by

    if key in env.kwargs:
        return env.kwargs[key]
    named = named_by(env.id, root=root)
    if not isinstance(named, EnvSpec):
        return default_of(named, key)
    if key == "max_episode_steps":
        return named.max_episode_steps
    return named.kwargs.get(key, default_of(creator_of(named, root), key))


def _attribute(env: Env, key: str, root: Path) -> Any:
    from rlx.envs.alter import attribute_of
    from rlx.envs.make import make_env

    made = make_env(env, root=root)
    try:
        return attribute_of(made, key)
    finally:
        made.close()
