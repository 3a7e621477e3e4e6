"""The shape of a learning curve, whatever its unit: still rising, levelled off, flat, declining, collapsed or unstable.

rlx fits the curve by straight pieces plus noise that may be autocorrelated (a mean over the last hundred episodes
wanders slowly). An information criterion decides how many pieces the noise allows. The shape is that of the fit, so
a wandering level is not a trend, and a multiplied or shifted curve has the same shape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

Answer = Literal["still rising", "levelled off", "flat", "declining", "collapsed", "unstable", "unknown"]
Floats = np.ndarray[Any, np.dtype[np.float64]]

FEWEST_POINTS = 5
MOST_POINTS = 96
FEW_POINTS = 10
# What the pieces must explain, in logarithms of the number of points. Simulated on 120 noise curves per cell: about
# 2 % are not called flat (white noise from 12 points on, autocorrelation .5 from 30, .8 from 96, .9 from 60). Thirty
# points of noise with autocorrelation .9 can look like any trend: 20 %.
PIECE_COST = 2.0
CHANGE_COST = 2.0  # once, for any change at all
SHORT_CHANGE_COST = 3.0
SHORT = 40
MOST_PIECES = 20
MOST_KNOTS = 32
CORRELATIONS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95)  # of neighbouring noise values, one is chosen with the pieces
# Few points are not enough to measure noise apart from a trend. These are the shares of variance that a line, or one
# step between two levels, explains of so many points of white noise in 1 of 200 curves (100,000 simulated).
FEW_LINE = {5: 0.948, 6: 0.885, 7: 0.820, 8: 0.757, 9: 0.697, 10: 0.646}
FEW_STEP = {5: 0.979, 6: 0.948, 7: 0.913, 8: 0.873, 9: 0.831, 10: 0.793}
FEW_CHANCE = 0.01
SMALLEST_CHANGE = 0.05  # of a known range: less is flat, however certain
COLLAPSE_LOSS = 0.5  # of the peak's height above the floor
DECLINE_LOSS = 0.2
SWING, SWINGS = 0.4, 4  # share of the curve's height, and how many, down and up counted separately
# Swings of the curve itself: straight lines between its turns explain so much, or it moves so much more than from point
# to point. Of noise curves (autocorrelation 0 to .95), 1 in 100 with four swings does.
WIDE_SWING = 0.5
SWING_POINTS, FEWEST_SWING_POINTS = 20, 3
SWING_FIT, SWING_RATIO = 0.8, 14.0
PLATEAU_FROM = 0.6  # of the run without a gain
PLATEAU_BELOW = 0.8  # of the way from floor to best
LEVEL = 0.1  # of the range: the same level
RECOVERED = 0.3  # of the curve's height: so far its end is above what was before, although it began as high
TAIL = 0.25  # of the run: its end
RISING = 0.15  # the rate at the end / the mean rate: a logarithm ends at .25, a settled exponential below .1
END_TEST, END_BLOCKS, END_ERRORS = 0.35, 16, 2.5
SEED_DOUBT = 0.7  # if the seeds allow for an end that is almost as steep as the whole, they do not tell
SEED_ERRORS = 2.2  # of five seeds without a trend, 1 of 20 runs shows as much
ABRUPT = 0.25  # of the run: a fall that takes longer is a decline
EDGE = 0.2  # of a fall: it begins after, and ends before, this share of it
VISIBLE_ERRORS = 3.0
NORMAL_MEDIAN = 0.6745  # the median size of a normal variable
MOST_SURE = 0.99  # no curve is certain: the noise is estimated from the curve itself
POOL_POINTS = 60
BLOCKS, LATE_BLOCKS = 16, 5  # the start is a sixteenth of the curve, the end a fifth


@dataclass(frozen=True)
class CurveShape:
    """What a curve did: its levels `start`, `end` and `peak`, and the steps at which it happened.

    `climb` is its end above its lowest level: a curve may fall before it rises.
    `gain` (end above start) and `loss` (end below peak) are shares of the range: floor to best if both are known,
    otherwise the curve's own. `changed` is the step of its largest change, and `settled` the step at which its last
    level began. `sure` is 1 minus the chance that noise looks like this, at most .99. `visible` is the smallest
    detectable change. `is_plateau` says that it settled early and below the score that is known to be reachable.
    """

    answer: Answer
    points: int
    start: float = math.nan
    end: float = math.nan
    peak: float = math.nan
    climb: float = 0.0
    peak_step: int = 0
    changed: int = 0
    settled: int = 0
    gain: float = 0.0
    loss: float = 0.0
    swings: int = 0
    visible: float = 0.0
    sure: float = 0.0
    is_plateau: bool = False

    @property
    def is_learning(self) -> bool:
        """Whether it ends clearly above its start."""
        return self.answer in ("still rising", "levelled off")


def classify_curve(
    steps: Floats, values: Floats, *, floor: float | None = None, best: float | None = None
) -> CurveShape:
    """Classify a curve. `floor` is the score without training, `best` the score that is known to be reachable."""
    finite = np.isfinite(values) & np.isfinite(steps)
    count = int(finite.sum())
    if count < FEWEST_POINTS:
        return CurveShape("unknown", count)
    where, points = thin(steps[finite], values[finite], MOST_POINTS)
    if float(np.ptp(points)) <= 1e-9 * float(np.abs(points).max()):
        level = float(points[0])
        step = int(where[0])
        return CurveShape("flat", count, level, level, level, step, step, step, sure=MOST_SURE)
    fit = fit_pieces(points)
    levels = _levels(where, fit, floor=floor, best=best)
    swings = count_swings(points, levels.height)
    if swings >= SWINGS:
        # The fit of noise and few pieces may be flat here, so the levels are those of the points.
        fitted_swings = levels.swings
        levels = _levels(where, replace(fit, values=points), floor=floor, best=best)
        levels = replace(levels, swings=max(swings, fitted_swings))
    answer = _answer(levels)
    if answer == "levelled off" and has_rising_end(where, points, levels.climb):
        answer = "still rising"
    return CurveShape(
        answer, count, levels.start, levels.end, levels.peak, climb=levels.climb,
        peak_step=int(where[levels.peak_at]), changed=_changed(where, points), settled=_settled(levels),
        gain=(levels.end - levels.start) / levels.range, loss=(levels.peak - levels.end) / levels.range,
        swings=levels.swings, visible=VISIBLE_ERRORS * fit.error, sure=min(MOST_SURE, 1 - fit.chance),
        is_plateau=answer == "levelled off" and _is_plateau(levels),
    )  # fmt: skip


def pool_curves(curves: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Average the curves of several seeds over the steps that all of them have."""
    known = []
    for steps, values in curves:
        finite = np.isfinite(values) & np.isfinite(steps)
        if finite.sum() >= FEWEST_POINTS:
            known.append((steps[finite], values[finite]))
    if not known:
        return np.empty(0), np.empty(0)
    first = max(float(steps[0]) for steps, _ in known)
    last = min(float(steps[-1]) for steps, _ in known)
    count = min(POOL_POINTS, *(len(values) for _, values in known), POOL_POINTS)
    if last <= first:
        return np.empty(0), np.empty(0)
    edges = np.linspace(first, last, count + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    return middles, np.mean([_bin_means(steps, values, edges) for steps, values in known], axis=0)


def _bin_means(steps: Floats, values: Floats, edges: Floats) -> Floats:
    """Average a curve in bins of steps, and interpolate bins without a value."""
    middles = (edges[1:] + edges[:-1]) / 2
    which = np.clip(np.searchsorted(edges, steps, side="right") - 1, 0, len(middles) - 1)
    counts = np.bincount(which, minlength=len(middles))
    sums = np.bincount(which, weights=values, minlength=len(middles))
    filled = counts > 0
    return np.asarray(np.interp(middles, middles[filled], sums[filled] / counts[filled]))


def thin(steps: Floats, values: Floats, most: int) -> tuple[Floats, Floats]:
    """Average a curve in at most `most` blocks of equally many points."""
    if len(values) <= most:
        return steps, values
    edges = np.linspace(0, len(values), most + 1).astype(int)
    counts = np.diff(edges)
    return np.add.reduceat(steps, edges[:-1]) / counts, np.add.reduceat(values, edges[:-1]) / counts


def steadiness(values: Floats) -> tuple[float, float]:
    """Return Kendall's tau over time, and the chance of one as large without a trend (Mann-Kendall, with ties)."""
    count = len(values)
    first, second = np.triu_indices(count, 1)
    score = float(np.sign(values[second] - values[first]).sum())
    ties = np.unique(values, return_counts=True)[1]
    variance = (count * (count - 1) * (2 * count + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    if variance <= 0:
        return score / len(first), 1.0
    return score / len(first), math.erfc(max(abs(score) - 1, 0.0) / math.sqrt(2 * variance))


def few_trend(points: Floats) -> float:
    """Return 1 or -1 if few points rise or fall more than noise would, and 0 otherwise."""
    count = len(points)
    if count not in FEW_LINE:
        return 0.0
    centred = points - points.mean()
    time = np.arange(count) - (count - 1) / 2
    whole = float((centred**2).sum())
    line = float(centred @ time) ** 2 / (float(time @ time) * whole)
    left = np.arange(1, count)
    sums = np.cumsum(centred)[:-1]
    step = float((sums**2 * count / (left * (count - left))).max()) / whole
    is_trend = line > FEW_LINE[count] or step > FEW_STEP[count]
    return float(np.sign(centred @ time)) * is_trend


@dataclass(frozen=True)
class PieceFit:
    """A curve as straight pieces. `error` is the standard error of end − start, `chance` that of no change at all."""

    values: Floats
    error: float
    chance: float


def fit_pieces(points: Floats) -> PieceFit:
    """Fit straight pieces and autocorrelated noise: pieces are added greedily, and the criterion picks their number."""
    count = len(points)
    if count <= FEW_POINTS:
        return _fit_few(points)
    time = np.arange(count) / (count - 1)
    places = np.linspace(0, 1, min(MOST_KNOTS, count // 2) + 1)[1:]
    knots = np.unique(np.round(places * (count - 1)) / (count - 1))
    # min(t, c) rises until c and is level after it. So a fit without c = 1 ends exactly level.
    rises = np.minimum(time[:, None], knots[None, :])
    jumps = (time[:, None] >= knots[None, :-1]).astype(np.float64)
    shapes = np.hstack([rises, jumps])
    flattest = math.inf
    best = (math.inf, 0.0, [0])
    for correlation in CORRELATIONS:
        criteria, chosen = _greedy_path(points, shapes, correlation)
        flattest = min(flattest, criteria[0])
        pieces = int(np.argmin(criteria))
        if criteria[pieces] < best[0]:
            best = (criteria[pieces], correlation, chosen[:pieces])
    criterion, correlation, used = best
    design = np.column_stack([np.ones(count), shapes[:, used]])
    weights = np.linalg.lstsq(_whiten(design, correlation), _whiten(points, correlation), rcond=None)[0]
    fitted = np.asarray(design @ weights)
    residuals = points - fitted
    spread = math.sqrt(float(residuals @ residuals) / max(1, count - len(used) - 1))
    widening = math.sqrt((1 + correlation) / (1 - correlation) * (BLOCKS + LATE_BLOCKS) / count)
    chance = math.exp(-max(0.0, flattest - criterion) / 2)
    return PieceFit(fitted, spread * widening, chance)


def _greedy_path(points: Floats, shapes: Floats, correlation: float) -> tuple[list[float], list[int]]:
    """Add the shape that explains most of the rest, again and again. Returns each fit's criterion and the shapes."""
    count = len(points)
    change_cost = SHORT_CHANGE_COST if count < SHORT else CHANGE_COST
    tiny = (1e-4 * float(np.ptp(points))) ** 2 * count
    ones = _whiten(np.ones(count), correlation)
    ones /= np.linalg.norm(ones)
    rest = _whiten(points, correlation)
    rest = rest - ones * (ones @ rest)
    candidates = _whiten(shapes, correlation)
    candidates = candidates - np.outer(ones, ones @ candidates)
    chosen: list[int] = []
    criteria: list[float] = []
    for pieces in range(min(MOST_PIECES, count // 3) + 1):
        if pieces:
            power = (candidates**2).sum(axis=0)
            is_new = power > 1e-9
            explained = np.where(is_new, (rest @ candidates) ** 2 / np.where(is_new, power, 1.0), 0.0)
            pick = int(np.argmax(explained))
            if explained[pick] <= 0:
                break
            direction = candidates[:, pick] / math.sqrt(power[pick])
            rest = rest - direction * (direction @ rest)
            candidates = candidates - np.outer(direction, direction @ candidates)
            chosen.append(pick)
        likelihood = count * math.log((float(rest @ rest) + tiny) / count) - math.log(1 - correlation**2)
        cost = 0.0
        if pieces:
            cost = change_cost + PIECE_COST * pieces
        criteria.append(likelihood + cost * math.log(count))
    return criteria, chosen


def _whiten(values: Floats, correlation: float) -> Floats:
    """Turn first-order autocorrelated noise into white noise."""
    first = values[:1] * math.sqrt(1 - correlation**2)
    return np.concatenate([first, values[1:] - correlation * values[:-1]])


def _fit_few(points: Floats) -> PieceFit:
    """Fit few points by their running median if they rise or fall more than noise would, else by their mean."""
    count = len(points)
    noise = float(np.abs(np.diff(points)).mean())
    if few_trend(points) or steadiness(points)[1] <= FEW_CHANCE:
        return PieceFit(_running_median(points), noise, FEW_CHANCE)
    return PieceFit(np.full(count, points.mean()), noise, 1.0)


def _running_median(values: Floats) -> Floats:
    middle = np.median(np.stack([values[:-2], values[1:-1], values[2:]]), axis=0)
    return np.concatenate([values[:1], middle, values[-1:]])


@dataclass(frozen=True)
class _Levels:
    """The fitted curve: its levels, and the range they are measured in. `base` is the floor, or the lowest level."""

    steps: Floats
    curve: Floats
    start: float
    end: float
    peak: float
    peak_at: int
    base: float
    height: float
    range: float
    has_known_range: bool
    swings: int
    error: float

    @property
    def climb(self) -> float:
        """The end above the lowest level."""
        return self.end - float(self.curve.min())


def _levels(where: Floats, fit: PieceFit, *, floor: float | None, best: float | None) -> _Levels:
    curve = fit.values
    late = max(1, len(curve) // 10)
    # The peak is a mean over as many points as the end is: a curve that climbs to its last point has not fallen.
    means = np.convolve(curve, np.full(late, 1 / late), "valid")
    best_window = int(np.argmax(means))
    peak = min(float(means[best_window]), float(curve.max()))
    peak_at = best_window + int(np.argmax(curve[best_window : best_window + late]))
    low = float(curve.min())
    height = max(0.0, peak - low)
    span = height or 1.0
    has_known_range = False
    if floor is not None:
        height = max(height, peak - floor)
        if best is not None and best > floor:
            has_known_range = True
            span = best - floor
    return _Levels(
        where, curve, float(curve[0]), float(curve[-late:].mean()), peak, peak_at,
        base=low if floor is None else floor, height=height, range=span, has_known_range=has_known_range,
        swings=_swings(curve, SWING * height), error=fit.error,
    )  # fmt: skip


def _answer(levels: _Levels) -> Answer:
    smallest = SMALLEST_CHANGE * levels.range * levels.has_known_range
    rise = levels.end - levels.start
    fall = levels.peak - levels.end
    if levels.swings >= SWINGS:
        return "unstable"
    if max(rise, fall, levels.climb) <= smallest or float(np.ptp(levels.curve)) == 0:
        return "flat"
    height = levels.peak - levels.base
    lost = 0.0
    if height > 0:
        lost = fall / height
    is_high = not levels.has_known_range or height > LEVEL * levels.range
    if lost >= COLLAPSE_LOSS and is_high and _is_collapse(levels):
        return "collapsed"
    tail = levels.steps[-1] - TAIL * _length(levels)
    recovery = levels.end - float(levels.curve[levels.steps < tail].mean())
    has_recovered = recovery > max(smallest, RECOVERED * float(np.ptp(levels.curve)))
    if lost >= DECLINE_LOSS or (-rise > max(smallest, levels.error) and not has_recovered):
        return "declining"
    if rise <= smallest and not has_recovered:
        return "flat"
    before = float(np.interp(tail, levels.steps, levels.curve))
    if float(levels.curve[-1]) - before >= RISING * TAIL * levels.climb:
        return "still rising"
    return "levelled off"


def has_rising_end(where: Floats, points: Floats, rise: float) -> bool:
    """Test the trend of the last points: slow rises need more pieces than the criterion allows for noisy curves.

    It compares a least-squares line with its standard error, widened by the autocorrelation of the residuals, and with
    the mean rate of the whole rise. A recovery to a level that was reached before does not count.
    """
    slope, error = end_slope(where, points)
    is_steep = slope >= RISING * rise / float(where[-1] - where[0]) and slope > END_ERRORS * error
    return is_steep and _ends_highest(where, points)


def _ends_highest(where: Floats, points: Floats) -> bool:
    """Say whether the mean of the last points is above that of as many neighbours anywhere before the end."""
    width = max(1, round(END_TEST / 2 * len(points)))
    before = points[where < where[-1] - END_TEST * (where[-1] - where[0])]
    if len(before) < width:
        return True
    means = np.convolve(before, np.full(width, 1 / width), "valid")
    return bool(points[-width:].mean() > means.max())


def end_slope(where: Floats, points: Floats) -> tuple[float, float]:
    """Return the slope of the last points and its standard error, or no slope if they are too few."""
    is_end = where >= where[-1] - END_TEST * (where[-1] - where[0])
    steps, values = thin(where[is_end], points[is_end], END_BLOCKS)
    count = len(values)
    if count < FEWEST_POINTS:
        return 0.0, 0.0
    time = steps - steps.mean()
    power = float(time @ time)
    slope = float(time @ values) / power
    residuals = values - values.mean() - slope * time
    squares = float(residuals @ residuals)
    if squares <= 0:
        return slope, 0.0
    correlation = float(residuals[1:] @ residuals[:-1]) / squares
    similarity = min(max(correlation + 2 / count, 0.0), 0.8)  # a fitted line takes about 2/n of it away
    return slope, math.sqrt(squares / (count - 2) / power * (1 + similarity) / (1 - similarity))


def seeds_rise_at_end(curves: Sequence[tuple[Floats, Floats]], rise: float) -> bool | None:
    """Say whether several seeds rise at their end, on average and by more than they differ; None if they cannot tell.

    Seeds are independent, so this needs no model of the noise within a curve.
    """
    rates = []
    for steps, values in curves:
        finite = np.isfinite(values) & np.isfinite(steps)
        where, points = thin(steps[finite], values[finite], MOST_POINTS)
        rates.append(end_slope(where, points)[0] * float(where[-1] - where[0]) / rise)
    mean = float(np.mean(rates))
    error = float(np.std(rates, ddof=1)) / math.sqrt(len(rates))
    if mean >= RISING and mean > SEED_ERRORS * error:
        return True
    if mean + SEED_ERRORS * error >= SEED_DOUBT:
        return None
    return False


def _length(levels: _Levels) -> float:
    return float(levels.steps[-1] - levels.steps[0])


def _is_collapse(levels: _Levels) -> bool:
    """Say whether a fall is abrupt: a slow one is a decline."""
    drop = levels.peak - levels.end
    after = levels.curve[levels.peak_at :]
    steps = levels.steps[levels.peak_at :]
    first_low = int(np.argmax(after <= levels.end + EDGE * drop))
    last_high = int(np.flatnonzero(after[: first_low + 1] >= levels.peak - EDGE * drop)[-1])
    return bool(steps[first_low] - steps[last_high] <= ABRUPT * _length(levels))


def _is_plateau(levels: _Levels) -> bool:
    if not levels.has_known_range or levels.end - levels.base >= PLATEAU_BELOW * levels.range:
        return False
    return _settled(levels) <= float(levels.steps[0]) + (1 - PLATEAU_FROM) * _length(levels)


def _turns(curve: Floats, least: float) -> list[int]:
    """Return where a curve turns after it moved by at least so much, with its first and last point."""
    turns = [0]
    direction = 0.0
    lowest = highest = 0  # of the points since the last turn
    for index in range(len(curve) if least > 0 else 0):
        if curve[index] > curve[highest]:
            highest = index
        if curve[index] < curve[lowest]:
            lowest = index
        if direction <= 0 and curve[index] - curve[lowest] >= least:
            turns.append(lowest)
            direction = 1.0
            highest = index
        elif direction >= 0 and curve[highest] - curve[index] >= least:
            turns.append(highest)
            direction = -1.0
            lowest = index
    extreme = highest if direction > 0 else lowest
    return sorted({*turns, extreme, len(curve) - 1})


def _swings(curve: Floats, least: float) -> int:
    """Count the moves of at least so much, down and up, after the first one."""
    moves = np.abs(np.diff(curve[_turns(curve, least)]))
    return max(0, int((moves >= least).sum()) - 1) if least > 0 else 0


def count_swings(points: Floats, height: float) -> int:
    """Count the swings of a noisy curve. Returns 0 if noise could look like them."""
    least = WIDE_SWING * max(height, float(np.ptp(points)))
    if len(points) < SWING_POINTS:
        return 0
    turns = _turns(points, least)
    moves = np.abs(np.diff(points[turns]))
    moves = moves[moves >= least]
    if len(moves) <= SWINGS or len(points) / len(moves) < FEWEST_SWING_POINTS:
        return 0
    lines = np.interp(np.arange(len(points)), turns, points[turns])
    explained = 1 - float(((points - lines) ** 2).sum() / ((points - points.mean()) ** 2).sum())
    between = float(np.median(np.abs(np.diff(points)))) / (NORMAL_MEDIAN * math.sqrt(2))
    if explained >= SWING_FIT or float(moves.mean()) >= SWING_RATIO * between:
        return len(moves) - 1
    return 0


def _changed(where: Floats, points: Floats) -> int:
    """Return the step that best splits the curve into two levels."""
    sums = np.cumsum(points - points.mean())[:-1]
    left = np.arange(1, len(points))
    weight = np.sqrt(left * (len(points) - left))
    return int(where[int(np.argmax(np.abs(sums) / weight)) + 1])


def _settled(levels: _Levels) -> int:
    """Return the first step after which the fitted curve stays at its last level."""
    apart = np.abs(levels.curve - levels.end) > max(LEVEL * float(np.ptp(levels.curve)), levels.error / 2)
    last_apart = max(np.flatnonzero(apart), default=-1)
    return int(levels.steps[min(int(last_apart) + 1, len(levels.steps) - 1)])
