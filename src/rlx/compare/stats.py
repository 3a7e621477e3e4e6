"""Statistics for a handful of training seeds: aggregates, intervals, permutation tests, planning; NumPy only.

A score array holds one number a training run: shape (runs,), or (runs, tasks) where several tasks are pooled.
The unit is the training run; the episodes behind a score are averaged before they come here. Non-finite scores
are the caller's to judge: everything here expects finite numbers and raises `ValueError` otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Statistic = Callable[..., Floats]

EXACT_SPLITS = 200_000
"""Up to this many splits a permutation test enumerates all of them (10 v 10 has 184,756)."""
RESAMPLES = 19_999
"""Random splits beyond that: with the observed one 20,000, so that p has a round grid."""
_BLOCK = 4_000_000
_TIE = 1e-9


@dataclass(frozen=True)
class Interval:
    """A confidence interval; `level` is its nominal coverage. An end is infinite where the data cannot bound it."""

    low: float
    high: float
    level: float

    @property
    def is_bounded(self) -> bool:
        return math.isfinite(self.low) and math.isfinite(self.high)


def mean(scores: ArrayLike) -> Floats:
    """Return the mean over runs and tasks: (runs,) or (…, runs, tasks) → (…)."""
    return np.asarray(_tasks(scores).mean(axis=(-2, -1)))


def iqm(scores: ArrayLike) -> Floats:
    """Return the interquartile mean, the middle half of runs × tasks: (runs,) or (…, runs, tasks) → (…).

    Agarwal et al. 2021 (arXiv 2108.13264), pooled over tasks as there (scipy's `trim_mean(.25)`). With few runs of
    one task it hides failing seeds (of 5 it keeps the middle 3): meant for many tasks × few runs.
    """
    matrix = _tasks(scores)
    pooled = np.sort(matrix.reshape(*matrix.shape[:-2], -1), axis=-1)
    count = pooled.shape[-1]
    return np.asarray(pooled[..., count // 4 : count - count // 4].mean(axis=-1))


def probability_of_improvement(baseline: ArrayLike, candidate: ArrayLike) -> Floats:
    """Return P(a candidate run scores above a baseline run), ties half, averaged over tasks: (…, runs, tasks) → (…).

    Agarwal et al. 2021. A description, not a gate: it passes candidates that fail on a quarter of the seeds.
    """
    base, new = _tasks(baseline), _tasks(candidate)
    pairs = new[..., :, None, :] - base[..., None, :, :]
    return np.asarray(((pairs > 0) + 0.5 * (pairs == 0)).mean(axis=(-3, -2, -1)))


def performance_profile(scores: ArrayLike, thresholds: ArrayLike) -> Floats:
    """Return the share of runs above each threshold, averaged over tasks: → (thresholds,). Agarwal et al. 2021."""
    levels = np.asarray(thresholds, dtype=np.float64)
    return np.asarray((_tasks(scores)[..., None] > levels).mean(axis=(0, 1)))


def bootstrap_interval(
    statistic: Statistic, *groups: ArrayLike, level: float = 0.95, resamples: int = 20_000, seed: int = 0
) -> Interval:
    """Return the percentile interval of `statistic(*groups)` under the stratified bootstrap.

    Runs are redrawn within each task and each group independently (Agarwal et al. 2021). `statistic` gets every group
    as (resamples, runs, tasks) and returns (resamples,): `bootstrap_interval(iqm, scores)`,
    `bootstrap_interval(probability_of_improvement, baseline, candidate)`. Below ten runs such intervals are too narrow
    (a 90 % one accepts 9–10 % of equal pairs at 5 v 5): describe with them, decide with `permutation_p`.
    """
    generator = np.random.default_rng(seed)
    matrices = [_tasks(group) for group in groups]
    rows = max(1, _BLOCK // max(matrix.size for matrix in matrices))
    values = [
        statistic(*(_redraw(matrix, min(rows, resamples - start), generator) for matrix in matrices))
        for start in range(0, resamples, rows)
    ]
    low, high = np.quantile(np.concatenate(values), [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level)


def _redraw(matrix: Floats, count: int, generator: np.random.Generator) -> Floats:
    runs, tasks = matrix.shape
    return matrix[generator.integers(runs, size=(count, runs, tasks)), np.arange(tasks)]


def permutation_p(
    baseline: ArrayLike,
    candidate: ArrayLike,
    *,
    alternative: Literal["greater", "less", "two-sided"] = "two-sided",
    exact_splits: int = EXACT_SPLITS,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Floats:
    """Return the p-value of the unpaired permutation test on the mean difference: (…, n), (…, m) → (…).

    `greater` asks whether the candidate's mean is above the baseline's. All splits of the pooled runs are enumerated
    where there are at most `exact_splits`; beyond, `resamples` random ones with the observed split counted in, which
    keeps the level (Phipson & Smyth 2010, arXiv 1603.05766). Two-sided is twice the smaller side. Leading axes are
    independent data sets (simulations), which share their random splits.
    """
    base, new = _runs(baseline), _runs(candidate)
    shape = np.broadcast_shapes(base.shape[:-1], new.shape[:-1])
    base = np.broadcast_to(base, (*shape, base.shape[-1])).reshape(-1, base.shape[-1])
    new = np.broadcast_to(new, (*shape, new.shape[-1])).reshape(-1, new.shape[-1])
    splits = _Splits.of(base.shape[-1], new.shape[-1], exact_splits=exact_splits, resamples=resamples, seed=seed)
    rows = max(1, _BLOCK // splits.count)
    parts = [
        _one_sided(base[start : start + rows], new[start : start + rows], splits) for start in range(0, len(base), rows)
    ]
    above, below = (np.concatenate(side) for side in zip(*parts, strict=True))
    chosen = {"greater": above, "less": below, "two-sided": np.minimum(1.0, 2 * np.minimum(above, below))}
    return np.asarray(chosen[alternative].reshape(shape))


def _one_sided(base: Floats, new: Floats, splits: _Splits) -> tuple[Floats, Floats]:
    """Return p for `greater` and `less` of (sims, n) and (sims, m)."""
    exchanged = splits.exchanged(base, new)
    tie = _TIE * (np.maximum(base.max(-1), new.max(-1)) - np.minimum(base.min(-1), new.min(-1)))[:, None]
    above = 1 + np.count_nonzero(exchanged <= tie, axis=-1)
    below = 1 + np.count_nonzero(exchanged >= -tie, axis=-1)
    return above / splits.count, below / splits.count


def permutation_interval(
    baseline: ArrayLike,
    candidate: ArrayLike,
    *,
    below: float = 0.025,
    above: float = 0.025,
    exact_splits: int = EXACT_SPLITS,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Return the shifts of the candidate's mean that `permutation_p` does not reject: (n,), (m,) → interval.

    `below` and `above` are the one-sided levels of the two ends, so `low > 0` exactly where the test for `greater`
    has p ≤ `below`. Assumes, as every interval for a shift, that the candidate moves the returns and keeps their shape.
    An end is infinite where there are too few runs for its level (3 v 3 reaches .05, not .025).
    """
    base, new = _runs(baseline), _runs(candidate)
    splits = _Splits.of(base.shape[-1], new.shape[-1], exact_splits=exact_splits, resamples=resamples, seed=seed)
    exchanged = np.sort(splits.exchanged(base[None], new[None])[0])
    exchanged[np.abs(exchanged) <= _TIE * np.ptp(np.concatenate([base, new]))] = 0.0
    low, high = int(below * splits.count + _TIE), int(above * splits.count + _TIE)
    return Interval(
        float(exchanged[low - 1]) if low >= 1 else -math.inf,
        float(exchanged[-high]) if high >= 1 else math.inf,
        1 - below - above,
    )


@dataclass(frozen=True)
class _Splits:
    """The ways to split n + m pooled runs into n and m, other than the observed one.

    A split exchanges k candidate runs for k baseline runs. Under a shift D of the candidate its mean difference is at
    least the observed one exactly where D ≥ (mean of the k candidate runs − mean of the k baseline runs). So these
    exchanged differences are all that test (D = 0) and interval (their order statistics) need.
    """

    count: int
    sides: tuple[tuple[NDArray[np.intp], NDArray[np.intp]], ...] = ()
    weights: Floats | None = None

    @staticmethod
    @lru_cache(maxsize=16)
    def of(n: int, m: int, *, exact_splits: int, resamples: int, seed: int) -> _Splits:
        if math.comb(n + m, n) <= exact_splits:
            sides = tuple((_subsets(n, k), _subsets(m, k)) for k in range(1, min(n, m) + 1))
            return _Splits(math.comb(n + m, n), sides=sides)
        weights = _random_exchanges(n, m, resamples, np.random.default_rng(seed))
        return _Splits(weights.shape[1] + 1, weights=weights)

    def exchanged(self, base: Floats, new: Floats) -> Floats:
        """Return the exchanged differences: (sims, n), (sims, m) → (sims, splits − 1)."""
        if self.weights is not None:
            return np.concatenate([base, new], axis=-1) @ self.weights
        blocks = []
        for ours, theirs in self.sides:
            difference = new[:, theirs].mean(-1)[:, :, None] - base[:, ours].mean(-1)[:, None, :]
            blocks.append(difference.reshape(len(base), -1))
        return np.concatenate(blocks, axis=-1)


def _subsets(count: int, size: int) -> NDArray[np.intp]:
    return np.array(list(combinations(range(count), size)), dtype=np.intp)


def _random_exchanges(n: int, m: int, resamples: int, generator: np.random.Generator) -> Floats:
    """Return random splits as columns (n + m, resamples) that turn pooled scores into exchanged differences."""
    is_candidate = np.repeat([0.0, 1.0], [n, m])
    keys = generator.random((resamples, n + m))
    moved = is_candidate - (keys < np.partition(keys, m, axis=1)[:, m : m + 1])  # the m smallest keys are drawn
    size = np.maximum(moved, 0).sum(axis=1, keepdims=True)
    keep = size[:, 0] > 0  # the observed split is counted once, by the caller
    return np.ascontiguousarray((moved[keep] / size[keep]).T)


def seeds_needed(effect: float, *, alpha: float = 0.05, power: float = 0.8) -> int:
    """Return the runs a side that detect a shift of `effect` standard deviations (one-sided, normal approximation).

    2((z₁₋α + z_power)/d)², e.g. 13 a side for d = 1 (Colas et al. 2018, arXiv 1806.08295).
    """
    if effect == 0:
        raise ValueError("no number of runs detects a shift of zero")
    return math.ceil(2 * (_z(alpha, power) / effect) ** 2)


def detectable_effect(runs: int, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Return the shift, in standard deviations, that `runs` a side detect: the inverse of `seeds_needed`."""
    return _z(alpha, power) * math.sqrt(2 / runs)


def _z(alpha: float, power: float) -> float:
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha) + normal.inv_cdf(power)


@dataclass(frozen=True)
class Tail:
    """How many candidate runs lie below every baseline run, and how likely that is between equal learners."""

    below: int
    p: float

    @property
    def is_flagged(self) -> bool:
        """Whether seeds fail that did not fail before: ≥ 3 of 10 v 10 (p .105), or as unlikely at other sizes."""
        return self.p <= 0.11


def tail_check(baseline: ArrayLike, candidate: ArrayLike) -> Tail:
    """Count the candidate runs below the baseline's worst: (n,), (m,) → Tail.

    p is the chance that the `below` lowest of all n + m runs are all the candidate's. A flag, not a gate: tails are
    too thin at ten seeds to decide on.
    """
    base, new = _runs(baseline), _runs(candidate)
    below = int(np.count_nonzero(new < base.min()))
    return Tail(below, math.comb(new.size, below) / math.comb(new.size + base.size, below))


def _runs(scores: ArrayLike) -> Floats:
    """Read (…, runs)."""
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError("no scores")
    if not np.isfinite(array).all():
        raise ValueError("scores must be finite")
    return array


def _tasks(scores: ArrayLike) -> Floats:
    """Read (runs,) as (runs, 1) and leave (…, runs, tasks) as it is."""
    array = _runs(scores)
    return array[:, None] if array.ndim == 1 else array
