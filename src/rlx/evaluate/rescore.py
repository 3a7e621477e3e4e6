"""Re-scoring: what a reward function would have paid on stored trajectories.

The function is called once a step, with those of the names in `NAMES` that its parameters have; a part of a dict
observation (of the one after the step) can be named too. It returns a number, or a number and a dict of terms.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlx.envs.source import load_object, user_error
from rlx.errors import UsageError
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
class Score:
    """What a function pays for one episode: in all, by term, and in how many steps it paid no finite number."""

    total: float
    terms: Mapping[str, float] = field(default_factory=dict)
    not_finite: int = 0


def rescore(reference: str, trajectories: Sequence[Trajectory], *, root: Path) -> list[Score]:
    """Score every trajectory with the function that `path/file.py:name` refers to; it is executed here."""
    function = load_object(reference, root=root, kind="reward function")
    if not callable(function) or isinstance(function, type):
        what = "class" if isinstance(function, type) else type(function).__name__
        raise UsageError(f"`{reference}` is a {what}, not a function", hint="name a function of one step")
    names = _parameters(function, trajectories, reference)
    try:
        return [_score(function, names, one) for one in trajectories]
    except Exception as error:  # other people's code may raise anything
        raise user_error(error, root=root, doing=f"`{reference}`") from error


def _parameters(function: Callable[..., Any], trajectories: Sequence[Trajectory], reference: str) -> list[str]:
    known = [name for several in NAMES.values() for name in several]
    known += [name for name in trajectories[0].observations if name]
    found = inspect.signature(function).parameters.values()
    for one in found:
        is_open = one.default is one.empty and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
        if one.kind is one.POSITIONAL_ONLY or (is_open and one.name not in known):
            wanted = f"`{reference}` wants `{one.name}`, which no stored step has"
            raise UsageError(wanted, hint=f"known: {', '.join(known)}")
    return [one.name for one in found if one.name in known]


def _score(function: Callable[..., Any], names: Sequence[str], trajectory: Trajectory) -> Score:
    total, not_finite = 0.0, 0
    terms: dict[str, float] = {}
    for step in range(len(trajectory)):
        given = _given(trajectory, step)
        paid = function(**{name: given[name] for name in names})
        value, parts = paid if isinstance(paid, tuple) else (paid, {})
        not_finite += not math.isfinite(float(value))
        total += float(value)
        for name, part in parts.items():
            terms[name] = terms.get(name, 0.0) + float(part)
    return Score(total, terms, not_finite)


def _given(trajectory: Trajectory, step: int) -> dict[str, Any]:
    """Return everything a function can ask for about one step."""
    is_last = step == len(trajectory) - 1
    after = trajectory.observation(step + 1)
    told = {
        "observation": trajectory.observation(step),
        "next_observation": after,
        "action": trajectory.action(step),
        "info": trajectory.info(step),
        "reward": float(trajectory.rewards[step]),
        "terminated": is_last and trajectory.terminated,
        "truncated": is_last and not trajectory.terminated,
        "step": step,
    }
    parts = after if isinstance(after, dict) else {}
    return {**parts, **{name: told[what] for what, several in NAMES.items() for name in several}}
