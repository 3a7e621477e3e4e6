"""Simple ways to act, to see many sides of an environment: by chance, stubbornly, by a line, by what is new."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces

from rlx.envs.inspect_record import Floats
from rlx.envs.inspect_spaces import copied

Space = spaces.Space[Any]
Policy = Callable[[Floats, Any], Any]
"""What to do, given the observation's numbers and the mask of allowed actions (None where there is none)."""


def seeded(space: Space, seed: int) -> Space:
    """Return a copy of a space with a generator of its own: the environment's stays untouched."""
    copy = deepcopy(space)
    copy.seed(seed)
    return copy


def by_chance(space: Space, seed: int, *, hold: int = 1, force: float = 1.0) -> Policy:
    """Act at random; with `hold` every action is kept for up to so many steps, with `force` a Box is used in part."""
    space, rng = seeded(space, seed), np.random.default_rng(seed)
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
    """Do the same at every step, where it is allowed."""

    def act(numbers: Floats, mask: Any) -> Any:
        if mask is not None and not mask[int(action)]:
            return np.int64(np.argmax(mask))
        return copied(action)

    return act


class Linear:
    """Scores of a standardised observation: the best discrete action, or a squashed one within the bounds."""

    def __init__(self, space: Space, center: Floats, scale: Floats, weights: Floats) -> None:
        self.space, self.center, self.scale, self.weights = space, center, scale, weights

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
            allowed = scores if mask is None else np.where(mask, scores, -np.inf)
            return np.int64(self.space.start + np.argmax(allowed))
        low, high = finite_bounds(self.space)
        squashed = low + (np.tanh(scores) + 1) / 2 * (high - low)
        return squashed.reshape(self.space.shape or ()).astype(self.space.dtype)

    @staticmethod
    def can_act(space: Space) -> bool:
        return isinstance(space, spaces.Discrete) or (
            isinstance(space, spaces.Box) and space.dtype is not None and space.dtype.kind == "f"
        )


def finite_bounds(space: Any) -> tuple[Floats, Floats]:
    """Return a Box's bounds; where there is none, -1 and 1."""
    low, high = (side.reshape(-1).astype(np.float64) for side in (space.low, space.high))
    return np.where(np.isfinite(low), low, -1.0), np.where(np.isfinite(high), high, 1.0)


class Novelty:
    """Does what was done least often where it stands; finds goals that chance does not."""

    def __init__(self, space: spaces.Discrete, seed: int) -> None:
        self.space, self.rng = space, np.random.default_rng(seed)
        self.counts: dict[bytes, Floats] = {}

    def __call__(self, numbers: Floats, mask: Any) -> Any:
        counts = self.counts.setdefault(numbers.tobytes(), np.zeros(int(self.space.n)))
        allowed = counts if mask is None else np.where(mask, counts, np.inf)
        action = int(self.rng.choice(np.flatnonzero(allowed == allowed.min())))
        counts[action] += 1
        return np.int64(self.space.start + action)
