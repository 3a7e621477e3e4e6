"""Permutation tests on the mean difference of training runs, and confidence intervals that match them.

The test asks: if the labels "baseline" and "candidate" meant nothing, how often would a random relabelling give a mean
difference at least as large as the observed one? It exchanges whole training runs and assumes no shape of the returns.
It is unpaired: trainings that share a seed number correlate by only .03 on average across configs.
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
from rlx.number_format import deviation

Alternative = Literal["greater", "less", "two-sided"]

EXACT_SPLITS = 200_000
"""Up to this many splits, the test enumerates all of them (10 v 10 has 184,756)."""
RESAMPLES = 19_999
"""Random splits beyond that. With the observed split there are 20,000, so p has a round grid."""
_BLOCK = 4_000_000
"""Numbers held in memory at once."""
_TIE = 1e-9
"""Differences closer than this share of the scores' range count as equal, so that rounding does not break ties."""


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

    `greater` asks whether the candidate's mean is above the baseline's; two-sided is twice the smaller side. The test
    is exact if there are at most `exact_splits` splits of the pooled runs. Beyond that it draws `resamples` random
    splits and counts the observed one in, which keeps the level (Phipson & Smyth 2010, arXiv 1603.05766). Leading axes
    are independent data sets (simulations) that share their random splits.
    """
    above, below = permutation_tails(baseline, candidate, exact_splits=exact_splits, resamples=resamples, seed=seed)
    return _choose_tail(above, below, alternative)


def permutation_tails(
    baseline: ArrayLike,
    candidate: ArrayLike,
    *,
    exact_splits: int = EXACT_SPLITS,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[Floats, Floats]:
    """Return both one-sided p-values, for `greater` and for `less`: (…, n), (…, m) → (…), (…). See `permutation_p`."""
    base = as_runs(baseline)
    new = as_runs(candidate)
    shape = np.broadcast_shapes(base.shape[:-1], new.shape[:-1])
    base = np.broadcast_to(base, (*shape, base.shape[-1])).reshape(-1, base.shape[-1])
    new = np.broadcast_to(new, (*shape, new.shape[-1])).reshape(-1, new.shape[-1])
    splits = _Splits.of(base.shape[-1], new.shape[-1], exact_splits=exact_splits, resamples=resamples, seed=seed)
    rows = max(1, _BLOCK // splits.count)
    parts = [
        _one_sided(base[start : start + rows], new[start : start + rows], splits) for start in range(0, len(base), rows)
    ]
    above, below = (np.concatenate(tail) for tail in zip(*parts, strict=True))
    return above.reshape(shape), below.reshape(shape)


def _choose_tail(above: Floats, below: Floats, alternative: Alternative) -> Floats:
    tails = {"greater": above, "less": below, "two-sided": np.minimum(1.0, 2 * np.minimum(above, below))}
    return np.asarray(tails[alternative])


def _one_sided(base: Floats, new: Floats, splits: _Splits) -> tuple[Floats, Floats]:
    """Return p for `greater` and `less` of (sims, n) and (sims, m).

    A relabelling is at least as extreme as the observed one exactly if its exchanged difference is ≤ 0 (for `greater`)
    or ≥ 0 (for `less`). The 1 is the observed split itself, so p is never 0.
    """
    exchanged = splits.exchanged(base, new)
    tie = _TIE * (np.maximum(base.max(-1), new.max(-1)) - np.minimum(base.min(-1), new.min(-1)))[:, None]
    above = 1 + np.count_nonzero(exchanged <= tie, axis=-1)
    below = 1 + np.count_nonzero(exchanged >= -tie, axis=-1)
    return above / splits.count, below / splits.count


def permutation_interval(
    baseline: ArrayLike, candidate: ArrayLike, *, below: float = 0.025, above: float = 0.025, seed: int = 0
) -> Interval:
    """Return the shifts of the candidate's mean that `permutation_p` does not reject: (n,), (m,) → interval.

    `below` and `above` are the one-sided levels of the two ends, so `low > 0` exactly if the test for `greater` has
    p ≤ `below`. Like every interval for a shift, it assumes that the candidate moves the returns and keeps their shape.
    An end is infinite if there are too few runs for its level: 3 v 3 reaches .05 but not .025.
    """
    base = as_runs(baseline)
    new = as_runs(candidate)
    sizes = base.shape[-1], new.shape[-1]
    splits = _Splits.of(*sizes, exact_splits=EXACT_SPLITS, resamples=RESAMPLES, seed=seed)
    exchanged = np.sort(splits.exchanged(base[None], new[None])[0])
    exchanged[np.abs(exchanged) <= _TIE * np.ptp(np.concatenate([base, new]))] = 0.0
    # A shift D is rejected from below if fewer than `below` of all splits have an exchanged difference ≤ D. So the end
    # of the interval is the k-th smallest difference, with k the number of splits that the level allows.
    low_rank = int(below * splits.count + _TIE)
    high_rank = int(above * splits.count + _TIE)
    if low_rank >= 1:
        low = float(exchanged[low_rank - 1])
    else:
        low = -math.inf
    high = math.inf
    if high_rank >= 1:
        high = float(exchanged[-high_rank])
    return Interval(low, high, 1 - below - above)


@dataclass(frozen=True)
class _Splits:
    """The ways to split n + m pooled runs into n and m, other than the observed one.

    A split exchanges k candidate runs for k baseline runs. Suppose the candidate is shifted by D. Then the split's mean
    difference is at least the observed one exactly if D ≥ (mean of the k candidate runs − mean of the k baseline runs).
    So these *exchanged differences* are all that the test (D = 0) and the interval (their order statistics) need.

    Exact splits are index pairs by k (`sides`); random splits are a weight matrix. Both are cached by size.
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
        for base_runs, new_runs in self.sides:
            difference = new[:, new_runs].mean(-1)[:, :, None] - base[:, base_runs].mean(-1)[:, None, :]
            blocks.append(difference.reshape(len(base), -1))
        return np.concatenate(blocks, axis=-1)


