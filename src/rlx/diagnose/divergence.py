"""The return rises while the task metric does not: the one definition of it, for reflection and for the rules; pure.

Levels are means over tenths of the run. Units do not matter: changes are measured by a curve's own range, and by its
own noise (the root mean square of successive differences, without the largest tenth).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rlx.runs.metrics import Series

POINTS = 10
FEWEST_POINTS = 5
"""Tenths of the run in which both a term and the task metric must be known, for anything to be judged."""
SOLVED = 0.9
"""A success or pass rate that ends here or higher: whatever the terms do, the task is learned."""
LOSS, RATE_LOSS = 0.5, 0.1
"""What the task metric loses from its peak to the end: of its range and, where it is a rate, of 1."""
STILL = 0.1
"""What a rate may change and still be called flat."""
GAIN, FLAT_GAIN = 0.1, 0.25
"""What the return gains meanwhile, of its range: while the task metric falls, or stays flat."""
SURE = 4.0
"""Standard errors by which the fall or the gain exceeds noise; more than the peak's luck gives."""
RATES = ("success_rate", "pass_rate")

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Divergence:
    """From `step` on, the `tenth` part of the run, the return rose while the task metric fell or stood still.

    `task` and `returns` are the levels then and at the end.
    """

    tenth: int
    step: int
    last_step: int
    is_fall: bool
    task: tuple[float, float]
    returns: tuple[float, float]


def last_step(*series: Series) -> float:
    """Return the last step that any of these has."""
    return max((float(one.steps.max()) for one in series if len(one)), default=0.0)


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


def end_level(curve: Array) -> float:
    """Return the level in the last two tenths."""
    return float(curve[-2:].mean()) if len(curve) else float("nan")


def known_part(curve: Array) -> Array:
    """Return the finite values."""
    return curve[np.isfinite(curve)]


def level_error(series: Series, count: int) -> float:
    """Return the standard error of the difference between one tenth and the mean of two."""
    values = known_part(series.values)
    steps = np.sort(np.abs(np.diff(values)))[: int(0.9 * max(0, len(values) - 1))]  # a change of level is no noise
    if not len(steps):
        return 0.0
    noise = float(np.sqrt(np.mean(steps**2) / 2.0))
    return noise * float(np.sqrt(1.5 / max(1.0, len(values) / count)))


def divergence(returns: Series, task: Series, metric: str) -> Divergence | None:
    """Find from when on the return rose while the task metric fell, or stayed flat; None where it did not.

    A rate that ends high is no reason to complain, whatever the return does.
    """
    last = last_step(returns, task)
    curves = points(task, last), points(returns, last)
    known = np.isfinite(curves[0]) & np.isfinite(curves[1])
    if known.sum() < FEWEST_POINTS:
        return None
    errors = [level_error(series, int(known.sum())) for series in (task, returns)]
    both = _Both(curves[0][known], curves[1][known], metric, *errors)
    if metric in RATES and end_level(both.task) >= SOLVED:
        return None
    fall = both.fall()
    start = both.standstill() if fall is None else fall
    if start is None:
        return None
    tenth = int(np.flatnonzero(known)[start])
    step = round((tenth + (fall is not None)) / POINTS * last)
    task_span, return_span = ((float(curve[start]), end_level(curve)) for curve in (both.task, both.returns))
    return Divergence(tenth, step, round(last), fall is not None, task_span, return_span)


@dataclass(frozen=True)
class _Both:
    """The tenths of a run in which both the return and the task metric are known, with their standard errors."""

    task: Array
    returns: Array
    metric: str
    task_error: float
    return_error: float

    def fall(self) -> int | None:
        """Return the tenth of the task metric's peak, where it falls from there to the end while the return rises."""
        peak = len(self.task) - 1 - int(np.argmax(self.task[::-1]))
        lost = self.task[peak] - end_level(self.task)
        least = max(LOSS * float(np.ptp(self.task)), RATE_LOSS if self.metric in RATES else 0.0, SURE * self.task_error)
        falls = peak < len(self.task) - 2 and lost > 0 and lost >= least
        return peak if falls and self._gains(peak, GAIN) else None

    def standstill(self) -> int | None:
        """Return since when the task metric stood still while the return rose: the start, for rates also the middle."""
        is_rate = self.metric in RATES
        for start in (0, len(self.task) // 2) if is_rate else (0,):
            change = abs(end_level(self.task) - self.task[start])
            limit = STILL if is_rate else max(SURE * self.task_error, STILL * float(np.ptp(self.task)))
            is_still = change <= limit and np.ptp(self.task[start:]) <= max(limit * 2, SURE * self.task_error)
            if is_still and self._gains(start, FLAT_GAIN):
                return start
        return None

    def _gains(self, start: int, share: float) -> bool:
        gain = end_level(self.returns) - self.returns[start]
        return bool(gain > 0 and gain >= max(share * float(np.ptp(self.returns)), SURE * self.return_error))
