"""Reward terms over a run: shares, flatness, saturation, how they go with the task metric, hacking; pure, on series.

Levels are means over tenths of the run. Nothing depends on units: changes are measured by a curve's own range, and by
its own noise (the root mean square of successive differences, without the largest tenth).

What is not covered: hacking that the task metric itself does not see, and any where there is no task metric apart from
the reward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlx.runs.metrics import Series

POINTS = 10
FEWEST_POINTS = 5
"""Tenths of the run in which both a term and the task metric must be known, for anything to be judged."""
DOMINATION = 0.8
"""Share of |reward| above which a term drowns the others."""
SATURATION = 0.01
"""Share of its own range within which a saturated term stays (Eureka, arXiv 2310.12931: a term that does not vary)."""
SATURATED_POINTS = 4
WORTH = 0.05
"""Share of |reward| below which a saturated term does not matter."""
SOLVED = 0.9
"""A success or pass rate that ends here or higher: whatever the terms do, the task is learned."""
LOSS, RATE_LOSS = 0.5, 0.2
"""What the task metric loses from its peak to the end: of its range and, where it is a rate, of 1."""
STILL = 0.1
"""What a rate may change and still be called flat."""
GAIN, FLAT_GAIN = 0.1, 0.25
"""What the return gains meanwhile, of its range: while the task metric falls, or stays flat."""
SURE = 4.0
"""Standard errors by which the fall or the gain exceeds noise; more than the peak's luck gives."""
CULPRIT = 0.5
"""Share of what all rising terms gained that the blamed one brought."""
RATES = ("success_rate", "pass_rate")

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class SeedTerms:
    """One seed's reward over its steps: each term per step (mean, mean size) and per episode; the task metric."""

    seed: int
    per_step: Mapping[str, Series]
    size: Mapping[str, Series]
    per_episode: Mapping[str, Series]
    returns: Series
    task: Series | None = None

    @property
    def last_step(self) -> float:
        return max((float(one.steps.max()) for one in (*self.per_step.values(), self.returns) if len(one)), default=0.0)

    def points(self, series: Series) -> Array:
        """Return the mean in each tenth of the run; NaN where there is none."""
        return points(series, self.last_step)

    def shares(self) -> dict[str, float]:
        """Return each term's share of the terms' summed size."""
        sizes = {name: finite_mean(series.values) for name, series in self.size.items()}
        total = sum(size for size in sizes.values() if size == size)
        return {name: size / total if total > 0 else 0.0 for name, size in sizes.items()}


@dataclass(frozen=True)
class Hack:
    """The reward went up while the task metric did not, from `step` on; `term` brought most of it."""

    term: str
    step: int
    is_fall: bool
    task: tuple[float, float]
    paid: tuple[float, float]
    last_step: int


def points(series: Series, last_step: float) -> Array:
    """Return the means of a series in ten equal stretches of the steps; NaN before the first and after the last one.

    A stretch without a value, between two that have one, is interpolated.
    """
    where = np.clip(np.ceil(series.steps / max(last_step, 1.0) * POINTS).astype(int) - 1, 0, POINTS - 1)
    means = np.array([finite_mean(series.values[where == index]) for index in range(POINTS)])
    known = np.flatnonzero(np.isfinite(means))
    if len(known):
        inner = np.arange(known[0], known[-1] + 1)
        means[inner] = np.interp(inner, known, means[known])
    return means


def finite_mean(values: Array) -> float:
    """Return the mean of the finite values; NaN where there is none."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else float("nan")


def mean_shares(seeds: Sequence[SeedTerms]) -> dict[str, float]:
    """Return each term's share of |reward|, averaged over seeds; nothing where there is only one term."""
    shares = [history.shares() for history in seeds]
    names = dict.fromkeys(name for one in shares for name in one)
    return {name: sum(one.get(name, 0.0) for one in shares) / len(shares) for name in names} if len(names) > 1 else {}


def is_flat(*curves: Array) -> bool:
    """Say whether none of these curves varies by more than a hundredth of its size."""
    known = [curve[np.isfinite(curve)] for curve in curves]
    return all(len(one) > 0 and np.ptp(one) <= SATURATION * np.abs(one).max() for one in known)


def is_saturated(curve: Array) -> bool:
    """Say whether a curve that has varied stays at its highest or lowest value for the last four tenths."""
    known = curve[np.isfinite(curve)]
    if len(known) < FEWEST_POINTS or is_flat(known):
        return False
    room = SATURATION * np.ptp(known)
    late = known[-SATURATED_POINTS:]
    return bool(np.ptp(late) <= room and (late.max() >= known.max() - room or late.min() <= known.min() + room))


def correlation(one: Array, other: Array) -> float | None:
    """Return Spearman's rank correlation of two curves; None where one is constant or too little is known."""
    known = np.isfinite(one) & np.isfinite(other)
    if known.sum() < FEWEST_POINTS:
        return None
    ranks = [_ranks(curve[known]) for curve in (one, other)]
    if any(np.ptp(rank) == 0 for rank in ranks):
        return None
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: Array) -> Array:
    """Return ranks, those of equal values averaged."""
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((last - counts + last - 1) / 2.0)[where]


