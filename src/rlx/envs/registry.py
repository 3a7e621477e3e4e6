"""Lists environments, Gymnasium's and the project's own, with spaces, horizon and threshold."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rlx.config.schema import Env
from rlx.envs.make import inspect
from rlx.envs.project_envs import own_envs
from rlx.envs.resolve_id import latest_specs, nearest
from rlx.errors import MissingExtra, NotFound, RlxError

_ELSEWHERE = "not made: nobody has trained in this folder yet (look at the file; --trust makes it)"
# Adapters that need the name of another environment.
_SHIMS = frozenset({"GymV21Environment-v0", "GymV26Environment-v0"})


@dataclass(frozen=True)
class EnvRow:
    """One environment; `problem` and `hint` say why it cannot be made here, and what would help."""

    id: str
    is_own: bool
    observation: str | None = None
    action: str | None = None
    horizon: int | None = None
    threshold: float | None = None
    is_installed: bool = True
    problem: str | None = None
    hint: str | None = None


def listing(pattern: str | None, *, root: Path, include_old: bool = False, makes_own: bool = True) -> list[EnvRow]:
    """Return the environments whose id matches; each of them is made once to read its spaces.

    Without `makes_own`, the project's own are only named: making one executes its file.
    """
    own = [env.id for env in own_envs(root)]
    known = sorted(set(gymnasium.registry if include_old else latest_specs()) - _SHIMS)
    chosen = [env_id for env_id in [*own, *known] if matches(env_id, pattern)]
    if not chosen:
        raise _nothing(pattern or "*", root)
    unmade = EnvRow("", is_own=True, problem=_ELSEWHERE, hint="--trust")
    rows = []
    for env_id in chosen:
        if env_id in own and not makes_own:
            rows.append(replace(unmade, id=env_id))
        else:
            rows.append(row(env_id, root=root, is_own=env_id in own))
    return rows


def matches(env_id: str, pattern: str | None) -> bool:
    """Match without case: a part of the id, or a glob over all of it."""
    if not pattern:
        return True
    text = env_id.lower()
    pattern = pattern.lower()
    return fnmatch.fnmatchcase(text, pattern) if set("*?[") & set(pattern) else pattern in text


def _nothing(pattern: str, root: Path) -> NotFound:
    if any(matches(env_id, pattern) for env_id in gymnasium.registry):
        hint = f"only older versions do: rlx envs '{pattern}' --all"
    else:
        near = nearest(pattern.strip("*"), root=root)
        hint = f"did you mean `{near}`?" if near else "rlx envs lists them all"
    return NotFound(f"no environment matches `{pattern}`", hint=hint)


def row(env_id: str, *, root: Path, is_own: bool = False) -> EnvRow:
    """Make an environment and return its row, or the reason why it cannot be made."""
    spec = gymnasium.registry.get(env_id)
    horizon = getattr(spec, "max_episode_steps", None)
    threshold = getattr(spec, "reward_threshold", None)
    try:
        facts = inspect(Env(id=env_id), root=root)
    except RlxError as error:
        is_missing = isinstance(error, MissingExtra)
        return EnvRow(
            env_id, is_own, horizon=horizon, threshold=threshold, is_installed=not is_missing,
            problem=error.message, hint=error.hint,
        )  # fmt: skip
    return EnvRow(
        env_id,
        is_own,
        observation=describe(facts.observation_space),
        action=describe(facts.action_space),
        horizon=facts.horizon,
        threshold=facts.reward_threshold,
    )


def describe(space: gymnasium.Space[Any]) -> str:
    """Name a space in a few words: `Box(3) in [-2, 2]`, `Discrete(4)`, `Dict(image: …, goal: …)`."""
    if isinstance(space, spaces.Box):
        return _describe_box(space)
    if isinstance(space, spaces.Discrete):
        return f"Discrete({space.n})" if space.start == 0 else f"Discrete({space.n}) from {space.start}"
    if isinstance(space, spaces.MultiDiscrete):
        return f"MultiDiscrete({', '.join(str(int(n)) for n in np.ravel(space.nvec))})"
    if isinstance(space, spaces.MultiBinary):
        return f"MultiBinary({_size(space.shape)})"
    if isinstance(space, spaces.Dict):
        return f"Dict({', '.join(f'{key}: {describe(part)}' for key, part in space.spaces.items())})"
    if isinstance(space, spaces.Tuple):
        return f"Tuple({', '.join(describe(part) for part in space.spaces)})"
    return type(space).__name__


def _describe_box(space: spaces.Box) -> str:
    kind = "" if space.dtype == np.float32 else f" {space.dtype}"
    low = np.unique(space.low)
    high = np.unique(space.high)
    is_even = low.size == 1 and high.size == 1 and np.isfinite([low[0], high[0]]).all()
    bounds = f" in [{float(low[0]):g}, {float(high[0]):g}]" if is_even else ""
    return f"Box({_size(space.shape)}){kind}{bounds}"


def _size(shape: tuple[int, ...]) -> str:
    return "×".join(str(size) for size in shape)
