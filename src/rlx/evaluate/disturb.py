"""Disturbances between a policy and its world: noisy, shifted or frozen sensors; late, lost or repeated actions.

Each is a policy around a policy, so it works on whole batches and on every kind of environment. Sensors are disturbed
in units of their own spread, as the policy saw them undisturbed (`Observed`); counts and classes stay as they are.

What is not covered: behind a frame stack the frames of one observation are disturbed each time anew, and actions that
are not arrays cannot be disturbed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlx.evaluate.policy import Batch, Policy, rows_of

Array = NDArray[Any]


class Observed:
    """Watches a policy play a known number of episodes and keeps the spread of every number it observes."""

    def __init__(self, policy: Policy, *, episodes: int) -> None:
        self._policy, self._episodes = policy, episodes
        self._left: Array | None = None
        self._sums: list[_Sum] = []

    def predict(
        self, observations: Batch, *, deterministic: bool = True, masks: NDArray[np.bool_] | None = None
    ) -> Array:
        """Act as the policy does, and count the rows whose episode is still being played."""
        rows = rows_of(observations)
        if self._left is None:
            self._left = np.array([len(range(row, self._episodes, rows)) for row in range(rows)])
        leaves = leaves_of(observations)
        self._sums = self._sums or [_Sum() for _ in leaves]
        for total, leaf in zip(self._sums, leaves, strict=True):
            total.add(np.asarray(leaf)[self._left > 0])
        return self._policy.predict(observations, deterministic=deterministic, masks=masks)

    def reset(self, finished: NDArray[np.bool_] | None = None) -> None:
        """Count an episode less for the rows that ended one."""
        if finished is not None and self._left is not None:
            self._left = self._left - np.asarray(finished)
        self._policy.reset(finished)

    def spread(self) -> list[Array | None]:
        """Return the standard deviation of every number, leaf by leaf; None for leaves that are counts or classes."""
        return [total.spread() for total in self._sums]


class _Sum:
    """Running moments of one array's elements, around its first row so that large offsets cost no digits."""

    def __init__(self) -> None:
        self.count = 0
        self.kind = ""

    def add(self, rows: Array) -> None:
        if not self.count:
            self.kind = _kind(rows)
            shape = rows.shape[1:]
            self.first, self.total, self.squares = np.zeros(shape), np.zeros(shape), np.zeros(shape)
            self.first = rows[0].astype(np.float64) if len(rows) else self.first
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
    """Say what can be disturbed: real numbers, and images (whole numbers of 8 bits in two dimensions or more)."""
    if rows.dtype.kind == "f":
        return "real"
    return "image" if rows.dtype == np.uint8 and rows.ndim >= 3 else ""


def leaves_of(batch: Any) -> list[Any]:
    """Return the arrays of a batch, those inside dicts and tuples too, always in the same order."""
    if isinstance(batch, dict):
        return [leaf for item in batch.values() for leaf in leaves_of(item)]
    if isinstance(batch, tuple):
        return [leaf for item in batch for leaf in leaves_of(item)]
    return [batch]


def with_leaves(batch: Any, change: Callable[[int, Array], Array]) -> Any:
    """Return a batch whose arrays are changed, each with its place in `leaves_of`."""
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


class Disturbed:
    """A policy behind a disturbance: what a subclass does to observations and to actions.

    `fresh` are the rows that begin an episode; `generator` is this disturbance's own.
    """

    def __init__(self, policy: Policy, *, strength: float, seed: int) -> None:
        self._policy, self.strength = policy, strength
        self.generator = np.random.default_rng([2_026, seed])
        self.fresh: NDArray[np.bool_] | None = None

    def predict(
        self, observations: Batch, *, deterministic: bool = True, masks: NDArray[np.bool_] | None = None
    ) -> Array:
        """Act on disturbed observations and return disturbed actions."""
        if self.fresh is None:
            self.fresh = np.ones(rows_of(observations), dtype=np.bool_)
        seen = self.observed(observations)
        chosen = np.asarray(self._policy.predict(seen, deterministic=deterministic, masks=masks))
        applied = _allowed(self.acted(chosen), chosen, masks)
        self.fresh = np.zeros_like(self.fresh)
        return applied

    def reset(self, finished: NDArray[np.bool_] | None = None) -> None:
        """Begin anew in the rows whose episode ended."""
        if finished is None:
            self.fresh = None
        elif self.fresh is not None:
            self.fresh = self.fresh | finished
        self._policy.reset(finished)

    def observed(self, observations: Batch) -> Batch:
        return observations

    def acted(self, actions: Array) -> Array:
        return actions


def _allowed(applied: Array, chosen: Array, masks: NDArray[np.bool_] | None) -> Array:
    """Take the chosen action where the disturbed one is not allowed."""
    if masks is None or chosen.ndim != 1:
        return applied
    return np.where(masks[np.arange(len(chosen)), applied.astype(np.intp)], applied, chosen)


