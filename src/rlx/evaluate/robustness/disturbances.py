"""Disturbances between a policy and its environment: noisy, shifted or frozen sensors; late, lost or repeated actions.

Each is a policy around a policy, so it works on whole batches and on every kind of environment. Sensors are disturbed
in units of their own spread in undisturbed episodes (`SpreadRecorder`). Counts and classes stay unchanged.

Not covered: with a frame stack, every frame of an observation is disturbed again at every step. Actions that are not
arrays cannot be disturbed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx.evaluate.policy import Batch, Masks, Policy, count_rows

Array = NDArray[Any]


class SpreadRecorder:
    """Observes a policy during a known number of episodes and keeps the spread of every number in its observations."""

    def __init__(self, policy: Policy, *, episodes: int) -> None:
        self._policy = policy
        self._episodes = episodes
        self._left: Array | None = None
        self._sums: list[_Sum] = []

    def predict(self, observations: Batch, *, deterministic: bool = True, masks: Masks = None) -> Array:
        """Act like the policy, and count the rows whose episode is still running."""
        rows = count_rows(observations)
        if self._left is None:
            self._left = np.array([len(range(row, self._episodes, rows)) for row in range(rows)])
        leaves = leaves_of(observations)
        self._sums = self._sums or [_Sum() for _ in leaves]
        for total, leaf in zip(self._sums, leaves, strict=True):
            total.add(np.asarray(leaf)[self._left > 0])
        return self._policy.predict(observations, deterministic=deterministic, masks=masks)

    def reset(self, finished: NDArray[np.bool_] | None = None) -> None:
        """Count one episode less for the rows that ended one."""
        if finished is not None and self._left is not None:
            self._left = self._left - np.asarray(finished)
        self._policy.reset(finished)

    def spread(self) -> list[Array | None]:
        """Return the standard deviation of every number, leaf by leaf. It is None for counts and classes."""
        return [total.spread() for total in self._sums]


class _Sum:
    """Running moments of an array's elements, relative to its first row: a large offset would cost digits."""

    def __init__(self) -> None:
        self.count = 0
        self.kind = ""

    def add(self, rows: Array) -> None:
        if not self.count:
            self.kind = _kind(rows)
            shape = rows.shape[1:]
            self.total = np.zeros(shape)
            self.squares = np.zeros(shape)
            self.first = rows[:1].astype(np.float64).sum(0)
        if not self.kind or not len(rows):
            return
        centred = rows.astype(np.float64) - self.first
        self.count += len(rows)
        self.total = self.total + centred.sum(0)
        self.squares = self.squares + (centred**2).sum(0)

    def spread(self) -> Array | None:
        if not self.kind or not self.count:
            return None
        mean = self.total / self.count
        return np.sqrt(np.maximum(0.0, self.squares / self.count - mean**2))


def _kind(rows: Array) -> str:
    """Return whether rows are `real` numbers, an `image` (8-bit integers in two or more dimensions), or neither."""
    if rows.dtype.kind == "f":
        return "real"
    if rows.dtype == np.uint8 and rows.ndim >= 3:
        return "image"
    return ""


def leaves_of(batch: Any) -> list[Any]:
    """Return the arrays of a batch, also those inside dicts and tuples, always in the same order."""
    if isinstance(batch, dict):
        return [leaf for item in batch.values() for leaf in leaves_of(item)]
    if isinstance(batch, tuple):
        return [leaf for item in batch for leaf in leaves_of(item)]
    return [batch]


def with_leaves(batch: Any, change: Callable[[int, Array], Array]) -> Any:
    """Return a batch with changed arrays. `change` gets the place of each in `leaves_of`."""
    place = -1

    def walk(item: Any) -> Any:
        nonlocal place
        if isinstance(item, dict):
            return {key: walk(part) for key, part in item.items()}
        if isinstance(item, tuple):
            return tuple(walk(part) for part in item)
        place += 1
        return change(place, np.asarray(item))

    return walk(batch)


class DisturbedPolicy:
    """A policy behind a disturbance. A subclass changes observations (`observed`) or actions (`acted`).

    `fresh` are the rows that begin an episode. `generator` belongs to this disturbance.
    """

    def __init__(self, policy: Policy, *, strength: float, seed: int) -> None:
        self._policy = policy
        self.strength = strength
        self.generator = np.random.default_rng([2_026, seed])
        self.fresh: NDArray[np.bool_] | None = None

    def predict(self, observations: Batch, *, deterministic: bool = True, masks: Masks = None) -> Array:
        """Act on disturbed observations and return disturbed actions."""
        if self.fresh is None:
            self.fresh = np.ones(count_rows(observations), dtype=np.bool_)
        seen = self.observed(observations)
        chosen = np.asarray(self._policy.predict(seen, deterministic=deterministic, masks=masks))
        applied = _allowed(self.acted(chosen), chosen, masks)
        self.fresh = np.zeros_like(self.fresh)
        return applied

    def reset(self, finished: NDArray[np.bool_] | None = None) -> None:
        """Start again in the rows whose episode ended."""
        if finished is None:
            self.fresh = None
        elif self.fresh is not None:
            self.fresh = self.fresh | finished
        self._policy.reset(finished)

    def observed(self, observations: Batch) -> Batch:
        return observations

    def acted(self, actions: Array) -> Array:
        return actions


