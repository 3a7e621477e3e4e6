"""Planning a comparison: how many seeds find an effect, which effect some seeds find, what failure-free seeds prove."""

from __future__ import annotations

import math
from statistics import NormalDist


def seeds_needed(effect: float, *, alpha: float = 0.05, power: float = 0.8) -> int:
    """Return the runs per side that detect a shift of `effect` standard deviations (one-sided, normal approximation).

    2((z₁₋α + z_power)/d)², e.g. 13 per side for d = 1 (Colas et al. 2018, arXiv 1806.08295). This is for one fixed
    look; see `interim_plan` for the power of the declared plan.
    """
    if effect == 0:
        raise ValueError("no number of runs detects a shift of zero")
    return math.ceil(2 * (_z(alpha, power) / effect) ** 2)


def detectable_effect(runs: int, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Return the shift, in standard deviations, that `runs` per side detect: the inverse of `seeds_needed`."""
    return _z(alpha, power) * math.sqrt(2 / runs)


def _z(alpha: float, power: float) -> float:
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha) + normal.inv_cdf(power)


def failure_bound(failures: int, runs: int, *, level: float = 0.95) -> float:
    """Return the largest share of failing seeds that `failures` of `runs` still allow, at one-sided `level`.

    Clopper & Pearson 1934, by bisection: 0 of 11 allow 24 %, 0 of 29 allow 10 %.
    """
    if not 0 <= failures <= runs or runs < 1:
        raise ValueError(f"{failures} failures of {runs} runs")
    if failures == runs:
        return 1.0
    low = failures / runs
    high = 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _at_most(failures, runs, middle) > 1 - level:
            low = middle
        else:
            high = middle
    return high


def _at_most(failures: int, runs: int, share: float) -> float:
    """Return the probability of at most `failures` in `runs` that each fail with probability `share`."""
    return math.fsum(math.comb(runs, k) * share**k * (1 - share) ** (runs - k) for k in range(failures + 1))
