"""The network: one hidden layer, and how it is saved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from courier.world import ACTION_SIZE, OBSERVATION_SIZE


def size(hidden: int) -> int:
    """Return how many numbers a network has."""
    return OBSERVATION_SIZE * hidden + hidden + hidden * ACTION_SIZE + ACTION_SIZE


def act(flat: np.ndarray, observations: np.ndarray, hidden: int) -> np.ndarray:
    """Return the actions of many networks (rows of `flat`), each in worlds of its own (networks × worlds × values)."""
    sizes = (OBSERVATION_SIZE * hidden, hidden, hidden * ACTION_SIZE, ACTION_SIZE)
    first, bias, second, shift = np.split(flat, np.cumsum(sizes)[:-1], axis=1)
    count = len(flat)
    layer = np.tanh(observations @ first.reshape(count, OBSERVATION_SIZE, hidden) + bias[:, None])
    return layer @ second.reshape(count, hidden, ACTION_SIZE) + shift[:, None]


def save(path: Path, flat: np.ndarray, hidden: int) -> None:
    """Write a network as plain arrays."""
    np.savez(path, flat=flat, hidden=np.int64(hidden))


def load(path: str | Path) -> Callable[[np.ndarray], np.ndarray]:
    """Return a saved network as a function from an observation to an action."""
    with np.load(path, allow_pickle=False) as stored:
        flat, hidden = stored["flat"][None], int(stored["hidden"])
    return lambda observation: np.clip(act(flat, np.asarray(observation)[None, None], hidden)[0, 0], -1.0, 1.0)