class Sensors(Disturbed):
    """A disturbance of observations, in units of `spread` (see `Observed`)."""

    def __init__(self, policy: Policy, *, strength: float, seed: int, spread: list[Array | None]) -> None:
        super().__init__(policy, strength=strength, seed=seed)
        self.spread = spread

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
        raise NotImplementedError


class Noise(Sensors):
    """Adds normal noise to every number, anew at every step."""

    def changed(self, place: int, leaf: Array, unit: Array) -> Array:
        return leaf + self.strength * unit * self.generator.standard_normal(leaf.shape)


class Offset(Sensors):
    """Shifts every number by a constant, up or down by chance for each episode."""

    def __init__(self, policy: Policy, *, strength: float, seed: int, spread: list[Array | None]) -> None:
        super().__init__(policy, strength=strength, seed=seed, spread=spread)
        self._signs: dict[int, Array] = {}

    def changed(self, place: int, leaf: Array, unit: Array) -> Array:
        is_fresh = _rows(self.fresh, leaf)
        if is_fresh.any():
            drawn = self.generator.choice((-1.0, 1.0), size=leaf.shape)
            self._signs[place] = np.where(is_fresh, drawn, self._signs.get(place, drawn))
        return leaf + self.strength * unit * self._signs[place]


class Frozen(Sensors):
    """Holds a share of the numbers, one at least, where they were when the episode began."""

    def __init__(self, policy: Policy, *, strength: float, seed: int, spread: list[Array | None]) -> None:
        super().__init__(policy, strength=strength, seed=seed, spread=spread)
        self._held: dict[int, tuple[Array, Array]] = {}

    def changed(self, place: int, leaf: Array, unit: Array) -> Array:
        stuck, held = self._held.get(place, (np.zeros(leaf.shape, dtype=np.bool_), leaf))
        is_fresh = _rows(self.fresh, leaf)
        if is_fresh.any():
            stuck, held = np.where(is_fresh, self._chosen(leaf), stuck), np.where(is_fresh, leaf, held)
            self._held[place] = stuck, held
        return np.where(stuck, held, leaf)

    def _chosen(self, leaf: Array) -> Array:
        """Choose the numbers that freeze, in every row others."""
        size = int(np.prod(leaf.shape[1:], dtype=np.int64)) if leaf.ndim > 1 else 1
        rank = self.generator.random((len(leaf), size)).argsort(axis=1).argsort(axis=1)
        return (rank < max(1, round(self.strength * size))).reshape(leaf.shape)


class Actions(Disturbed):
    """A disturbance of actions; `neutral` is what the actuators do without a command, None where nothing is neutral."""

    def __init__(self, policy: Policy, *, strength: float, seed: int, neutral: Array | None) -> None:
        super().__init__(policy, strength=strength, seed=seed)
        self.neutral = neutral


class Delay(Actions):
    """Applies every action some steps late; before the first arrives, the neutral one, or the first where none is."""

    def __init__(self, policy: Policy, *, strength: float, seed: int, neutral: Array | None) -> None:
        super().__init__(policy, strength=strength, seed=seed, neutral=neutral)
        self._sent: deque[Array] = deque(maxlen=int(strength) + 1)
        self._first: Array | None = None
        self._age: Array | None = None

    def acted(self, actions: Array) -> Array:
        assert self.fresh is not None
        self._sent.append(actions.copy())
        self._first = np.where(_rows(self.fresh, actions), actions, actions if self._first is None else self._first)
        self._age = np.where(self.fresh, 0, 0 if self._age is None else self._age + 1)
        waits = _rows(self._age < int(self.strength), actions)
        early = self._first if self.neutral is None else np.broadcast_to(self.neutral, actions.shape)
        return np.where(waits, early, self._sent[0]).astype(actions.dtype)


class Dropout(Actions):
    """Loses actions by chance: the neutral one is applied."""

    def acted(self, actions: Array) -> Array:
        assert self.neutral is not None
        is_lost = self.generator.random(len(actions)) < self.strength
        return np.where(_rows(is_lost, actions), self.neutral, actions).astype(actions.dtype)


class Repeat(Actions):
    """Repeats the action before by chance."""

    def __init__(self, policy: Policy, *, strength: float, seed: int, neutral: Array | None) -> None:
        super().__init__(policy, strength=strength, seed=seed, neutral=neutral)
        self._last: Array | None = None

    def acted(self, actions: Array) -> Array:
        assert self.fresh is not None
        is_held = (self.generator.random(len(actions)) < self.strength) & ~self.fresh
        held = actions if self._last is None else self._last
        self._last = np.where(_rows(is_held, actions), held, actions)
        return self._last


def _rows(mask: Any, like: Array) -> Array:
    """Return a mask of rows in a shape that goes with an array."""
    return np.asarray(mask).reshape(-1, *([1] * (like.ndim - 1)))
