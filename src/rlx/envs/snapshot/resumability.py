"""Tests whether an environment can be resumed exactly."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from rlx.envs.foreign_call import ForeignError, call_foreign
from rlx.envs.global_rng import GlobalGenerators, global_generators_kept
from rlx.envs.snapshot.capture import AnyEnv, State, capture
from rlx.envs.snapshot.outside_state import frozen, hidden_state
from rlx.envs.snapshot.restore import restore
from rlx.envs.snapshot.snapshot_diff import differences, same
from rlx.errors import RlxError

SEED = 7
WARM_STEPS = 24
STEPS = 64
STEPS_AFTER_RESET = 8
BUDGET_SECONDS = 10.0


@dataclass(frozen=True)
class Probe:
    """The result; `missing` is the reason if the resume is not exact, otherwise empty."""

    is_exact: bool
    missing: str


def probe(make: Callable[[], AnyEnv]) -> Probe:
    """Step one instance, restore its state into a fresh one, step both alike, and compare all their results.

    It raises no errors of the environment, and keeps the global random generators. Not covered: state that shows only
    after more steps, and the order of sets of strings, which differs between processes.
    """
    made: list[AnyEnv] = []

    def fresh() -> AnyEnv:
        made.append(make())
        return made[-1]

    with global_generators_kept(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            missing = call_foreign(lambda: _try_out(fresh))
        except RlxError as error:
            missing = error.message
        except ForeignError as error:
            missing = f"the environment raised {error}"
        finally:
            for env in made:
                with contextlib.suppress(Exception):
                    env.close()
    return Probe(is_exact=not missing, missing=missing)


def _try_out(fresh: Callable[[], AnyEnv]) -> str:
    """Return the reason why a resume is not exact, or an empty string."""
    first = fresh()
    beginning = GlobalGenerators.now()
    script = _Script(first.action_space)
    _begin(first, script)
    state = capture(first)
    middle = GlobalGenerators.now()
    hidden = hidden_state(first)
    seen = _continue(first, script)
    changed = _changed(hidden, hidden_state(first))
    if changed:
        return f"{changed} changes while stepping, and is not part of the environment"
    second = fresh()
    middle.put_back()
    restore(second, state)
    unequal = differences(state, capture(second))
    if unequal:
        return f"`{unequal[0]}` is not the same after restoring"
    odd = seen.differences(_continue(second, script.again(start=1)))
    if not odd:
        return ""
    return _explain(odd, seen, fresh, beginning, script.again())


def _explain(
    odd: list[str], seen: _Trace, fresh: Callable[[], AnyEnv], beginning: GlobalGenerators, script: _Script
) -> str:
    """Distinguish a failed restore from an environment that is not deterministic, and from a clock in its infos."""
    third = fresh()
    beginning.put_back()
    _begin(third, script)
    noise = seen.differences(_continue(third, script))
    if any(name in _OUTCOMES for name in noise):
        return f"the environment is not deterministic: the same seed and actions gave another {noise[0]}"
    left = [name for name in odd if name not in noise]
    return f"a restored environment continues differently: another {left[0]}" if left else ""


_OUTCOMES = ("observation", "reward", "terminated", "truncated", "first observation")


@dataclass
class _Trace:
    """What an environment showed: every outcome and info, and its state at the end."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    end: State = field(default_factory=dict)

    def differences(self, other: _Trace) -> list[str]:
        """Return the names of what differs, outcomes first, then infos, then attributes."""
        different: dict[str, None] = {}
        for left, right in zip(self.steps, other.steps, strict=False):
            for name in {**left, **right}:
                if not same(left.get(name), right.get(name)):
                    different[name] = None
        if len(self.steps) != len(other.steps):
            different["episode length"] = None
        ordered = sorted(different, key=lambda name: name not in _OUTCOMES)
        return [*ordered, *(f"`{name}`" for name in differences(self.end, other.end))]