def _allowed(applied: Array, chosen: Array, masks: Masks) -> Array:
    """Replace disturbed actions that are not allowed by the chosen ones."""
    if masks is None or chosen.ndim != 1:
        return applied
    return np.where(masks[np.arange(len(chosen)), applied.astype(np.intp)], applied, chosen)


class SensorDisturbance(DisturbedPolicy):
    """A disturbance of observations, in units of `spread` (see `SpreadRecorder`). This one changes nothing."""

    def __init__(self, policy: Policy, *, strength: float, seed: int, spread: list[Array | None]) -> None:
        super().__init__(policy, strength=strength, seed=seed)
        self.spread = spread
        self.memory: dict[int, Any] = {}  # by leaf: what a subclass keeps during an episode

    def observed(self, observations: Batch) -> Batch:
        changed: Batch = with_leaves(observations, self._leaf)
        return changed

    def _leaf(self, place: int, leaf: Array) -> Array:
        unit = self.spread[place]
        if unit is None:
            return leaf
        changed = self.changed(place, leaf, unit)
        if leaf.dtype == np.uint8:
            changed = np.clip(np.rint(changed), 0, 255)
        return changed.astype(leaf.dtype)

    def changed(self, place: int, leaf: Array, unit: Array) -> Array:
        return leaf


class SensorNoise(SensorDisturbance):
    """Adds new normal noise to every number at every step."""

    def changed(self, place: int, leaf: Array, unit: Array) -> Array:
        return leaf + self.strength * unit * self.generator.standard_normal(leaf.shape)


class SensorOffset(SensorDisturbance):
    """Shifts every number by a constant for a whole episode, randomly up or down."""

    def changed(self, place: int, leaf: Array, unit: Array) -> Array:
        is_fresh = _rows(self.fresh, leaf)
        if is_fresh.any():
            drawn = self.generator.choice((-1.0, 1.0), size=leaf.shape)
            self.memory[place] = np.where(is_fresh, drawn, self.memory.get(place, drawn))
        shifted: Array = leaf + self.strength * unit * self.memory[place]
        return shifted


class FrozenSensors(SensorDisturbance):
    """Freezes a share of the numbers, at least one, at their values from the start of the episode."""

    def changed(self, place: int, leaf: Array, unit: Array) -> Array:
        stuck, held = self.memory.get(place, (np.zeros(leaf.shape, dtype=np.bool_), leaf))
        is_fresh = _rows(self.fresh, leaf)
        if is_fresh.any():
            stuck = np.where(is_fresh, self._chosen(leaf), stuck)
            held = np.where(is_fresh, leaf, held)
            self.memory[place] = (stuck, held)
        return np.where(stuck, held, leaf)

    def _chosen(self, leaf: Array) -> Array:
        """Choose the numbers that freeze, separately for every row."""
        size = int(np.prod(leaf.shape[1:], dtype=np.int64))
        rank = self.generator.random((len(leaf), size)).argsort(axis=1).argsort(axis=1)
        return (rank < max(1, round(self.strength * size))).reshape(leaf.shape)


class ActionDisturbance(DisturbedPolicy):
    """A disturbance of actions. `neutral` is the action without a command, or None if no action is neutral."""

    def __init__(self, policy: Policy, *, strength: float, seed: int, neutral: Array | None) -> None:
        super().__init__(policy, strength=strength, seed=seed)
        self.neutral = neutral
        self.last: Array | None = None


class DelayedActions(ActionDisturbance):
    """Applies every action some steps late. Until the first arrives, it applies the neutral action or the first one."""

    def __init__(self, policy: Policy, *, strength: float, seed: int, neutral: Array | None) -> None:
        super().__init__(policy, strength=strength, seed=seed, neutral=neutral)
        self._sent: deque[Array] = deque(maxlen=int(strength) + 1)
        self._first: Array | None = None
        self._age: Array | None = None

    def acted(self, actions: Array) -> Array:
        assert self.fresh is not None
        self._sent.append(actions.copy())
        if self._first is None or self._age is None:
            self._first = actions
            self._age = np.zeros(len(actions), dtype=np.int64)
        self._first = np.where(_rows(self.fresh, actions), actions, self._first)
        self._age = np.where(self.fresh, 0, self._age + 1)
        waits = _rows(self._age < int(self.strength), actions)
        early = self._first
        if self.neutral is not None:
            early = np.broadcast_to(self.neutral, actions.shape)
        return np.where(waits, early, self._sent[0]).astype(actions.dtype)


class LostActions(ActionDisturbance):
    """Loses actions at random, and applies the neutral one instead."""

    def acted(self, actions: Array) -> Array:
        assert self.neutral is not None
        is_lost = self.generator.random(len(actions)) < self.strength
        return np.where(_rows(is_lost, actions), self.neutral, actions).astype(actions.dtype)


class RepeatedActions(ActionDisturbance):
    """Repeats the previous action at random."""

    def acted(self, actions: Array) -> Array:
        assert self.fresh is not None
        is_held = (self.generator.random(len(actions)) < self.strength) & ~self.fresh
        if self.last is None:
            self.last = actions
        self.last = np.where(_rows(is_held, actions), self.last, actions)
        return self.last


def _rows(mask: Any, like: Array) -> Array:
    """Return a mask of rows in a shape that broadcasts with an array."""
    return np.asarray(mask).reshape(-1, *([1] * (like.ndim - 1)))
