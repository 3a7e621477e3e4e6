"""An environment's parameter and the values to try: `NAME=5:15:6`, `attr:gravity=8,9.8,12`, `model:body_mass=…`.

NAME is an argument of the environment, `attr:NAME` an attribute, and `model:NAME` a factor on numbers of its MuJoCo
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
class EnvParameter:
    """A parameter to vary, and its values. `name` is as people write it, `key` is without the prefix."""

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
        """Return the configured value of the parameter, or None if it is unknown."""
        if self.kind == "model":
            return 1.0
        find = {"argument": _argument, "attribute": _attribute}[self.kind]
        value = find(env, self.key, root)
        return value if isinstance(value, (int, float, bool, str)) else None

    def refuse_absent(self, env: Env, *, root: Path) -> None:
        """Raise if the environment cannot be made with any of the values: then it does not have the parameter."""
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


def parse_parameter(text: str) -> EnvParameter:
    """Read `NAME=VALUES`."""
    name, _, given_values = text.partition("=")
    if not name or not given_values:
        raise UsageError(f"`{text}` is not a parameter with values", hint="gravity=5:15:6, or gravity=5,9.8,15")
    prefix, is_prefixed, key = name.partition(":")
    if is_prefixed and (prefix not in PREFIXES or not key):
        raise UsageError(f"`{name}`: unknown prefix `{prefix}:`", hint="NAME, attr:NAME or model:NAME")
    kind = PREFIXES.get(prefix, "argument") if is_prefixed else "argument"
    values = parse_values(given_values)
    if kind == "model" and not all(isinstance(value, (int, float)) for value in values):
        raise UsageError(f"`{text}`: the values of a model parameter are factors", hint=f"{name}=0.5:2:4")
    return EnvParameter(name, kind, key or name, values)


def parse_values(text: str) -> tuple[Value, ...]:
    """Read a range (`LOW:HIGH:COUNT`, `:log` for equal ratios) or a list of values, each once and in order."""
    values: Sequence[Value] = [_value(part) for part in text.split(",") if part.strip()]
    if ":" in text:
        values = _range(text)
    unique = list(dict.fromkeys(values))
    if not unique or len(unique) > MOST_VALUES:
        raise UsageError(f"`{text}`: {len(unique)} values", hint=f"between 1 and {MOST_VALUES}")
    if all(isinstance(value, (int, float)) for value in unique):
        unique.sort()
    return tuple(unique)


def _range(text: str) -> Sequence[Value]:
    hint = "LOW:HIGH:COUNT, e.g. 5:15:6, or 0.01:10:4:log"
    parts = text.split(":")
    spacing: Any = np.linspace
    if parts[-1] == "log":
        spacing = np.geomspace
        parts.pop()
    try:
        low = float(parts[0])
        high = float(parts[1])
        count = int(parts[2])
    except (ValueError, IndexError):
        raise UsageError(f"`{text}` is not a range", hint=hint) from None
    is_log_of_negative = spacing is np.geomspace and min(low, high) <= 0
    if len(parts) != 3 or count < 2 or not np.isfinite([low, high]).all() or is_log_of_negative:
        raise UsageError(f"`{text}` is not a range", hint=hint)
    values = [float(f"{value:.12g}") for value in spacing(low, high, count)]  # 0.1 + 0.2 is written 0.3
    is_whole = not any(mark in text for mark in ".e") and all(value == int(value) for value in values)
    if is_whole:
        return [int(value) for value in values]
    return values


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

    from rlx.envs.check_kwargs import default_of
    from rlx.envs.make import named_by
    from rlx.envs.resolve_id import creator_of

    if key in env.kwargs:
        return env.kwargs[key]
    named = named_by(env.id, root=root)
    if not isinstance(named, EnvSpec):
        return default_of(named, key)
    if key == "max_episode_steps":
        return named.max_episode_steps
    return named.kwargs.get(key, default_of(creator_of(named, root), key))


def _attribute(env: Env, key: str, root: Path) -> Any:
    from rlx.envs.make import make_env
    from rlx.envs.parameter_wrappers import attribute_of

    made = make_env(env, root=root)
    try:
        return attribute_of(made, key)
    finally:
        made.close()
