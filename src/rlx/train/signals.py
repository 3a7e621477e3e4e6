"""What a metrics row says about the data a policy learns from: plain arrays in, a few figures out.

They are for diagnosis: observations as the network receives them, rewards as the environment gave them, actions as they
were chosen. A figure is left out where it has no meaning.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
AT_BOUND = 0.01  # of a component's range: squashed actions come near their bounds without reaching them
MOST_NUMBERS = 2**20  # of observations that are looked at for one row


def episodes(returns: Sequence[float], lengths: Sequence[int], cut: Sequence[float]) -> dict[str, float]:
    """Return means of recent episodes; `cut` has a 1 for every one that was truncated, a 0 for every other."""
    if not returns:
        return {}
    row = {
        "rollout/return_mean": math.fsum(returns) / len(returns),
        "rollout/return_std": float(np.std(returns)),
        "rollout/length_mean": math.fsum(lengths) / len(lengths),
    }
    return {**row, "rollout/truncated_share": math.fsum(cut) / len(cut)} if cut else row


def observations(numbers: Array, choices: Array) -> dict[str, float]:
    """Judge what a network received, one row a step: numbers as they are, choices by their index."""
    rows, dims = len(numbers), numbers.shape[1] + choices.shape[1]
    if not rows or not dims:
        return {}
    thin = math.ceil(rows * dims / MOST_NUMBERS)
    numbers, choices = numbers[::thin], choices[::thin]
    low, high = numbers.min(axis=0), numbers.max(axis=0)
    moves = low < high
    constant = dims - np.count_nonzero(moves) - np.count_nonzero((choices != choices[0]).any(axis=0))
    row = {"obs/constant_share": constant / dims}
    if numbers.shape[1]:
        row["obs/max_abs"] = max(-float(low.min()), float(high.max()))
    if moves.any():
        spread = numbers[:, moves].std(axis=0, dtype=np.float64)
        row["obs/std_ratio"] = float(spread.max() / spread.min())
    return row


def rewards(values: Array) -> dict[str, float]:
    """Judge the rewards of single steps, as the environment gave them."""
    if not values.size:
        return {}
    sizes = np.abs(values)
    return {
        "reward/mean_abs": float(sizes.mean(dtype=np.float64)),
        "reward/std": float(values.std(dtype=np.float64)),
        "reward/max_abs": float(sizes.max()),
        "reward/nonzero_share": np.count_nonzero(values) / values.size,
    }


def choices(chosen: Array, sizes: Sequence[int]) -> dict[str, float]:
    """Judge discrete actions (rows, components), each component one of `sizes` choices."""
    if not len(chosen):
        return {}
    counts = [np.bincount(column, minlength=size) for column, size in zip(chosen.T.astype(np.intp), sizes, strict=True)]
    unused = sum(int(np.count_nonzero(each == 0)) for each in counts)
    return {
        "action/top_share": float(max(each.max() for each in counts)) / len(chosen),
        "action/unused_share": unused / sum(sizes),
    }


def box_actions(actions: Array, low: Array, high: Array) -> dict[str, float]:
    """Judge actions that are numbers (rows, components) by how many of them are at a bound."""
    bounded = np.isfinite(low) & np.isfinite(high)
    if not len(actions) or not bounded.any():
        return {}
    near = AT_BOUND * (high[bounded] - low[bounded])
    actions = actions[:, bounded]
    at_bound = (actions <= low[bounded] + near) | (actions >= high[bounded] - near)
    return {"action/saturation": np.count_nonzero(at_bound) / at_bound.size}


def entropy_share(entropy: float, sizes: Sequence[int], closed: Array | None = None) -> dict[str, float]:
    """Return an entropy as a share of the largest one possible, where `closed` actions (rows, all) are forbidden."""
    largest = math.fsum(math.log(size) for size in sizes)
    if closed is not None and len(closed):
        ends = np.cumsum([0, *sizes[:-1]])
        allowed = np.add.reduceat(~closed, ends, axis=1, dtype=np.intp)
        largest = float(np.log(np.maximum(allowed, 1)).sum(axis=1).mean())
    return {"train/entropy_share": entropy / largest} if largest else {}


def critic(values: Array, targets: Array) -> dict[str, float]:
    """Return how large the values are, and what they are fitted to."""
    return {"train/value_abs": float(np.abs(values).mean()), "train/target_abs": float(np.abs(targets).mean())}


def joint_norm(norms: Iterable[Sequence[float]]) -> dict[str, float]:
    """Return the norm of the whole gradient from the norms of its parts, each the mean of an update's."""
    means = [math.fsum(each) / len(each) for each in norms if each]
    return {"train/gradient_norm": math.hypot(*means)} if means else {}


class EnvClock:
    """Counts the seconds spent in environments' steps."""

    def __init__(self) -> None:
        self.seconds = 0.0


class EnvShare:
    """The share of wall time that a clock counted since it was last asked."""

    def __init__(self, clock: EnvClock) -> None:
        self._clock, self._seconds, self._time = clock, clock.seconds, time.perf_counter()

    def read(self) -> dict[str, float]:
        """Return the share since the last call."""
        now, seconds = time.perf_counter(), self._clock.seconds
        share = (seconds - self._seconds) / max(now - self._time, 1e-9)
        self._seconds, self._time = seconds, now
        return {"time/env_share": min(1.0, share)}
