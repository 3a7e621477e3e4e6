"""The learning gate's judgement of two populations of scores, following the plan in bench/learning.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlx.compare.permutation import permutation_interval

Floats = NDArray[np.float64]

SMALLEST_MARGIN = 0.01
MOST_BELOW = 0.25
RESAMPLES = 20_000


@dataclass(frozen=True)
class Look:
    """One look: its seeds per side, the first seed's place, and the level."""

    seeds: int
    level: float
    first: int = 0

    @property
    def places(self) -> range:
        return range(self.first, self.first + self.seeds)


@dataclass(frozen=True)
class Gate:
    """Its looks, the mean's margin as a share of SB3's spread, and whether the tail counts."""

    name: str
    looks: tuple[Look, ...]
    margin_sd: float
    has_tail: bool


MEAN = Gate("mean", looks=(Look(30, 0.0294), Look(60, 0.0294)), margin_sd=0.75, has_tail=False)
STRICT = Gate("strict", looks=(Look(100, 0.05), Look(200, 0.01, first=100)), margin_sd=0.5, has_tail=True)


@dataclass(frozen=True)
class Judgement:
    """The result of a look."""

    seeds: int
    sb3_mean: float
    sb3_sd: float
    sb3_tail: float
    fast_mean: float
    fast_sd: float
    fast_tail: float
    bound: float
    margin: float
    below: float
    below_bound: float
    passed: bool


def judge(baseline: Sequence[float], candidate: Sequence[float], *, gate: Gate, level: float) -> Judgement:
    """Judge one look of a gate."""
    sb3, fast = np.array(baseline), np.array(candidate)
    sd = float(sb3.std(ddof=1))
    margin = max(gate.margin_sd * sd, SMALLEST_MARGIN * abs(float(sb3.mean())))
    bound = permutation_interval(sb3, fast, below=level, above=level).low
    below, below_bound = share_below(sb3, fast, level=level)
    return Judgement(
        seeds=len(sb3),
        sb3_mean=float(sb3.mean()),
        sb3_sd=sd,
        sb3_tail=worst_tenth(sb3),
        fast_mean=float(fast.mean()),
        fast_sd=float(fast.std(ddof=1)),
        fast_tail=worst_tenth(fast),
        bound=bound,
        margin=margin,
        below=below,
        below_bound=below_bound,
        passed=bound > -margin and (not gate.has_tail or below_bound <= MOST_BELOW),
    )


def worst_tenth(scores: Floats) -> float:
    """Return the mean of the lowest tenth of the scores."""
    return float(np.sort(scores)[: max(1, len(scores) // 10)].mean())


def share_below(sb3: Floats, fast: Floats, *, level: float) -> tuple[float, float]:
    """Return the share of `fast` below SB3's worst decile and its one-sided upper bound (both sides redrawn)."""
    generator = np.random.default_rng(0)
    ours, theirs = (side[generator.integers(len(side), size=(RESAMPLES, len(side)))] for side in (fast, sb3))
    shares = (ours < np.quantile(theirs, 0.1, axis=1)[:, None]).mean(axis=1)
    below = float((fast < np.quantile(sb3, 0.1)).mean())
    return below, float(np.quantile(shares, 1 - level))
