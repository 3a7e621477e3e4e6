"""Resolves environment ids: the registered environment, the package it needs, and suggestions for unknown ids."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import gymnasium
from gymnasium.envs.registration import EnvSpec

from rlx.envs.foreign_call import ForeignError, call_foreign
from rlx.envs.import_object import user_error
from rlx.envs.project_envs import own_envs
from rlx.errors import ConfigError, MissingExtra, NotFound, did_you_mean

# What a group of environments needs: the package, how to install it, the module prefix of its entry points.
_NEEDS = (
    ("gymnasium.envs.box2d", "Box2D", "box2d"),
    ("gymnasium.envs.mujoco", "mujoco", "mujoco"),
    ("gymnasium.envs.phys2d", "jax", None),
    ("gymnasium.envs.tabular", "jax", None),
)
# Packages that register their environments when imported: id prefix, module, what to install.
_PROVIDERS = (
    ("ALE/", "ale_py", "ale-py"),
    ("MiniGrid-", "minigrid", "minigrid"),
    ("BabyAI-", "minigrid", "minigrid"),
    ("MiniWorld-", "miniworld", "miniworld"),
    ("highway-", "highway_env", "highway-env"),
    ("Fetch", "gymnasium_robotics", "gymnasium-robotics"),
    ("HandManipulate", "gymnasium_robotics", "gymnasium-robotics"),
    ("PointMaze", "gymnasium_robotics", "gymnasium-robotics"),
    ("AntMaze", "gymnasium_robotics", "gymnasium-robotics"),
    ("Adroit", "gymnasium_robotics", "gymnasium-robotics"),
    ("Meta-World/", "metaworld", "metaworld"),
    ("dm_control/", "shimmy", "shimmy[dm-control]"),
)


def is_installed(module: str) -> bool:
    """Return whether a module can be imported, without importing it."""
    return importlib.util.find_spec(module) is not None


def spec_of(env_id: str, *, root: Path) -> EnvSpec:
    """Return the registered spec of an id, or raise an error that suggests an id."""
    if env_id not in gymnasium.registry:
        _import_provider(env_id)
    if env_id not in gymnasium.registry:
        raise unknown(env_id, root)
    return gymnasium.registry[env_id]


def _import_provider(env_id: str) -> None:
    for prefix, module, _ in _PROVIDERS:
        if env_id.startswith(prefix):
            if not is_installed(module):
                refuse_missing(env_id)
            provider = importlib.import_module(module)
            if module == "ale_py":
                gymnasium.register_envs(provider)


def refuse_missing(env_id: str) -> NoReturn:
    """Raise an error that says which package an id needs."""
    name = env_id.rpartition(":")[2]
    package = next((package for prefix, _, package in _PROVIDERS if name.startswith(prefix)), env_id.partition(":")[0])
    error = MissingExtra(package, extra="", why=f"environment `{env_id}`")
    error.hint = f"pip install '{package}'"
    raise error


def unknown(env_id: str, root: Path) -> NotFound:
    """Return the error for an unregistered id, with a suggestion."""
    near = nearest(env_id, root=root)
    hint = f"did you mean `{near}`?" if near else "rlx envs"
    return NotFound(f"no environment `{env_id}`", hint=hint)


def nearest(env_id: str, *, root: Path) -> str | None:
    """Return the most likely id: the newest version of the same name, a near name, or a class of the project."""
    specs = sorted(latest_specs().values(), key=lambda spec: spec.namespace is None)  # plain names win
    newest = {spec.name.lower(): spec.id for spec in specs}
    newest |= {own.id.rpartition(":")[2].lower(): own.id for own in own_envs(root)}
    newest |= {f"{spec.namespace}/{spec.name}".lower(): spec.id for spec in specs if spec.namespace}
    name = re.sub(r"-v\d+$", "", env_id.lower())
    near = next((known for known in (name, f"{name}env") if known in newest), None) or did_you_mean(name, list(newest))
    return newest[near] if near else None


def latest_specs() -> dict[str, EnvSpec]:
    """Return the newest version of every registered environment, by id."""
    newest: dict[tuple[str | None, str], EnvSpec] = {}
    for spec in gymnasium.registry.values():
        key = (spec.namespace, spec.name)
        if key not in newest or (spec.version or 0) > (newest[key].version or 0):
            newest[key] = spec
    return {spec.id: spec for spec in newest.values()}


def creator_of(spec: EnvSpec, root: Path) -> Callable[..., Any]:
    """Import the class or function that makes the environment; name the extra if its package is missing."""
    if callable(spec.entry_point):
        return spec.entry_point
    if spec.entry_point is None:
        raise ConfigError(f"`{spec.id}` can only be made as a vector environment")
    module, _, name = spec.entry_point.partition(":")
    try:
        creator: Callable[..., Any] = call_foreign(lambda: getattr(importlib.import_module(module), name))
    except ForeignError as error:
        missing = missing_package(error.cause, f"`{spec.id}`", module)
        raise missing or user_error(error.cause, root=root, doing=f"importing `{spec.id}`") from error.cause
    return creator


def missing_package(error: BaseException, label: str, module: str) -> MissingExtra | None:
    """Return the package that an import or a constructor of `label` needed, if that is why it failed."""
    why = f"environment {label}"
    if isinstance(error, (gymnasium.error.DependencyNotInstalled, ImportError)):
        for prefix, package, extra in _NEEDS:
            if module.startswith(prefix):
                missing = MissingExtra(package, extra=extra or "", why=why)
                if extra is None:
                    missing.hint = f"pip install {package}"
                return missing
    if isinstance(error, gymnasium.error.DependencyNotInstalled):
        missing = MissingExtra("another package", extra="", why=why)
        missing.hint = " ".join(str(error).split())
        return missing
    return None
