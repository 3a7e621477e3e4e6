"""Statistics on reward terms over a run: shares, saturation, correlation with the task metric, hacking. Pure.

Levels are means over tenths of the run. Units do not matter: changes are measured by a curve's own range and by its own
noise (the root mean square of successive differences, without the largest tenth).

Limits: hacking that the task metric does not see, and runs without a task metric apart from the reward.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rlx.diagnose.reward_terms.proxy_divergence import (
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
"""Share of what all rising terms gained that the blamed term must have brought."""
RATE_VARIES = 0.05
"""A success or pass rate that moves less than this over the run does not correlate with anything."""
FEWEST_VALUES = 10
"""Values that a term must have before it is called constant."""


@dataclass(frozen=True)
class SeedTerms:
    """One seed's reward over its steps: each term per step (mean, mean size) and per episode, and the task metric."""

    seed: int
    per_step: Mapping[str, Series]
    size: Mapping[str, Series]
    per_episode: Mapping[str, Series]
    returns: Series
    task: Series | None = None

    @property
    def has_terms(self) -> bool:
        return bool(self.per_step or self.size)

    @property
    def last_step(self) -> float:
        return last_step(self.returns, *self.per_step.values())

    def points(self, series: Series) -> Array:
        """Return the mean in each tenth of the run, NaN if there is none."""
        return points(series, self.last_step)

    def shares(self, *, is_late: bool = False) -> dict[str, float]:
        """Return each term's share of the terms' summed size, over the run or over its last two fifths."""
        sizes = {name: finite_mean(series.values) for name, series in self.size.items()}
        if is_late:
            late = {name: series.values[-max(1, len(series) * 2 // 5) :] for name, series in self.size.items()}
            known = {name: known_part(values) for name, values in late.items()}
            sizes = {name: float(np.median(values)) for name, values in known.items() if len(values)}
        total = sum(size for size in sizes.values() if np.isfinite(size))
        return {name: size / total if total > 0 else 0.0 for name, size in sizes.items()}

    def constant_terms(self) -> dict[str, float]:
        """Return the terms that never change, with their spread as a share of their size."""
        spreads = {}
        for name, series in self.per_step.items():
            values = known_part(series.values)
            if len(values) >= FEWEST_VALUES:
                size = float(np.abs(values).max())
                spreads[name] = float(np.std(values)) / size if size else 0.0
        return {name: spread for name, spread in spreads.items() if spread < SATURATION}


@dataclass(frozen=True)
class RewardHack:
    """The return rose while the task metric did not. `term` brought most of it, or is empty if no term did.

    `paid` is what the term (or the return) was worth per episode, then and at the end.
    """

    term: str
    divergence: Divergence
    paid: tuple[float, float]


def mean_shares(seeds: Sequence[SeedTerms], *, is_late: bool = False) -> dict[str, float]:
    """Return each term's share of |reward|, averaged over seeds, or nothing if there is only one term."""
    shares = [seed.shares(is_late=is_late) for seed in seeds]
    names = dict.fromkeys(name for share in shares for name in share)
    if len(names) < 2:
        return {}
    return {name: sum(share.get(name, 0.0) for share in shares) / len(shares) for name in names}


def is_penalty(seeds: Sequence[SeedTerms], term: str) -> bool:
    """Say whether a term never paid anything, on any seed."""
    paid = [known_part(seed.per_step[term].values) for seed in seeds if term in seed.per_step]
    return any(len(values) for values in paid) and all(bool(np.all(values <= 0)) for values in paid)


def is_flat(*curves: Array) -> bool:
    """Say whether none of these curves varies by more than a hundredth of its size."""
    known = [known_part(curve) for curve in curves]
    return all(len(curve) > 0 and np.ptp(curve) <= SATURATION * np.abs(curve).max() for curve in known)


def is_saturated(curve: Array) -> bool:
    """Say whether a curve that has varied stays at its highest or lowest value for the last four tenths."""
    known = known_part(curve)
    if len(known) < FEWEST_POINTS or is_flat(known):
        return False
    room = SATURATION * np.ptp(known)
    late = known[-SATURATED_POINTS:]
    return bool(np.ptp(late) <= room and (late.max() >= known.max() - room or late.min() <= known.min() + room))


def correlation(first: Array, second: Array) -> float | None:
    """Return Spearman's rank correlation of two curves, or None if one is constant or too little is known."""
    known = np.isfinite(first) & np.isfinite(second)
    if known.sum() < FEWEST_POINTS:
        return None
    ranks = [_ranks(curve[known]) for curve in (first, second)]
    if any(np.ptp(rank) == 0 for rank in ranks):
        return None
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: Array) -> Array:
    """Return ranks. Equal values share the mean of their ranks."""
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((last - counts + last - 1) / 2.0)[where]


def task_correlation(seed: SeedTerms, term: str, metric: str) -> float | None:
    """Return how a term, per episode, correlates with the task metric over the run."""
    if seed.task is None or term not in seed.per_episode:
        return None
    task = seed.points(seed.task)
    known = known_part(task)
    if len(known) and metric in RATES and float(np.ptp(known)) < RATE_VARIES:
        return None  # a rate that hardly moves has ranks of noise
    return correlation(seed.points(seed.per_episode[term]), task)


def is_solved(seed: SeedTerms, metric: str) -> bool:
    """Say whether the task metric is a rate and ends high."""
    if seed.task is None or metric not in RATES:
        return False
    return end_level(known_part(seed.points(seed.task))) >= SOLVED


def is_stuck(seed: SeedTerms, term: str, metric: str) -> bool:
    """Say whether a term stays at its bound and the task metric, which is not solved yet, stays still too."""
    if seed.task is None or is_solved(seed, metric) or not is_saturated(seed.points(seed.per_step[term])):
        return False
    late = known_part(seed.points(seed.task))[-SATURATED_POINTS:]
    limit = max(STILL * float(np.ptp(seed.task.values)), level_error(seed.task, POINTS))
    return bool(len(late) and np.ptp(late) <= limit)


def find_hack(seed: SeedTerms, metric: str) -> RewardHack | None:
    """Find when the return began to rise while the task metric did not, and the bonus that brought most of it.

    A penalty cannot be farmed by shrinking. If shrinking penalties brought the rise, only a task metric that falls
    counts: one that stays may still come.
    """
    if seed.task is None:
        return None
    moment = divergence(seed.returns, seed.task, metric)
    if moment is None:
        return None
    spans: dict[str, tuple[float, float]] = {}
    for name, series in seed.per_episode.items():
        curve = seed.points(series)
        spans[name] = (float(curve[moment.tenth]), end_level(known_part(curve)))
    rising = {name: end - start for name, (start, end) in spans.items() if end > start}
    bonuses = {name: gain for name, gain in rising.items() if spans[name][1] > 0}
    term = max(bonuses, key=lambda name: bonuses[name], default="")
    if term and bonuses[term] >= CULPRIT * sum(rising.values()):
        return RewardHack(term, moment, spans[term])
    is_return_alone = not spans and metric not in RATES
    if moment.is_fall or is_return_alone:
        return RewardHack("", moment, moment.returns)
    return None


def find_hacks(seeds: Sequence[SeedTerms], metric: str) -> dict[int, RewardHack]:
    """Find the seeds whose reward is hacked, if most seeds show it. One seed alone may be bad luck."""
    judged = [seed for seed in seeds if seed.task is not None]
    hacks = {}
    for seed in judged:
        hack = find_hack(seed, metric)
        if hack is not None:
            hacks[seed.seed] = hack
    if 2 * len(hacks) <= len(judged):
        return {}
    return hacks
