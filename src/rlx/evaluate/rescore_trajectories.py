"""Rescoring: compute the reward that a function would have given on stored trajectories.

The function is called once per step with those of the `NAMES` that are among its parameters. It can also name a part of
a dict observation (of the one after the step). It returns a number, or a number and a dict of terms.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlx.envs.import_object import load_object, user_error
from rlx.errors import UsageError
from rlx.evaluate.foreign_code import ForeignCode
from rlx.evaluate.trajectory import Trajectory

NAMES = {
    "observation": ("observation", "obs", "state"),
    "next_observation": ("next_observation", "next_obs", "next_state"),
    "action": ("action",),
    "info": ("info",),
    "reward": ("reward",),
    "terminated": ("terminated",),
    "truncated": ("truncated",),
    "step": ("step",),
}


@dataclass(frozen=True)
class RescoredEpisode:
    """The reward of one episode: its total, its terms, and the number of steps without a finite reward."""

    total: float
    terms: Mapping[str, float] = field(default_factory=dict)
    not_finite: int = 0


def rescore(reference: str, trajectories: Sequence[Trajectory], *, root: Path) -> list[RescoredEpisode]:
    """Score every trajectory with the function `path/file.py:name`, which runs in this process."""
    function = load_object(reference, root=root, kind="reward function")
    if isinstance(function, type) or not callable(function):
        kind = "class" if isinstance(function, type) else type(function).__name__
        raise UsageError(f"`{reference}` is a {kind}, not a function", hint="name a function of one step")
    names = _parameters(function, trajectories, reference)
    episodes: list[RescoredEpisode] = []
    with ForeignCode(lambda error: user_error(error, root=root, doing=f"`{reference}`")):
        episodes = [_rescore(function, names, trajectory) for trajectory in trajectories]
    return episodes


def _parameters(function: Callable[..., Any], trajectories: Sequence[Trajectory], reference: str) -> list[str]:
    known = [name for aliases in NAMES.values() for name in aliases]
    known += [name for name in trajectories[0].observations if name]
    parameters = inspect.signature(function).parameters.values()
    for parameter in parameters:
        by_name = (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        is_required = parameter.default is parameter.empty and parameter.kind in by_name
        if parameter.kind is parameter.POSITIONAL_ONLY or (is_required and parameter.name not in known):
            message = f"`{reference}` needs `{parameter.name}`, which no stored step has"
            raise UsageError(message, hint=f"known: {', '.join(known)}")
    return [parameter.name for parameter in parameters if parameter.name in known]


def _rescore(function: Callable[..., Any], names: Sequence[str], trajectory: Trajectory) -> RescoredEpisode:
    total = 0.0
    not_finite = 0
    terms: dict[str, float] = {}
    for step in range(len(trajectory)):
        values = _step_values(trajectory, step)
        reward = function(**{name: values[name] for name in names})
        parts: Mapping[str, Any] = {}
        if isinstance(reward, tuple):
            reward, parts = reward
        not_finite += not math.isfinite(float(reward))
        total += float(reward)
        for name, part in parts.items():
            terms[name] = terms.get(name, 0.0) + float(part)
    return RescoredEpisode(total, terms, not_finite)


def _step_values(trajectory: Trajectory, step: int) -> dict[str, Any]:
    """Return everything that a function can use about one step."""
    is_last = step == len(trajectory) - 1
    after = trajectory.observation(step + 1)
    values = {
        "observation": trajectory.observation(step),
        "next_observation": after,
        "action": trajectory.action(step),
        "info": trajectory.info(step),
        "reward": float(trajectory.rewards[step]),
        "terminated": is_last and trajectory.terminated,
        "truncated": is_last and not trajectory.terminated,
        "step": step,
    }
    named = {alias: values[name] for name, aliases in NAMES.items() for alias in aliases}
    if isinstance(after, dict):
        return {**after, **named}
    return named
