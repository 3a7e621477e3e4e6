"""Reward terms over a run: shares, flatness, saturation, how they go with the task metric, hacking; pure, on series.

Levels are means over tenths of the run. Nothing depends on units: changes are measured by a curve's own range, and by
its own noise (the root mean square of successive differences, without the largest tenth).

What is not covered: hacking that the task metric itself does not see, and any where there is no task metric apart from
the reward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rlx.diagnose.divergence import (
    FEWEST_POINTS,
    POINTS,
    RATES,
    SOLVED,
    STILL,
    Array,
    Divergence,
    divergence,
    end_level,
    finite_mean,
    known_part,
    last_step,
    level_error,
    points,
)
from rlx.runs.metrics import Series

DOMINATION = 0.8
"""Share of |reward| above which a term drowns the others."""
SATURATION = 0.01
"""Share of its own range within which a saturated term stays (Eureka, arXiv 2310.12931: a term that does not vary)."""
SATURATED_POINTS = 4
WORTH = 0.05
"""Share of |reward| below which a saturated term does not matter."""
CULPRIT = 0.5
"""Share of what all rising terms gained that the blamed one brought."""


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
        return last_step(self.returns, *self.per_step.values())

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
    """The reward went up while the task metric did not; `term` brought most of it: `paid`, then and at the end."""

    term: str
    divergence: Divergence
    paid: tuple[float, float]


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
        len(late) and np.ptp(late) <= max(STILL * float(np.ptp(history.task.values)), level_error(history.task, POINTS))
    )


def hack(history: SeedTerms, metric: str) -> Hack | None:
    """Find from when on the return rose while the task metric did not, and the term that brought most of it."""
    if history.task is None:
        return None
    found = divergence(history.returns, history.task, metric)
    return None if found is None else _blamed(history, found)


def _blamed(history: SeedTerms, found: Divergence) -> Hack | None:
    """Name the term that brought most of what the rising terms gained since then; None where none did."""
    levels = {name: history.points(series) for name, series in history.per_episode.items()}
    spans = {name: (float(curve[found.tenth]), end_level(known_part(curve))) for name, curve in levels.items()}
    rising = {name: end - start for name, (start, end) in spans.items() if end > start}
    term = max(rising, key=lambda name: rising[name], default=None)
    if term is None or rising[term] < CULPRIT * sum(rising.values()):
        return None
    return Hack(term, found, spans[term])
