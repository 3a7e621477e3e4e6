"""Statistics that describe training runs: aggregates, profiles and bootstrap intervals; NumPy only.

A score array holds one number a training run: shape (runs,), or (runs, tasks) where several tasks are pooled, with
any number of leading axes for simulations or resamples. The unit is the training run; the episodes behind a score are
averaged before they come here. Non-finite scores are the caller's to judge: everything here expects finite numbers
and raises `ValueError` otherwise. To decide rather than describe, see `permutation` and `looks`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlx.figures import deviation

Floats = NDArray[np.float64]
Statistic = Callable[..., Floats]

_BLOCK = 200_000
"""Numbers held at once while resampling."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval; `level` is its nominal coverage. An end is infinite where the data cannot bound it."""

    low: float
    high: float
    level: float

    @property
    def is_bounded(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)


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

    Agarwal et al. 2021 (arXiv 2108.13264). One task has no median over tasks: there it is the median over runs.
    """
    matrix = as_matrix(scores)
    return np.asarray(np.median(matrix[..., 0] if matrix.shape[-1] == 1 else matrix.mean(axis=-2), axis=-1))


def iqm(scores: ArrayLike) -> Floats:
    """Return the interquartile mean, the middle half of runs × tasks: (runs,) or (…, runs, tasks) → (…).

    Agarwal et al. 2021 (arXiv 2108.13264), pooled over tasks as there (SciPy's `trim_mean(.25)`). With few runs of
    one task it hides failing seeds (of 5 it keeps the middle 3): meant for many tasks × few runs.
    """
    matrix = as_matrix(scores)
    pooled = np.sort(matrix.reshape(*matrix.shape[:-2], -1), axis=-1)
    count = pooled.shape[-1]
    return np.asarray(pooled[..., count // 4 : count - count // 4].mean(axis=-1))


def optimality_gap(scores: ArrayLike, *, target: float = 1.0) -> Floats:
    """Return how far runs stay below `target` on average, what lies above it not counted: (…, runs, tasks) → (…).

    Agarwal et al. 2021 (arXiv 2108.13264); for scores normalised so that 1 is a meaningful goal.
    """
    return np.asarray(target - np.minimum(as_matrix(scores), target).mean(axis=(-2, -1)))


def probability_of_improvement(baseline: ArrayLike, candidate: ArrayLike) -> Floats:
    """Return P(a candidate run scores above a baseline run), ties half, averaged over tasks: (…, runs, tasks) → (…).

    Agarwal et al. 2021 (arXiv 2108.13264); Mann-Whitney's U divided by the number of pairs. A description, not a
    gate: as a gate it passes candidates that fail on a quarter of the seeds 45 times in 100, even at ten seeds a side.
    """
    base, new = as_matrix(baseline), as_matrix(candidate)
    pairs = new[..., :, None, :] - base[..., None, :, :]
    return np.asarray(((pairs > 0) + 0.5 * (pairs == 0)).mean(axis=(-3, -2, -1)))


def performance_profile(scores: ArrayLike, thresholds: ArrayLike) -> Floats:
    """Return the share of runs above each threshold, averaged over tasks: (…, runs, tasks) → (…, thresholds).

    Agarwal et al. 2021 (arXiv 2108.13264), there the run-score distribution.
    """
    levels = np.asarray(thresholds, dtype=np.float64)
    return np.asarray((as_matrix(scores)[..., None] > levels).mean(axis=(-3, -2)))


def bootstrap_interval(
    statistic: Statistic, *groups: ArrayLike, level: float = 0.95, resamples: int = 20_000, seed: int = 0
) -> Interval:
    """Return the percentile interval of `statistic(*groups)` under the stratified bootstrap: groups (runs, tasks).

    Runs are redrawn within each task and each group independently (Agarwal et al. 2021, arXiv 2108.13264). `statistic`
    gets every group as (resamples, runs, tasks) and returns (resamples,): `bootstrap_interval(iqm, scores)`,
    `bootstrap_interval(probability_of_improvement, baseline, candidate)`. Below ten runs such intervals are too narrow
    (a 90 % one accepts 9–10 % of equal pairs at 5 v 5): describe with them, decide with `permutation_p`.
    """
    values = np.concatenate([statistic(*drawn) for drawn in _redraws(groups, resamples=resamples, seed=seed)])
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level)


def profile_band(
    scores: ArrayLike, thresholds: ArrayLike, *, level: float = 0.95, resamples: int = 2_000, seed: int = 0
) -> Band:
    """Return pointwise percentile intervals of the performance profile: (runs, tasks), (thresholds,) → Band.

    The stratified bootstrap of Agarwal et al. 2021 (arXiv 2108.13264), which uses 2,000 resamples here too.
    """
    levels = np.asarray(thresholds, dtype=np.float64)
    drawn = _redraws([scores], resamples=resamples, seed=seed, copies=max(1, levels.size))
    values = np.concatenate([performance_profile(matrix, levels) for (matrix,) in drawn])
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Band(low, high, level)


def mean_band(curves: ArrayLike, *, level: float = 0.95, resamples: int = 1_000, seed: int = 0) -> Band:
    """Return pointwise percentile intervals of the mean curve: (runs, points) → Band.

    Whole runs are redrawn, so what belongs to one run stays together. With three runs or fewer it is their range.
    """
    matrix = as_runs(curves)
    runs = len(matrix)
    shares = np.random.default_rng(seed).multinomial(runs, np.full(runs, 1 / runs), size=resamples) / runs
    low, high = np.quantile(shares @ matrix, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Band(low, high, level)


def _redraws(
    groups: list[ArrayLike] | tuple[ArrayLike, ...], *, resamples: int, seed: int, copies: int = 1
) -> Iterator[list[Floats]]:
    """Yield blocks of redrawn groups, each (block, runs, tasks); together `resamples` of them."""
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
    return matrix.ravel().take(chosen)  # flat indices: five times as fast as pairs of them


def pooled_deviation(base: Floats, new: Floats) -> float:
    """Return the standard deviation that two samples of two at least have in common."""
    return math.hypot(deviation(base), deviation(new)) / math.sqrt(2)


def plain(value: float) -> float | None:
    """Return a number as JSON has it: None for an open end (±∞) and for what is not known (NaN)."""
    return float(value) if np.isfinite(value) else None


def as_runs(scores: ArrayLike) -> Floats:
    """Read scores as (…, runs), refusing none at all and numbers that are not finite."""
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim == 0 or array.size == 0:
        raise ValueError("no scores")
    if not np.isfinite(array).all():
        raise ValueError("scores must be finite")
    return array


def as_matrix(scores: ArrayLike) -> Floats:
    """Read (runs,) as (runs, 1) and leave (…, runs, tasks) as it is."""
    array = as_runs(scores)
    return array[:, None] if array.ndim == 1 else array