def _subsets(count: int, size: int) -> NDArray[np.intp]:
    return np.array(list(combinations(range(count), size)), dtype=np.intp)


def _random_exchanges(n: int, m: int, resamples: int, generator: np.random.Generator) -> Floats:
    """Return random splits as columns (n + m, resamples) that turn pooled scores into exchanged differences."""
    is_candidate = np.repeat([0.0, 1.0], [n, m])
    moved = is_candidate - _random_members(n, m, resamples, generator)
    size = np.maximum(moved, 0).sum(axis=1, keepdims=True)
    keep = size[:, 0] > 0  # drop draws of the observed split: the caller counts that one once
    return np.ascontiguousarray((moved[keep] / size[keep]).T)


def _random_members(n: int, m: int, resamples: int, generator: np.random.Generator) -> NDArray[np.bool_]:
    """Draw which m of n + m runs a random split gives to the candidate: (resamples, n + m)."""
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
    """Return the p-value of the mean difference over several tasks, permuted within each: (n, tasks), (m, tasks).

    Each task is divided by the spread of its pooled runs, which no permutation changes, so a task counts by its signal
    and not by its units. The test is exact if half of the tasks have at most `exact_splits` joint splits: the two
    halves are combined by sorting (5 v 5 on four tasks: all 4·10⁹ splits). Beyond that, splits are random.
    Within-stratum permutation: Good, *Permutation Tests* (2000), ch. 6.
    """
    base = as_matrix(baseline)
    new = as_matrix(candidate)
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
    return float(_choose_tail(np.asarray(above), np.asarray(below), alternative))


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
    above = 1 + np.count_nonzero(change >= -tie)
    below = 1 + np.count_nonzero(change <= tie)
    return above / (1 + resamples), below / (1 + resamples)
