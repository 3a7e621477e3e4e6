"""Permutation tests on the mean difference of training runs, exact where they are small, and intervals that match.

Unpaired throughout: trainings that share a seed number correlate by .03 on average across configs, so pairing buys
nothing. What is exchanged is a whole training run; the test assumes no shape of the returns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlx.compare.stats import Floats, Interval, as_matrix, as_runs
from rlx.figures import deviation

Alternative = Literal["greater", "less", "two-sided"]

EXACT_SPLITS = 200_000
"""Up to this many splits a permutation test enumerates all of them (10 v 10 has 184,756)."""
RESAMPLES = 19_999
"""Random splits beyond that: with the observed one 20,000, so that p has a round grid."""
_BLOCK = 4_000_000
_TIE = 1e-9
"""Differences closer than this share of the scores' range are equal: rounding must not break ties."""


def permutation_p(
    baseline: ArrayLike,
    candidate: ArrayLike,
    *,
    alternative: Alternative = "two-sided",
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
    above, below = permutation_tails(baseline, candidate, exact_splits=exact_splits, resamples=resamples, seed=seed)
    return _chosen(above, below, alternative)


def permutation_tails(
    baseline: ArrayLike,
    candidate: ArrayLike,
    *,
    exact_splits: int = EXACT_SPLITS,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[Floats, Floats]:
    """Return both one-sided p-values, for `greater` and for `less`: (…, n), (…, m) → (…), (…). See `permutation_p`."""
    base, new = as_runs(baseline), as_runs(candidate)
    shape = np.broadcast_shapes(base.shape[:-1], new.shape[:-1])
    base = np.broadcast_to(base, (*shape, base.shape[-1])).reshape(-1, base.shape[-1])
    new = np.broadcast_to(new, (*shape, new.shape[-1])).reshape(-1, new.shape[-1])
    splits = _Splits.of(base.shape[-1], new.shape[-1], exact_splits=exact_splits, resamples=resamples, seed=seed)
    rows = max(1, _BLOCK // splits.count)
    parts = [
        _one_sided(base[start : start + rows], new[start : start + rows], splits) for start in range(0, len(base), rows)
    ]
    above, below = (np.concatenate(side) for side in zip(*parts, strict=True))
    return above.reshape(shape), below.reshape(shape)


def _chosen(above: Floats, below: Floats, alternative: Alternative) -> Floats:
    sides = {"greater": above, "less": below, "two-sided": np.minimum(1.0, 2 * np.minimum(above, below))}
    return np.asarray(sides[alternative])


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
    base, new = as_runs(baseline), as_runs(candidate)
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
    moved = is_candidate - _random_members(n, m, resamples, generator)
    size = np.maximum(moved, 0).sum(axis=1, keepdims=True)
    keep = size[:, 0] > 0  # the observed split is counted once, by the caller
    return np.ascontiguousarray((moved[keep] / size[keep]).T)


def _random_members(n: int, m: int, resamples: int, generator: np.random.Generator) -> NDArray[np.bool_]:
    """Draw which m of n + m runs a random split calls the candidate's: (resamples, n + m)."""
    keys = generator.random((resamples, n + m))
    return np.asarray(keys < np.partition(keys, m, axis=1)[:, m : m + 1])


def permutation_p_over_tasks(
    baseline: ArrayLike,
    candidate: ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    exact_splits: int = EXACT_SPLITS,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> float:
    """Return the p-value of the mean difference over several tasks, runs permuted within each: (n, tasks), (m, tasks).

    Each task is divided by the spread of its pooled runs, which no permutation changes, so a task counts by its signal
    and not by its units. Exact where half of the tasks have at most `exact_splits` joint splits (the two halves are
    combined by sorting: 5 v 5 on four tasks, all 4·10⁹ of them); random splits with the observed one counted in
    beyond. Within-stratum permutation: Good, *Permutation Tests* (2000), ch. 6.
    """
    base, new = as_matrix(baseline), as_matrix(candidate)
    if base.ndim != 2 or new.ndim != 2 or base.shape[1] != new.shape[1]:
        raise ValueError("scores must be (runs, tasks) with the same tasks on both sides")
    pooled = np.concatenate([base, new])
    spread = np.array([deviation(task) for task in pooled.T])
    pooled = (pooled - pooled.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    half = (base.shape[1] + 1) // 2
    if math.comb(len(pooled), len(new)) ** half <= exact_splits:
        above, below = _joint_exact(pooled, len(new), half)
    else:
        above, below = _joint_random(pooled, len(new), resamples, np.random.default_rng(seed))
    return float(_chosen(np.asarray(above), np.asarray(below), alternative))


def _joint_exact(pooled: Floats, size: int, half: int) -> tuple[float, float]:
    members = _subsets(len(pooled), size)
    sums = pooled[members].sum(axis=1)  # (splits, tasks); a task's mean difference rises with this sum
    changes = (sums - pooled[-size:].sum(axis=0)).T
    first, second = (reduce(_outer_sum, part, np.zeros(1)) for part in (changes[:half], changes[half:]))
    second = np.sort(second)
    tie = _TIE * pooled.size
    above = second.size - np.searchsorted(second, -first - tie, side="left")
    below = np.searchsorted(second, -first + tie, side="right")
    total = first.size * second.size
    return above.sum() / total, below.sum() / total


def _outer_sum(a: Floats, b: Floats) -> Floats:
    return np.add.outer(a, b).ravel()


def _joint_random(pooled: Floats, size: int, resamples: int, generator: np.random.Generator) -> tuple[float, float]:
    change = np.zeros(resamples)
    for task in pooled.T:
        members = _random_members(len(task) - size, size, resamples, generator)
        change += members @ task - task[-size:].sum()
    tie = _TIE * pooled.size
    above, below = np.count_nonzero(change >= -tie), np.count_nonzero(change <= tie)
    return (1 + above) / (1 + resamples), (1 + below) / (1 + resamples)
