"""Wrappers that change constants: they set an environment's attributes, or scale its MuJoCo model.

Not covered: values that an environment derived from a constant when it was made (CartPole's `total_mass` from its
masses, a moment of inertia from a body's mass) stays as it was.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import Any

import gymnasium
import numpy as np

from rlx.envs.native_vector import OneWorld
from rlx.errors import ConfigError, did_you_mean

AnyEnv = gymnasium.Env[Any, Any]
Scalar = float | int | bool | str


class SetAttributes(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Sets attributes of the environment itself, again after every reset: `{gravity: 12}`, `{physics.gravity: 12}`."""

    def __init__(self, env: AnyEnv, /, **values: Scalar) -> None:
        super().__init__(env)
        self.values = {path: _like(attribute_of(env, path), value) for path, value in values.items()}
        self._set()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        answer = self.env.reset(seed=seed, options=options)
        self._set()
        return answer

    def _set(self) -> None:
        for path, value in self.values.items():
            owner, name = _owner(self.env, path)
            try:
                setattr(owner, name, value)
            except AttributeError as error:
                raise ConfigError(f"the attribute `{path}` cannot be set: {error}") from None


class ScaleModel(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Multiplies numbers of a MuJoCo model: `{body_mass: 1.2}`, `{opt.gravity: 0.5}`."""

    def __init__(self, env: AnyEnv, /, **factors: float) -> None:
        super().__init__(env)
        for path, factor in factors.items():
            owner, name, before = _model_field(env, path)
            if np.ndim(before):
                before[...] = before * float(factor)
            else:
                setattr(owner, name, type(before)(before * float(factor)))


def attribute_of(env: AnyEnv, path: str) -> Scalar:
    """Return the number, flag or word that an environment has under a name; dots go inwards."""
    owner, name = _owner(env, path)
    value = getattr(owner, name)
    if isinstance(value, (numbers.Real, str, np.bool_)):
        return value.item() if isinstance(value, np.generic) else value  # type: ignore[return-value]
    raise ConfigError(
        f"the attribute `{path}` is a {type(value).__name__}: only numbers, flags and words can be set",
        hint=_known(_settable(owner)),
    )


def _owner(env: AnyEnv, path: str) -> tuple[Any, str]:
    """Return the object that has the attribute, and the attribute's own name."""
    bare: Any = env.unwrapped
    owner: Any = bare.worlds.unwrapped if isinstance(bare, OneWorld) else bare
    label = type(owner).__name__
    *inwards, name = path.split(".")
    for part in inwards:
        if not hasattr(owner, part):
            raise _absent(label, path, part, [known for known in vars(owner) if not known.startswith("_")])
        owner = getattr(owner, part)
    if not hasattr(owner, name):
        raise _absent(label, path, name, list(_settable(owner)))
    return owner, name


def _settable(owner: Any) -> Iterable[str]:
    """Yield the names of the numbers, flags and words an object has."""
    for name, value in getattr(owner, "__dict__", {}).items():
        if not name.startswith("_") and isinstance(value, (numbers.Real, str, np.bool_)):
            yield name


def _absent(label: str, path: str, part: str, known: list[str]) -> ConfigError:
    near = did_you_mean(part, known)
    return ConfigError(f"{label} has no attribute `{path}`", hint=f"did you mean `{near}`?" if near else _known(known))


def _known(names: Iterable[str]) -> str | None:
    listed = ", ".join(sorted(names))
    return f"it has: {listed}" if listed else None


def _like(before: Scalar, value: Scalar) -> Scalar:
    """Return a value of the kind that was there: a whole number for a float attribute becomes a float."""
    return float(value) if isinstance(before, float) and isinstance(value, int) else value


def _model_field(env: AnyEnv, path: str) -> tuple[Any, str, Any]:
    model: Any = getattr(env.unwrapped, "model", None)
    if not hasattr(model, "body_mass"):
        raise ConfigError(
            f"{type(env.unwrapped).__name__} has no MuJoCo model, so `{path}` of it cannot be scaled",
            hint="name an attribute (attr:NAME) or an argument (NAME)",
        )
    inwards, _, name = path.rpartition(".")
    owner = getattr(model, inwards, None) if inwards else model
    value = getattr(owner, name, None)
    if not (isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")):
        known = [field for field in dir(model) if field.startswith(("body_", "geom_", "dof_", "jnt_", "actuator_"))]
        near = did_you_mean(path, [*known, "opt.gravity", "opt.timestep", "opt.wind", "opt.viscosity", "opt.density"])
        raise ConfigError(f"the MuJoCo model has no numbers `{path}`", hint=f"did you mean `{near}`?" if near else None)
    return owner, name, value
