"""Statistics that describe training runs: aggregates, profiles and bootstrap intervals. Needs only NumPy.

A score array holds one number per training run: shape (runs,), or (runs, tasks) if several tasks are pooled. Leading
axes are simulations or resamples. The unit is the training run: average the episodes behind a score first.
All functions expect finite scores and raise `ValueError` otherwise. To decide, not describe, use `permutation` and
`interim_plan`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlx.number_format import deviation

Floats = NDArray[np.float64]
Statistic = Callable[..., Floats]

_BLOCK = 200_000
"""Numbers held at once while resampling."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval. `level` is its nominal coverage. An end is infinite if the data cannot bound it."""

    low: float
    high: float
    level: float


@dataclass(frozen=True, eq=False)
class Band:
    """Pointwise intervals along a curve: `low` and `high` have the curve's shape."""

    low: Floats
    high: Floats
    level: float


def mean(scores: ArrayLike) -> Floats:
    """Return the mean over runs and tasks: (runs,) or (…, runs, tasks) → (…)."""
    return np.asarray(as_matrix(scores).mean(axis=(-2, -1)))


def median(scores: ArrayLike) -> Floats:
    """Return the median over tasks of each task's mean: (…, runs, tasks) → (…); (runs,) → their median.

    Agarwal et al. 2021 (arXiv 2108.13264). A single task has no median over tasks: it returns the median over runs.
    """
    matrix = as_matrix(scores)
    if matrix.shape[-1] == 1:
        return np.asarray(np.median(matrix[..., 0], axis=-1))
    return np.asarray(np.median(matrix.mean(axis=-2), axis=-1))


def iqm(scores: ArrayLike) -> Floats:
    """Return the interquartile mean, the middle half of runs × tasks: (runs,) or (…, runs, tasks) → (…).

    Agarwal et al. 2021 (arXiv 2108.13264), pooled over tasks as there (SciPy's `trim_mean(.25)`). With few runs of
    one task it hides failing seeds: it keeps the middle 3 of 5. Use it for many tasks × few runs.
    """
    matrix = as_matrix(scores)
    pooled = np.sort(matrix.reshape(*matrix.shape[:-2], -1), axis=-1)
    count = pooled.shape[-1]
    return np.asarray(pooled[..., count // 4 : count - count // 4].mean(axis=-1))


def performance_profile(scores: ArrayLike, thresholds: ArrayLike) -> Floats:
    """Return the share of runs above each threshold, averaged over tasks: (…, runs, tasks) → (…, thresholds).

    Agarwal et al. 2021 (arXiv 2108.13264) call it the run-score distribution.
    """
    levels = np.asarray(thresholds, dtype=np.float64)
    return np.asarray((as_matrix(scores)[..., None] > levels).mean(axis=(-3, -2)))


def bootstrap_interval(
    statistic: Statistic, *groups: ArrayLike, level: float = 0.95, resamples: int = 20_000, seed: int = 0
) -> Interval:
    """Return the percentile interval of `statistic(*groups)` under the stratified bootstrap: groups (runs, tasks).

    Runs are redrawn within each task and each group independently (Agarwal et al. 2021, arXiv 2108.13264). `statistic`
    gets every group as (resamples, runs, tasks) and returns (resamples,). Example: `bootstrap_interval(iqm, scores)`.
    Below ten runs the intervals are too narrow: at 5 v 5, a 90 % interval calls 9–10 % of equal pairs better.
    Describe with them and decide with `permutation_p`.
    """
    values = np.concatenate([statistic(*drawn) for drawn in _redraws(groups, resamples=resamples, seed=seed)])
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level)


def profile_band(
    scores: ArrayLike, thresholds: ArrayLike, *, level: float = 0.95, resamples: int = 2_000, seed: int = 0
) -> Band:
    """Return pointwise percentile intervals of the performance profile: (runs, tasks), (thresholds,) → Band.

    The stratified bootstrap of Agarwal et al. 2021 (arXiv 2108.13264), with the same 2,000 resamples.
    """
    levels = np.asarray(thresholds, dtype=np.float64)
    drawn = _redraws([scores], resamples=resamples, seed=seed, copies=max(1, levels.size))
    values = np.concatenate([performance_profile(matrix, levels) for (matrix,) in drawn])
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Band(low, high, level)


def mean_band(curves: ArrayLike, *, level: float = 0.95, resamples: int = 1_000, seed: int = 0) -> Band:
    """Return pointwise percentile intervals of the mean curve: (runs, points) → Band.

    Whole runs are redrawn, so the points of one run stay together. With three runs or fewer the band is their range.
    """
    matrix = as_runs(curves)
    runs = len(matrix)
    shares = np.random.default_rng(seed).multinomial(runs, np.full(runs, 1 / runs), size=resamples) / runs
    low, high = np.quantile(shares @ matrix, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Band(low, high, level)


def _redraws(
    groups: list[ArrayLike] | tuple[ArrayLike, ...], *, resamples: int, seed: int, copies: int = 1
) -> Iterator[list[Floats]]:
    """Yield blocks of redrawn groups, each (block, runs, tasks), `resamples` in total."""
    generator = np.random.default_rng(seed)
    matrices = [as_matrix(group) for group in groups]
    rows = max(1, _BLOCK // (copies * max(matrix.size for matrix in matrices)))
    for start in range(0, resamples, rows):
        yield [_redraw(matrix, min(rows, resamples - start), generator) for matrix in matrices]


def _redraw(matrix: Floats, count: int, generator: np.random.Generator) -> Floats:
    runs, tasks = matrix.shape
    chosen = generator.integers(runs, size=(count, runs, tasks))
    chosen *= tasks
    chosen += np.arange(tasks)
    return matrix.ravel().take(chosen)  # flat indices are five times as fast as pairs of indices


def pooled_deviation(base: Floats, new: Floats) -> float:
    """Return the pooled standard deviation of two samples, each with at least two values."""
    return math.hypot(deviation(base), deviation(new)) / math.sqrt(2)


def describe(values: ArrayLike) -> dict[str, float | None]:
    """Return count, mean, standard deviation and range of a sample, with None for what it has too few values for."""
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0:
        return {"n": 0, "mean": None, "sd": None, "min": None, "max": None}
    spread = None
    if array.size > 1:
        spread = deviation(array)
    return {
        "n": array.size, "mean": float(array.mean()), "sd": spread, "min": float(array.min()),
        "max": float(array.max()),
    }  # fmt: skip


def as_runs(scores: ArrayLike) -> Floats:
    """Read scores as (…, runs). Raises `ValueError` if there are none, or if some are not finite."""
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim == 0 or array.size == 0:
        raise ValueError("no scores")
    if not np.isfinite(array).all():
        raise ValueError("scores must be finite")
    return array


def as_matrix(scores: ArrayLike) -> Floats:
    """Read (runs,) as (runs, 1) and leave (…, runs, tasks) unchanged."""
    array = as_runs(scores)
    if array.ndim == 1:
        return array[:, None]
    return array