class _Script:
    """The actions of a trial, in segments: drawn the first time, the same ones again for every later instance."""

    def __init__(self, space: gymnasium.Space[Any], segments: list[list[Any]] | None = None) -> None:
        self.space = deepcopy(space)  # the environment's own generators stay untouched
        self.space.seed(SEED)
        self.segments: list[list[Any]] = []
        self.recorded = segments
        self.deadline = time.monotonic() + BUDGET_SECONDS

    def again(self, *, start: int = 0) -> _Script:
        """Return the same actions from a segment on."""
        return _Script(self.space, self.segments[start:])

    def segment(self, env: AnyEnv, count: int) -> Iterator[Any]:
        """Yield the next segment's actions: up to `count` new ones while time lasts, or those recorded."""
        if self.recorded is not None:
            yield from deepcopy(self.recorded.pop(0))
            return
        drawn: list[Any] = []
        self.segments.append(drawn)
        while len(drawn) < count and (not drawn or time.monotonic() < self.deadline):
            drawn.append(self.space.sample(_mask(env)))
            yield deepcopy(drawn[-1])


def _mask(env: AnyEnv) -> Any:
    """Return the mask of allowed actions, if the environment has one and the space takes it."""
    if isinstance(env, VectorEnv):
        is_discrete = isinstance(env.single_action_space, gymnasium.spaces.Discrete)
        envs = getattr(env, "envs", None)
        if not is_discrete or not envs or not envs[0].has_wrapper_attr("action_masks"):
            return None
        return tuple(_mask(single) for single in envs)
    if isinstance(env.action_space, gymnasium.spaces.Discrete) and env.has_wrapper_attr("action_masks"):
        return np.asarray(env.get_wrapper_attr("action_masks")(), dtype=np.int8)
    return None


def _begin(env: AnyEnv, script: _Script) -> None:
    """Bring an environment into the middle of an episode."""
    env.reset(seed=SEED)
    for action in script.segment(env, WARM_STEPS):
        _step(env, action)


def _continue(env: AnyEnv, script: _Script) -> _Trace:
    """Step on, through at least one reset, and keep everything that is seen."""
    trace = _Trace()
    for action in script.segment(env, STEPS):
        trace.steps.append(_step(env, action))
    trace.steps.append(_shown_by_reset(env.reset()))
    for action in script.segment(env, STEPS_AFTER_RESET):
        trace.steps.append(_step(env, action))
    trace.end = capture(env)
    return trace


def _step(env: AnyEnv, action: Any) -> dict[str, Any]:
    observation, reward, terminated, truncated, info = env.step(action)
    shown = {"observation": frozen(observation), "reward": frozen(reward), **_named(info)}
    shown |= {"terminated": frozen(terminated), "truncated": frozen(truncated)}
    ended = np.logical_or(terminated, truncated)
    if not isinstance(env, VectorEnv) and ended:
        shown |= _shown_by_reset(env.reset())
    elif ended.any() and env.metadata.get("autoreset_mode") == AutoresetMode.DISABLED:
        shown |= _shown_by_reset(env.reset(options={"reset_mask": ended}))
    return shown


def _shown_by_reset(result: tuple[Any, dict[str, Any]]) -> dict[str, Any]:
    return {"first observation": frozen(result[0]), **_named(result[1], prefix="first info")}


def _named(info: dict[str, Any], *, prefix: str = "info") -> dict[str, Any]:
    """Give every value in a nested info its own name."""
    named: dict[str, Any] = {}
    for key, value in info.items():
        name = f"{prefix}[{key!r}]"
        if isinstance(value, dict):
            named |= _named(value, prefix=name)
        else:
            named[name] = frozen(value)
    return named


def _changed(before: dict[str, Any], after: dict[str, Any]) -> str | None:
    """Return the first name that stands for something else; one that is gone was taken into the environment."""
    return next((name for name in before if name in after and not same(before[name], after[name])), None)
