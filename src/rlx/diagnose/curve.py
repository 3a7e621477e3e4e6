"""The shape of a learning curve, whatever its unit: improving, flat, declining, collapsed, unstable or plateau.

Every figure is a level of the curve or a share of a range, and every test compares levels with the curve's own noise:
a curve that is multiplied or shifted has the same shape. Noise is that of blocks of the curve, widened by how much
neighbouring blocks resemble each other, so that slow wandering (a mean over the last hundred episodes) is no trend.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Answer = Literal["improving", "flat", "declining", "collapsed", "unstable", "plateau", "unknown"]
Floats = np.ndarray[Any, np.dtype[np.float64]]

FEWEST_POINTS = 5
MOST_POINTS = 240
BLOCKS = 16
# Simulated on 500 noise curves a cell (5 to 1,000 points): these call at most 1 % of white noise, and 2 % of noise with
# autocorrelation .9 over 200 points or more, anything but flat. Twenty points of such noise look like any trend.
SURE_Z = 3.0
SURE_FALL_Z = 4.0  # the peak is picked as the highest, so it takes more
STEADY_TAU, STEADY_CHANCE = 0.75, 0.01
# Of few points noise cannot be measured beside a course; the share of variance that a line, or one step between two
# levels, explains of so many points of white noise in 1 of 200 curves (100,000 simulated).
FEW_LINE = {5: 0.948, 6: 0.885, 7: 0.820, 8: 0.757, 9: 0.697, 10: 0.646}
FEW_STEP = {5: 0.979, 6: 0.948, 7: 0.913, 8: 0.873, 9: 0.831, 10: 0.793}
FEW_CHANCE = 0.01
SMALLEST_CHANGE = 0.05  # of a known range: less is flat, however sure
COLLAPSE_LOSS = 0.5  # of what the peak had above the floor
DECLINE_LOSS = 0.2
SWING, SWINGS = 0.4, 4  # of the curve's height, and how many, down and up counted apart
SWING_Z = 6.0  # swings this far above the noise; a learned level may swing in any rhythm
PLATEAU_FROM = 0.6  # of the run: nothing gained since
PLATEAU_BELOW = 0.8  # of the way from floor to best
LEVEL = 0.1  # of the range: the same level


@dataclass(frozen=True)
class Shape:
    """What a curve did: its levels `start`, `end` and `peak`, and the steps at which it happened.

    `gain` (end above start) and `loss` (end below peak) are shares of the range, floor to best where both are known,
    else the curve's own. `changed` is the step of its largest change, `settled` the one its last level began at.
    `sure` is 1 minus the chance that noise looks like this; `visible` the smallest change that could have been seen.
    """

    answer: Answer
    points: int
    start: float = math.nan
    end: float = math.nan
    peak: float = math.nan
    peak_step: int = 0
    changed: int = 0
    settled: int = 0
    gain: float = 0.0
    loss: float = 0.0
    swings: int = 0
    visible: float = 0.0
    sure: float = 0.0

    @property
    def is_learning(self) -> bool:
        """Whether it ends surely above where it began."""
        return self.answer in ("improving", "plateau")


def shape(steps: Floats, values: Floats, *, floor: float | None = None, best: float | None = None) -> Shape:
    """Say what a curve did. `floor` is what no training scores, `best` what is known to be reachable."""
    finite = np.isfinite(values) & np.isfinite(steps)
    count = int(finite.sum())
    if count < FEWEST_POINTS:
        return Shape("unknown", count)
    where, points = thin(steps[finite], values[finite], MOST_POINTS)
    if float(np.ptp(points)) <= 1e-9 * float(np.abs(points).max()):
        level, step = float(points[0]), int(where[0])
        return Shape("flat", count, level, level, level, step, step, step, sure=1.0)
    levels = _levels(where, points, floor=floor, best=best)
    answer = _answer(levels)
    return Shape(
        answer, count, levels.start, levels.end, levels.peak,
        peak_step=int(levels.steps[levels.peak_at]), changed=_changed(where, points), settled=_settled(levels),
        gain=(levels.end - levels.start) / levels.range, loss=(levels.peak - levels.end) / levels.range,
        swings=levels.swings, visible=SURE_Z * levels.error, sure=1 - levels.chance,
    )  # fmt: skip


def thin(steps: Floats, values: Floats, most: int) -> tuple[Floats, Floats]:
    """Average a curve in at most `most` neighbourhoods of equally many points."""
    if len(values) <= most:
        return steps, values
    edges = np.linspace(0, len(values), most + 1).astype(int)
    counts = np.diff(edges)
    return np.add.reduceat(steps, edges[:-1]) / counts, np.add.reduceat(values, edges[:-1]) / counts


def slope(steps: Floats, values: Floats) -> float:
    """Return the median of all pairwise slopes (Theil-Sen), per step."""
    where, points = thin(steps, values, MOST_POINTS)
    first, second = np.triu_indices(len(points), 1)
    distance = where[second] - where[first]
    rises = (points[second] - points[first])[distance > 0] / distance[distance > 0]
    return float(np.median(rises)) if rises.size else 0.0


def steadiness(values: Floats) -> tuple[float, float]:
    """Return Kendall's tau over time and the chance of one as large without a trend (Mann-Kendall, with ties)."""
    count = len(values)
    first, second = np.triu_indices(count, 1)
    score = float(np.sign(values[second] - values[first]).sum())
    ties = np.unique(values, return_counts=True)[1]
    variance = (count * (count - 1) * (2 * count + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    chance = math.erfc(max(abs(score) - 1, 0.0) / math.sqrt(2 * variance)) if variance > 0 else 1.0
    return score / len(first), chance


def few_trend(points: Floats) -> float:
    """Return 1 or -1 where few points rise or fall more than noise would, else 0."""
    count = len(points)
    if count not in FEW_LINE:
        return 0.0
    centred, time = points - points.mean(), np.arange(count) - (count - 1) / 2
    whole = float((centred**2).sum())
    line = float(centred @ time) ** 2 / (float(time @ time) * whole)
    left, sums = np.arange(1, count), np.cumsum(centred)[:-1]
    step = float((sums**2 * count / (left * (count - left))).max()) / whole
    return float(np.sign(centred @ time)) if line > FEW_LINE[count] or step > FEW_STEP[count] else 0.0


@dataclass(frozen=True)
class _Levels:
    """A curve in blocks, its levels and what they are measured against."""

    steps: Floats
    blocks: Floats
    start: float
    end: float
    peak: float
    peak_at: int
    base: float
    range: float
    reachable: float | None
    error: float
    z_gain: float
    z_fall: float
    tau: float
    trend: float
    chance: float
    swings: int
    is_swinging: bool


def _levels(where: Floats, points: Floats, *, floor: float | None, best: float | None) -> _Levels:
    steps, blocks = thin(where, points, BLOCKS)
    late = max(1, len(blocks) // 5)
    smooth = _running_median(blocks)
    peak_at = int(np.argmax(smooth))
    start, end, peak, low = float(blocks[0]), float(np.median(blocks[-late:])), float(smooth[peak_at]), smooth.min()
    noise = _noise(blocks, points)
    error = noise * math.sqrt(1 + 1 / late)
    tau, steady = steadiness(blocks)
    z_gain, z_fall = _ratio(end - start, error), _ratio(peak - end, noise * math.sqrt(0.5 + 1 / late))
    is_known = floor is not None and best is not None and best > floor
    own = float(max(peak, start) - min(low, start))
    course, height = thin(points, points, 3 * BLOCKS)[1], own if floor is None else max(own, peak - floor)
    swings = _swings(course, height)
    is_learned = floor is not None and _ratio(float(blocks.mean()) - floor, _roughness(blocks) / 4) >= SURE_FALL_Z
    trend = few_trend(points)
    chances = [_tail(z_gain), _tail(z_fall * SURE_Z / SURE_FALL_Z), steady if abs(tau) >= STEADY_TAU else 1.0]
    chance = min([*chances, FEW_CHANCE] if trend else chances)
    return _Levels(
        steps, blocks, start, end, peak, peak_at,
        base=float(low) if floor is None else floor,
        range=(best - floor) if is_known else own or float(np.ptp(points)),  # type: ignore[operator]
        reachable=best if is_known else None,
        error=error, z_gain=z_gain, z_fall=z_fall, tau=tau if steady <= STEADY_CHANCE else 0.0, trend=trend,
        chance=chance, swings=swings,
        is_swinging=swings >= SWINGS and (is_learned or SWING * height >= SWING_Z * _roughness(course)),
    )  # fmt: skip


def _answer(levels: _Levels) -> Answer:
    is_known = levels.reachable is not None
    smallest = SMALLEST_CHANGE * levels.range if is_known else 0.0
    rose = (
        levels.z_gain >= SURE_Z or levels.tau >= STEADY_TAU or levels.trend > 0
    ) and levels.end - levels.start > smallest
    sank = (
        levels.z_gain <= -SURE_Z or levels.tau <= -STEADY_TAU or levels.trend < 0
    ) and levels.start - levels.end > smallest
    fell = levels.z_fall >= SURE_FALL_Z and levels.peak - levels.end > smallest
    if levels.is_swinging:
        return "unstable"
    if not (rose or sank or fell):
        return "flat"
    height = levels.peak - levels.base
    lost = (levels.peak - levels.end) / height if height > 0 else 0.0
    if (sank or fell) and lost >= COLLAPSE_LOSS and (not is_known or height > LEVEL * levels.range):
        return "collapsed"
    if sank or (fell and lost >= DECLINE_LOSS):
        return "declining"
    if not rose:
        return "flat"
    is_short = levels.reachable is not None and levels.end - levels.base < PLATEAU_BELOW * levels.range
    return "plateau" if is_short and _settled(levels) <= _at(levels.steps, 1 - PLATEAU_FROM) else "improving"


def _noise(blocks: Floats, points: Floats) -> float:
    """Return the standard deviation of a block's level around the curve's course."""
    steps = np.diff(blocks)
    steps = steps - np.median(steps)
    bound = 2.2 * float(np.median(np.abs(steps)))  # one jump must not pass for resemblance
    steps = np.clip(steps, -bound, bound)
    power = float((steps**2).sum())
    resemblance = 1 + 2 * float((steps[1:] * steps[:-1]).sum()) / power if power > 0 else 0.0
    phi = min(max(resemblance, 0.0), 0.95)  # of an AR(1), whose steps correlate by −(1 − φ) / 2
    widened = _roughness(blocks) * math.sqrt(6 / (6 - 8 * phi + 2 * phi**2))
    return max(widened, _roughness(points) / math.sqrt(len(points) / len(blocks)))


def _roughness(values: Floats) -> float:
    """Return the standard deviation of white noise on a smooth course, from second differences without the largest."""
    bends = np.sort(np.abs(values[2:] - 2 * values[1:-1] + values[:-2])) / math.sqrt(6)
    kept = bends[: math.ceil(0.75 * len(bends))]
    return 1.55 * math.sqrt(float((kept**2).mean()))


def _running_median(values: Floats) -> Floats:
    padded = np.concatenate([values[:1], values, values[-1:]])
    return np.asarray(np.median(np.stack([padded[:-2], padded[1:-1], padded[2:]]), axis=0))


def _ratio(difference: float, error: float) -> float:
    if error > 0:
        return difference / error
    return math.copysign(math.inf, difference) if difference else 0.0


def _tail(z: float) -> float:
    """Return how often noise gives so large a ratio: Student's t with six degrees of freedom, both sides."""
    angle = math.atan(abs(z) / math.sqrt(6))
    share = math.cos(angle) ** 2
    return max(0.0, 1 - math.sin(angle) * (1 + share / 2 + 3 * share**2 / 8))


def _swings(course: Floats, height: float) -> int:
    """Count the turns of a curve that go there and back by `SWING` of its height."""
    turns, direction, extreme = 0, 0, float(course[0])
    for value in map(float, course):
        if direction * (value - extreme) >= 0 and direction:
            extreme = value
        elif abs(value - extreme) >= SWING * height:
            turns, direction, extreme = turns + 1, (1 if value > extreme else -1), value
    return max(0, turns - 1)


def _changed(where: Floats, points: Floats) -> int:
    """Return the step that best splits the curve into two levels."""
    sums = np.cumsum(points - points.mean())[:-1]
    left = np.arange(1, len(points))
    weight = np.sqrt(left * (len(points) - left))
    return int(where[int(np.argmax(np.abs(sums) / weight)) + 1])


def _settled(levels: _Levels) -> int:
    """Return the step from which on every block is at the curve's last level."""
    own = max(levels.peak, levels.start) - min(levels.base, float(levels.blocks.min()))
    apart = np.abs(levels.blocks - levels.end) > max(LEVEL * own, levels.error)
    first = int(np.flatnonzero(apart)[-1]) + 1 if apart.any() else 0
    return int(levels.steps[min(first, len(levels.steps) - 1)])


def _at(steps: Floats, share: float) -> float:
    return float(steps[0] + share * (steps[-1] - steps[0]))
