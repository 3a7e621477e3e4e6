"""Plays an environment and checks every call: its results, its side effects, its errors and its cost."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rlx.envs.foreign_call import ForeignError, call_foreign
from rlx.envs.import_object import where
from rlx.envs.inspect.deadline import Deadline, OutOfTime
from rlx.envs.inspect.record import Oddity, brief
from rlx.envs.inspect.space_leaves import copied, part, spelled
from rlx.envs.snapshot.snapshot_diff import same
from rlx.envs.spaces import leaves

AnyEnv = gymnasium.Env[Any, Any]
ROUNDING = 1e-5
"""How far a number may lie beyond a bound, relative to it, because of rounding."""


HANGS = "hangs"


class Broken(Exception):
    """The environment raised, or returned something unusable; the notebook has the details."""


@dataclass
class Notebook:
    """Notes of an inspection: oddities by kind and place, counts, and time spent."""

    deadline: Deadline
    root: Path
    seen: dict[tuple[str, str], Oddity] = field(default_factory=dict)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    steps: int = 0
    resets: int = 0
    step_seconds: float = 0.0
    reset_seconds: float = 0.0
    make_seconds: float = 0.0

    def note(self, kind: str, where: str, shown: str, *, at: Player | None = None) -> None:
        """Count an oddity, and keep the first of its kind and place."""
        self.counts[kind, where] += 1
        if (kind, where) not in self.seen:
            oddity = Oddity(kind, where, shown, 0, 0, "", 1, 1)
            if at is not None:
                oddity = replace(oddity, seed=at.seed, step=at.step_number, policy=at.policy)
            self.seen[kind, where] = oddity

    def adopt_hangs(self, other: Notebook) -> None:
        """Count the calls that did not return in another notebook."""
        for key, oddity in other.seen.items():
            if oddity.kind == HANGS:
                self.seen.setdefault(key, oddity)
                self.counts[key] += other.counts[key]

    def oddities(self) -> tuple[Oddity, ...]:
        """Return the oddities, each with its count and the number of calls."""
        calls = max(self.steps + self.resets, 1)
        oddities = []
        for key, oddity in self.seen.items():
            count = self.counts[key]
            # `calls` lacks the calls that raised, so an oddity that raises may be more frequent
            oddities.append(replace(oddity, count=count, of=max(calls, count)))
        return tuple(oddities)


@dataclass(frozen=True)
class StepResult:
    """The result of one step."""

    observation: Any
    reward: float
    terminated: bool
    truncated: bool

    @property
    def ended(self) -> bool:
        return self.terminated or self.truncated


def _takes_seed_and_options(reset: Callable[..., Any]) -> bool:
    """Say whether `reset` has the arguments that Gymnasium passes."""
    try:
        inspect.signature(reset).bind(seed=0, options=None)
    except TypeError:
        return False
    except ValueError:  # compiled code may have no signature
        return True
    return True


class Player:
    """One instance of the environment whose calls are all checked."""

    def __init__(self, make: Callable[[], AnyEnv], notebook: Notebook, *, policy: str = "random") -> None:
        self.notebook = notebook
        self.policy = policy
        self.seed = 0
        self.step_number = 0
        self.age = 0
        began = time.perf_counter()
        self.env: AnyEnv = self.watched("making", make)
        notebook.make_seconds = notebook.make_seconds or time.perf_counter() - began
        self._leaves = list(leaves(self.env.observation_space))
        self._kept: tuple[Any, Any] | None = None

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.env.close()

    def reset(self, seed: int | None) -> Any:
        """Begin an episode and return its first observation."""
        if seed is not None:
            self.seed = seed
        self.step_number = 0
        began = time.perf_counter()
        result = self.watched("reset", lambda: self.env.reset(seed=seed))
        self.notebook.resets += 1
        self.notebook.reset_seconds += time.perf_counter() - began
        if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[1], dict):
            self._refuse("reset tuple", "reset", f"a {_kind(result)}")
        return self._watch_observation(result[0], "reset")

    def step(self, action: Any) -> StepResult:
        """Take one step."""
        before = copied(action)
        began = time.perf_counter()
        result = self.watched("step", lambda: self.env.step(action))
        self.notebook.step_seconds += time.perf_counter() - began
        self.notebook.steps += 1
        self.step_number += 1
        self.age += 1
        if not isinstance(result, tuple) or len(result) != 5 or not isinstance(result[4], dict):
            self._refuse("step tuple", "step", f"a {_kind(result)}")
        observation, reward, terminated, truncated, _ = result
        if not same(before, action):
            self.note("action changed", "action", f"{brief(before)} became {brief(action)}")
        kept = self._watch_observation(observation, "step")
        return StepResult(kept, self._watch_reward(reward), *self._watch_ends(terminated, truncated))

    def mask(self) -> Any:
        """Return the mask of allowed actions of a Discrete space, if the environment has one."""
        if not self.env.has_wrapper_attr("action_masks"):
            return None
        mask = np.asarray(self.watched("action_masks", self.env.get_wrapper_attr("action_masks")))
        space = self.env.action_space
        if not isinstance(space, spaces.Discrete):
            return None
        if mask.shape != (int(space.n),):
            self._refuse("mask shape", "action_masks", f"shape {mask.shape} for {int(space.n)} actions")
        if not mask.any():
            self._refuse("mask empty", "action_masks", "no action is allowed")
        return mask.astype(np.int8)

    def overwrite_observation(self) -> None:
        """Overwrite the arrays of the last observation, as the code that receives them may."""
        if self._kept is None:
            return
        for path, _ in self._leaves:
            value = part(self._kept[0], path)
            if isinstance(value, np.ndarray) and value.flags.writeable:
                value[...] = 0
        self._kept = None

    def note(self, kind: str, where: str, shown: str) -> None:
        self.notebook.note(kind, where, shown, at=self)

    def _refuse(self, kind: str, where: str, shown: str) -> None:
        self.note(kind, where, shown)
        raise Broken

    def watched(self, doing: str, call: Callable[[], Any]) -> Any:
        """Call foreign code, which may raise anything or not return."""
        try:
            return self.notebook.deadline.call(lambda: call_foreign(call))
        except OutOfTime as late:
            if late.seconds:
                self.notebook.note(HANGS, doing, f"{late.seconds:.1f} s", at=self if doing != "making" else None)
            raise
        except ForeignError as error:
            place = where(error.cause, root=self.notebook.root)
            kind = "raised"
            if doing == "reset" and not _takes_seed_and_options(self.env.unwrapped.reset):
                kind = "reset arguments"
            self.notebook.note(kind, doing, f"{place}: {error}" if place else str(error), at=self)
            raise Broken from error.cause

    def _watch_reward(self, reward: Any) -> float:
        if np.size(reward) != 1 or np.asarray(reward).dtype.kind not in "biuf":
            self._refuse("reward type", "reward", f"a {_kind(reward)}")
        if np.ndim(reward) or isinstance(reward, (bool, np.bool_)):
            self.note("reward type", "reward", f"a {_kind(reward)}")
        number = float(np.asarray(reward).reshape(-1)[0])
        if not np.isfinite(number):
            self.note("not finite", "reward", str(number))
        return number

    def _watch_ends(self, *flags: Any) -> tuple[bool, bool]:
        for name, flag in zip(("terminated", "truncated"), flags, strict=True):
            if not isinstance(flag, (bool, np.bool_)):
                self.note("flag type", name, f"a {_kind(flag)}")
        return bool(flags[0]), bool(flags[1])

    def _watch_observation(self, observation: Any, source: str) -> Any:
        """Check an observation, and that the last one has not changed, and return a copy."""
        if self._kept is not None and not same(*self._kept):
            now, before = self._kept
            self.note("aliased", source, f"{brief(before)} became {brief(now)}")
        for path, leaf in self._leaves:
            try:
                value = part(observation, path)
            except (KeyError, IndexError, TypeError):
                self._refuse("observation shape", spelled("observation", path), f"not in {brief(observation)}")
            self._watch_leaf(value, leaf, spelled("observation", path))
        if isinstance(observation, np.ndarray) and observation.dtype.kind == "O":  # as vectors hold last observations
            self._kept = None
            return np.array(observation.tolist(), dtype=np.float64)
        copy = copied(observation)
        self._kept = (observation, copy)
        return copy

    def _watch_leaf(self, value: Any, leaf: Any, name: str) -> None:
        if isinstance(leaf, spaces.Box):
            self._watch_box(value, leaf, name)
        elif value not in leaf:
            self.note("outside", name, f"{brief(value)} is not in {leaf}")

    def _watch_box(self, value: Any, leaf: spaces.Box, name: str) -> None:
        if not isinstance(value, (np.ndarray, np.generic)):
            self.note("observation type", name, f"a {_kind(value)}")
            value = np.asarray(value, dtype=np.float64)
        if value.shape != leaf.shape:
            self._refuse("observation shape", name, f"shape {value.shape}, its space has {leaf.shape}")
        if value.dtype != leaf.dtype:
            self.note("dtype", name, f"{value.dtype}, its space has {leaf.dtype}")
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            bad = int(np.argmin(np.isfinite(value).reshape(-1)))
            self.note("not finite", name, f"{value.reshape(-1)[bad]} at index {bad}")
        elif not ((value >= leaf.low) & (value <= leaf.high)).all():
            self._watch_bounds(value.reshape(-1), leaf, name)

    def _watch_bounds(self, value: Any, leaf: spaces.Box, name: str) -> None:
        low = leaf.low.reshape(-1).astype(np.float64)
        high = leaf.high.reshape(-1).astype(np.float64)
        beyond = np.maximum(low - value, value - high)
        worst = int(np.argmax(beyond))
        bound = min(low[worst], high[worst], key=lambda bound: abs(bound - value[worst]))
        if beyond[worst] > ROUNDING * max(abs(bound), 1e-3):
            if value.size > 1:
                name = f"{name}[{worst}]"
            self.note("outside", name, f"{value[worst]:.5g}, beyond [{low[worst]:.5g}, {high[worst]:.5g}]")


def _kind(value: Any) -> str:
    if isinstance(value, tuple):
        return f"tuple of {len(value)} ({', '.join(type(item).__name__ for item in value)})"
    if isinstance(value, np.ndarray):
        return f"NumPy array of shape {value.shape}"
    return type(value).__name__
