"""When the return rises while the task metric does not. Pure, on tenths of the run.

Levels are means over tenths of the run. Units do not matter: changes are measured by a curve's own range and by its own
noise (the root mean square of successive differences, without the largest tenth).
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
"""A task is learned if its success or pass rate ends here or higher, whatever the terms do."""
LOSS = 0.5
RATE_LOSS = 0.1
RATE_SHARE_LOST = 0.25
"""What the task metric loses from its peak to the end: a share of its range; for a rate, of 1 and of its peak."""
STILL = 0.1
"""A metric that changes less than this share of its range is flat."""
RATE_STILL = 0.03
"""A rate that rises by less than this is flat."""
RISE_ERRORS = 2.0
"""A rise by more than so many standard errors is progress, however noisy the metric is."""
GAIN = 0.1
FLAT_GAIN = 0.25
"""What the return gains meanwhile, as a share of its range, if the task metric falls or stays flat."""
SURE = 4.0
"""Standard errors by which the fall or the gain exceeds noise. Picking the peak gives less than that."""
RATES = ("success_rate", "pass_rate")

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Divergence:
    """From `step` on (in this `tenth` of the run), the return rose while the task metric fell or stood still.

    `task` and `returns` are the levels then and at the end.
    """

    tenth: int
    step: int
    last_step: int
    is_fall: bool
    task: tuple[float, float]
    returns: tuple[float, float]


def last_step(*series: Series) -> float:
    """Return the last step of any of these series."""
    return max((float(curve.steps.max()) for curve in series if len(curve)), default=0.0)


def points(series: Series, last_step: float) -> Array:
    """Return the means of a series in ten equal stretches of the steps, NaN before the first and after the last value.

    A stretch without a value between two that have one is interpolated.
    """
    where = np.clip(np.ceil(series.steps / max(last_step, 1.0) * POINTS).astype(int) - 1, 0, POINTS - 1)
    means = np.array([finite_mean(series.values[where == index]) for index in range(POINTS)])
    known = np.flatnonzero(np.isfinite(means))
    if len(known):
        inner = np.arange(known[0], known[-1] + 1)
        means[inner] = np.interp(inner, known, means[known])
    return means


def finite_mean(values: Array) -> float:
    """Return the mean of the finite values, or NaN if there are none."""
    finite = known_part(values)
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
    steps = np.sort(np.abs(np.diff(values)))[: int(0.9 * max(0, len(values) - 1))]  # a change of level is not noise
    if not len(steps):
        return 0.0
    noise = float(np.sqrt(np.mean(steps**2) / 2.0))
    return noise * float(np.sqrt(1.5 / max(1.0, len(values) / count)))


def divergence(returns: Series, task: Series, metric: str) -> Divergence | None:
    """Find when the return began to rise while the task metric fell or stayed flat. Returns None if it did not.

    A rate that ends high is never a divergence, whatever the return does.
    """
    last = last_step(returns, task)
    task_points = points(task, last)
    return_points = points(returns, last)
    known = np.isfinite(task_points) & np.isfinite(return_points)
    count = int(known.sum())
    if count < FEWEST_POINTS:
        return None
    curves = _Curves(
        task_points[known], return_points[known], metric in RATES, level_error(task, count), level_error(returns, count)
    )
    if metric in RATES and end_level(curves.task) >= SOLVED:
        return None
    fall = curves.find_fall()
    start = curves.find_standstill() if fall is None else fall
    if start is None:
        return None
    tenth = int(np.flatnonzero(known)[start])
    step = round((tenth + (fall is not None)) / POINTS * last)
    task_span = (float(curves.task[start]), end_level(curves.task))
    return_span = (float(curves.returns[start]), end_level(curves.returns))
    return Divergence(tenth, step, round(last), fall is not None, task_span, return_span)


@dataclass(frozen=True)
class _Curves:
    """The tenths of a run in which both the return and the task metric are known, with their standard errors."""

    task: Array
    returns: Array
    is_rate: bool
    task_error: float
    return_error: float

    def find_fall(self) -> int | None:
        """Return the tenth of the task metric's peak if it falls from there to the end while the return rises."""
        peak = len(self.task) - 1 - int(np.argmax(self.task[::-1]))
        lost = self.task[peak] - end_level(self.task)
        least = max(LOSS * float(np.ptp(self.task)), SURE * self.task_error)
        if self.is_rate:
            least = max(RATE_SHARE_LOST * float(self.task[peak]), RATE_LOSS, SURE * self.task_error)
        is_fall = peak < len(self.task) - 2 and lost > 0 and lost >= least
        if not is_fall or not self._return_gains(peak, GAIN):
            return None
        return peak

    def find_standstill(self) -> int | None:
        """Return since when the task metric stood still while the return rose: the start or, for rates, the middle."""
        limit = max(SURE * self.task_error, STILL * float(np.ptp(self.task)))
        most_rise = max(RISE_ERRORS * self.task_error, STILL * float(np.ptp(self.task)))
        starts = [0]
        if self.is_rate:
            # A rate that rises at all while the return rises is progress, however slow.
            limit = STILL
            most_rise = max(RATE_STILL, RISE_ERRORS * self.task_error)
            starts = [0, len(self.task) // 2]
        for start in starts:
            change = end_level(self.task) - self.task[start]
            is_level = np.ptp(self.task[start:]) <= max(limit * 2, SURE * self.task_error)
            is_still = -limit <= change <= most_rise and is_level
            if is_still and self._return_gains(start, FLAT_GAIN):
                return start
        return None

    def _return_gains(self, start: int, share: float) -> bool:
        gain = end_level(self.returns) - self.returns[start]
        return bool(gain > 0 and gain >= max(share * float(np.ptp(self.returns)), SURE * self.return_error))