def task_correlation(history: SeedTerms, term: str) -> float | None:
    """Return how a term, per episode, goes with the task metric over the run."""
    if history.task is None:
        return None
    return correlation(history.points(history.per_episode[term]), history.points(history.task))


def is_solved(history: SeedTerms, metric: str) -> bool:
    """Say whether the task metric is a rate and ends high."""
    if history.task is None or metric not in RATES:
        return False
    return end_level(known_part(history.points(history.task))) >= SOLVED


def is_stuck(history: SeedTerms, term: str, metric: str) -> bool:
    """Say whether a term stays at its bound and the task metric, not learned yet, stays with it."""
    if history.task is None or is_solved(history, metric) or not is_saturated(history.points(history.per_step[term])):
        return False
    late = known_part(history.points(history.task))[-SATURATED_POINTS:]
    return bool(
        len(late) and np.ptp(late) <= max(STILL * float(np.ptp(history.task.values)), _error(history.task, POINTS))
    )


def hack(history: SeedTerms, metric: str) -> Hack | None:
    """Find from when on the return rose while the task metric fell, or stayed flat; None where it did not."""
    if history.task is None or is_solved(history, metric):
        return None
    task, returns = history.points(history.task), history.points(history.returns)
    known = np.isfinite(task) & np.isfinite(returns)
    if known.sum() < FEWEST_POINTS:
        return None
    curves = _Curves(history, task[known], returns[known], known)
    fall = curves.fall(metric)
    start = fall if fall is not None else curves.standstill(metric)
    return None if start is None else curves.blame(start, is_fall=fall is not None)


class _Curves:
    """The tenths of a run in which both the return and the task metric are known."""

    def __init__(
        self, history: SeedTerms, task: Array, returns: Array, known: np.ndarray[Any, np.dtype[np.bool_]]
    ) -> None:
        assert history.task is not None
        self.history, self.task, self.returns, self.known = history, task, returns, known
        self.task_error = _error(history.task, len(task))
        self.return_error = _error(history.returns, len(returns))

    def fall(self, metric: str) -> int | None:
        """Return the tenth of the task metric's peak, where it falls from there to the end while the return rises."""
        peak = len(self.task) - 1 - int(np.argmax(self.task[::-1]))
        lost = self.task[peak] - end_level(self.task)
        least = max(LOSS * float(np.ptp(self.task)), RATE_LOSS if metric in RATES else 0.0, SURE * self.task_error)
        falls = peak < len(self.task) - 2 and lost > 0 and lost >= least
        return peak if falls and self._gains(peak, GAIN) else None

    def standstill(self, metric: str) -> int | None:
        """Return since when the task metric stood still while the return rose: the start, for rates also the middle."""
        starts = (0, len(self.task) // 2) if metric in RATES else (0,)
        for start in starts:
            change = abs(end_level(self.task) - self.task[start])
            limit = STILL if metric in RATES else max(SURE * self.task_error, STILL * float(np.ptp(self.task)))
            is_still = change <= limit and np.ptp(self.task[start:]) <= max(limit * 2, SURE * self.task_error)
            if is_still and self._gains(start, FLAT_GAIN):
                return start
        return None

    def _gains(self, start: int, share: float) -> bool:
        gain = end_level(self.returns) - self.returns[start]
        return bool(gain > 0 and gain >= max(share * float(np.ptp(self.returns)), SURE * self.return_error))

    def blame(self, start: int, *, is_fall: bool) -> Hack | None:
        """Name the term that brought most of what the rising terms gained since then; None where none did."""
        levels = {name: self.history.points(series)[self.known] for name, series in self.history.per_episode.items()}
        gains = {name: end_level(curve) - curve[start] for name, curve in levels.items() if np.isfinite(curve).all()}
        rising = {name: gain for name, gain in gains.items() if gain > 0}
        term = max(rising, key=lambda name: rising[name], default=None)
        if term is None or rising[term] < CULPRIT * sum(rising.values()):
            return None
        last = self.history.last_step
        tenth = int(np.flatnonzero(self.known)[start]) + (1 if is_fall else 0)
        paid = float(levels[term][start]), end_level(levels[term])
        task = float(self.task[start]), end_level(self.task)
        return Hack(term, round(tenth / POINTS * last), is_fall, task, paid, round(last))


def end_level(curve: Array) -> float:
    """Return the level in the last two tenths."""
    return float(curve[-2:].mean()) if len(curve) else float("nan")


def known_part(curve: Array) -> Array:
    """Return the finite values."""
    return curve[np.isfinite(curve)]


def _error(series: Series, count: int) -> float:
    """Return the standard error of the difference between one tenth and the mean of two."""
    values = known_part(series.values)
    steps = np.sort(np.abs(np.diff(values)))[: int(0.9 * max(0, len(values) - 1))]  # a change of level is no noise
    if not len(steps):
        return 0.0
    noise = float(np.sqrt(np.mean(steps**2) / 2.0))
    return noise * float(np.sqrt(1.5 / max(1.0, len(values) / count)))
