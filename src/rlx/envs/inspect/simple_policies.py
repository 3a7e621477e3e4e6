"""Simple policies that show many sides of an environment: random, constant, linear, and looking for novelty."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces

from rlx.envs.inspect.record import Floats
from rlx.envs.inspect.space_leaves import copied

Space = spaces.Space[Any]
Policy = Callable[[Floats, Any], Any]
"""Returns an action, given the observation's numbers and the mask of allowed actions (or None)."""


def seeded(space: Space, seed: int) -> Space:
    """Return a copy of a space with its own generator, so that the environment's does not change."""
    copy = deepcopy(space)
    copy.seed(seed)
    return copy


def random_policy(space: Space, seed: int, *, hold: int = 1, force: float = 1.0) -> Policy:
    """Act at random. An action is repeated for up to `hold` steps, and `force` is the share of a Box that is used."""
    space = seeded(space, seed)
    rng = np.random.default_rng(seed)
    kept: list[Any] = []

    def act(numbers: Floats, mask: Any) -> Any:
        if mask is not None:
            return space.sample(mask)
        if not kept:
            kept.extend([_weakened(space, space.sample(), force)] * int(rng.integers(1, hold + 1)))
        return copied(kept.pop())

    return act


def _weakened(space: Space, action: Any, force: float) -> Any:
    if force == 1.0 or not isinstance(space, spaces.Box) or space.dtype is None or space.dtype.kind != "f":
        return action
    low, high = (bound.reshape(space.shape) for bound in finite_bounds(space))
    middle = (low + high) / 2
    return (middle + force * (action - middle)).astype(space.dtype)


def always(action: Any) -> Policy:
    """Do the same at every step, unless a mask forbids it."""

    def act(numbers: Floats, mask: Any) -> Any:
        if mask is not None and not mask[int(action)]:
            return np.int64(np.argmax(mask))
        return copied(action)

    return act


class Linear:
    """Scores of a standardised observation: the best discrete action, or a squashed one within the bounds."""

    def __init__(self, space: Space, center: Floats, scale: Floats, weights: Floats) -> None:
        self.space = space
        self.center = center
        self.scale = scale
        self.weights = weights

    @classmethod
    def drawn(cls, space: Space, starts: Floats, seen: Floats, rng: np.random.Generator) -> Linear:
        """Draw weights; observations are measured from the usual start, in units of how far they go from it."""
        center = starts.mean(axis=0)
        scale = np.sqrt(((seen - center) ** 2).mean(axis=0))
        rows = int(space.n) if isinstance(space, spaces.Discrete) else int(np.prod(space.shape or (1,)))
        weights = rng.normal(size=(rows, seen.shape[1] + 1)) * np.exp(rng.normal())
        weights[:, -1] *= 0.3 * (rng.random() < 0.5)
        return cls(space, center, np.where(scale > 1e-9, scale, 1.0), weights)

    def varied(self, rng: np.random.Generator) -> Linear:
        """Return a neighbour."""
        noise = rng.normal(size=self.weights.shape) * 0.4 * np.abs(self.weights).mean()
        return Linear(self.space, self.center, self.scale, self.weights + noise)

    def __call__(self, numbers: Floats, mask: Any) -> Any:
        scores = self.weights[:, :-1] @ ((numbers - self.center) / self.scale) + self.weights[:, -1]
        if isinstance(self.space, spaces.Discrete):
            allowed = np.where(_mask_or_true(mask), scores, -np.inf)
            return np.int64(self.space.start + np.argmax(allowed))
        low, high = finite_bounds(self.space)
        squashed = low + (np.tanh(scores) + 1) / 2 * (high - low)
        return squashed.reshape(self.space.shape or ()).astype(self.space.dtype)

    @staticmethod
    def can_act(space: Space) -> bool:
        return isinstance(space, spaces.Discrete) or (
            isinstance(space, spaces.Box) and space.dtype is not None and space.dtype.kind == "f"
        )


def _mask_or_true(mask: Any) -> Any:
    return True if mask is None else mask


def finite_bounds(space: Any) -> tuple[Floats, Floats]:
    """Return a Box's bounds, with -1 and 1 for missing ones."""
    low, high = (side.reshape(-1).astype(np.float64) for side in (space.low, space.high))
    return np.where(np.isfinite(low), low, -1.0), np.where(np.isfinite(high), high, 1.0)


class Novelty:
    """Takes the action that was taken least often in a state; finds goals that random actions miss."""

    def __init__(self, space: spaces.Discrete, seed: int) -> None:
        self.space = space
        self.rng = np.random.default_rng(seed)
        self.counts: dict[bytes, Floats] = {}

    def __call__(self, numbers: Floats, mask: Any) -> Any:
        counts = self.counts.setdefault(numbers.tobytes(), np.zeros(int(self.space.n)))
        allowed = np.where(_mask_or_true(mask), counts, np.inf)
        action = int(self.rng.choice(np.flatnonzero(allowed == allowed.min())))
        counts[action] += 1
        return np.int64(self.space.start + action)
