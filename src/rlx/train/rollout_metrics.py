"""Metrics about the data that a policy learns from, for diagnosis: functions from arrays to a few numbers.

Observations are as the network receives them, rewards as the environment gives them, actions as they were chosen.
A metric that has no meaning for the data is left out.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
AT_BOUND = 0.01  # share of a component's range: squashed actions come close to their bounds without reaching them
MOST_NUMBERS = 2**20  # numbers of observations that one row looks at


def episodes(returns: Sequence[float], lengths: Sequence[int], truncated: Sequence[float]) -> dict[str, float]:
    """Return means of recent episodes; `truncated` has a 1 for each truncated episode and a 0 for the others."""
    if not returns:
        return {}
    row = {
        "rollout/return_mean": math.fsum(returns) / len(returns),
        "rollout/return_std": float(np.std(returns)),
        "rollout/length_mean": math.fsum(lengths) / len(lengths),
    }
    if truncated:
        row["rollout/truncated_share"] = math.fsum(truncated) / len(truncated)
    return row


def observations(numbers: Array, choices: Array) -> dict[str, float]:
    """Return metrics of a network's inputs, one row per step: numbers, and choices by their index."""
    rows = len(numbers)
    dims = numbers.shape[1] + choices.shape[1]
    if not rows or not dims:
        return {}
    stride = math.ceil(rows * dims / MOST_NUMBERS)
    numbers = numbers[::stride]
    choices = choices[::stride]
    low = numbers.min(axis=0)
    high = numbers.max(axis=0)
    varies = low < high
    constant = dims - np.count_nonzero(varies) - np.count_nonzero((choices != choices[0]).any(axis=0))
    row = {"obs/constant_share": constant / dims}
    if numbers.shape[1]:
        row["obs/max_abs"] = max(-float(low.min()), float(high.max()))
    if varies.any():
        std = numbers[:, varies].std(axis=0, dtype=np.float64)
        row["obs/std_ratio"] = float(std.max() / std.min())
    return row


def rewards(values: Array) -> dict[str, float]:
    """Return metrics of single steps' rewards, before normalisation."""
    if not values.size:
        return {}
    sizes = np.abs(values)
    return {
        "reward/mean_abs": float(sizes.mean(dtype=np.float64)),
        "reward/std": float(values.std(dtype=np.float64)),
        "reward/max_abs": float(sizes.max()),
        "reward/nonzero_share": np.count_nonzero(values) / values.size,
    }


def choices(actions: Array, sizes: Sequence[int]) -> dict[str, float]:
    """Return metrics of discrete actions (rows, components); each component is one of `sizes` choices."""
    if not len(actions):
        return {}
    columns = zip(actions.T.astype(np.intp), sizes, strict=True)
    counts = [np.bincount(column, minlength=size) for column, size in columns]
    unused = sum(int(np.count_nonzero(count == 0)) for count in counts)
    return {
        "action/top_share": float(max(count.max() for count in counts)) / len(actions),
        "action/unused_share": unused / sum(sizes),
    }


def box_actions(actions: Array, low: Array, high: Array) -> dict[str, float]:
    """Return the share of continuous actions (rows, components) that are at a bound."""
    bounded = np.isfinite(low) & np.isfinite(high)
    if not len(actions) or not bounded.any():
        return {}
    near = AT_BOUND * (high[bounded] - low[bounded])
    actions = actions[:, bounded]
    at_bound = (actions <= low[bounded] + near) | (actions >= high[bounded] - near)
    return {"action/saturation": np.count_nonzero(at_bound) / at_bound.size}


def entropy_share(entropy: float, sizes: Sequence[int], action_masks: Array | None = None) -> dict[str, float]:
    """Return an entropy as a share of the largest possible one, given the masks (rows, all choices)."""
    largest = math.fsum(math.log(size) for size in sizes)
    if action_masks is not None and len(action_masks):
        starts = np.cumsum([0, *sizes[:-1]])
        allowed = np.add.reduceat(action_masks, starts, axis=1, dtype=np.intp)
        largest = float(np.log(np.maximum(allowed, 1)).sum(axis=1).mean())
    return {"train/entropy_share": entropy / largest} if largest else {}


def critic(values: Array, targets: Array) -> dict[str, float]:
    """Return the mean size of the values and of their targets."""
    return {"train/value_abs": float(np.abs(values).mean()), "train/target_abs": float(np.abs(targets).mean())}


def joint_norm(norms: Iterable[Sequence[float]]) -> dict[str, float]:
    """Return the norm of the whole gradient from its parts' norms, each averaged over an update."""
    means = [math.fsum(part) / len(part) for part in norms if part]
    return {"train/gradient_norm": math.hypot(*means)} if means else {}


class EnvClock:
    """Counts the seconds spent in environments' steps."""

    def __init__(self) -> None:
        self.seconds = 0.0


class EnvShare:
    """The share of wall time that was spent in environments since the last call of `read`."""

    def __init__(self, clock: EnvClock) -> None:
        self._clock = clock
        self._seconds = clock.seconds
        self._time = time.perf_counter()

    def read(self) -> dict[str, float]:
        """Return the share since the last call."""
        now = time.perf_counter()
        share = (self._clock.seconds - self._seconds) / max(now - self._time, 1e-9)
        self._seconds = self._clock.seconds
        self._time = now
        return {"time/env_share": min(1.0, share)}
