"""Learning curves: one metric of every seed, their mean, and how sure one can be of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rlx import files
from rlx.compare import mean_band
from rlx.hosts.plots import page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from rlx.runs.run import Run, Seed

    Values = NDArray[np.float64]

AXES = {"steps": "steps", "wall": "training time (minutes)", "episodes": "episodes"}
GRID_POINTS = 1000
EVALUATION = "eval/return_mean"


@dataclass(frozen=True, eq=False)
class Curve:
    """One seed's metric: x ascending, y with NaN and infinity kept."""

    seed: int
    x: Values
    y: Values

    def smoothed(self, window: int) -> Curve:
        """Return the mean of each value and those before it, `window` in all; the future is never looked at."""
        is_finite = np.isfinite(self.y)
        sums = np.concatenate([[0.0], np.cumsum(self.y[is_finite])])
        ends = np.arange(1, len(sums))
        starts = np.maximum(0, ends - window)
        y = self.y.copy()
        y[is_finite] = (sums[ends] - sums[starts]) / (ends - starts)
        return Curve(self.seed, self.x, y)


@dataclass(frozen=True, eq=False)
class Mean:
    """The mean over seeds where there are two (or the only one), of `n` seeds each; the band is NaN for one seed."""

    x: Values
    y: Values
    n: NDArray[np.int64]
    low: Values
    high: Values


@dataclass(frozen=True, eq=False)
class Curves:
    """One run's metric, a curve a seed that has logged it; `repeated` seeds of the same config were left out."""

    name: str
    seeds: tuple[Curve, ...]
    repeated: int = 0

    @cached_property
    def mean(self) -> Mean:
        """The mean at every point that any seed has; seeds that have ended, or not begun, are not in it there."""
        finite = [(curve.x[keep], curve.y[keep]) for curve in self.seeds if (keep := np.isfinite(curve.y)).any()]
        if not finite:
            nothing = np.empty(0)
            return Mean(nothing, nothing, nothing.astype(np.int64), nothing, nothing)
        grid = np.unique(np.concatenate([x for x, _ in finite]))
        if len(grid) > GRID_POINTS:
            grid = np.linspace(grid[0], grid[-1], GRID_POINTS)
        values = np.array([np.interp(grid, x, y, left=np.nan, right=np.nan) for x, y in finite])
        n = np.isfinite(values).sum(axis=0)
        shared = n >= min(2, len(finite))
        grid, values, n = grid[shared], values[:, shared], n[shared]
        y = np.nansum(values, axis=0) / np.maximum(n, 1)
        return Mean(grid, y, n, *_band(values))

    @cached_property
    def whole(self) -> NDArray[np.bool_]:
        """Where the mean is of every seed that has a finite value at all."""
        return np.asarray(self.mean.n == sum(bool(np.isfinite(curve.y).any()) for curve in self.seeds))

    def smoothed(self, window: int) -> Curves:
        """Return the same curves, each smoothed."""
        return Curves(self.name, tuple(curve.smoothed(window) for curve in self.seeds), self.repeated)

    def non_finite(self) -> int:
        """Count the values that no line can show."""
        return sum(int((~np.isfinite(curve.y)).sum()) for curve in self.seeds)


def _band(values: Values) -> tuple[Values, Values]:
    """Return the bootstrap band of the mean, stretch by stretch where the same two or more seeds are there."""
    low, high = np.full((2, values.shape[1]), np.nan)
    present = np.isfinite(values)
    for pattern in np.unique(present, axis=1).T:
        if pattern.sum() >= 2:
            columns = (present == pattern[:, None]).all(axis=0)
            band = mean_band(values[pattern][:, columns])
            low[columns], high[columns] = band.low, band.high
    return low, high


def pooled(every: Sequence[Curves]) -> Curves:
    """Return the seeds of several runs of one config as one; a seed number that comes again is the same training."""
    seeds = {curve.seed: curve for one in reversed(every) for curve in one.seeds}
    repeated = sum(len(one.seeds) for one in every) - len(seeds)
    return Curves(" + ".join(one.name for one in every), tuple(seeds[number] for number in sorted(seeds)), repeated)


def curves(run: Run, metric: str, *, axis: str) -> Curves:
    """Read one metric of a run over steps, training time or episodes."""
    found = [_curve(seed, metric, axis=axis) for seed in run.seeds]
    return Curves(run.name, tuple(curve for curve in found if len(curve.x)))


def _curve(seed: Seed, metric: str, *, axis: str) -> Curve:
    rows = [row for row in _rows(seed, metric) if files.is_number(row.get(metric))]
    if axis == "episodes":
        rows = [row for row in rows if files.is_number(row.get("rollout/episodes"))]
        x = [files.number(row["rollout/episodes"]) for row in rows]
    elif axis == "wall":
        x = [seconds / 60 for seconds in _training_seconds(seed, rows)]
    else:
        x = [float(row["step"]) for row in rows]
    y = [files.number(row[metric]) for row in rows]
    order = np.argsort(np.array(x), kind="stable")
    return Curve(seed.number, np.array(x, dtype=float)[order], np.array(y, dtype=float)[order])


def _rows(seed: Seed, metric: str) -> list[dict[str, Any]]:
    return evaluation_rows(seed) if metric == EVALUATION else seed.rows


def evaluation_rows(seed: Seed) -> list[dict[str, Any]]:
    """Return the evaluations during training as rows of one metric; a resume takes back what came after it."""
    kept: list[dict[str, Any]] = []
    for event in seed.events:
        if event.get("event") == "evaluated":
            kept.append({"step": event["step"], "time": event["time"], EVALUATION: event["mean"]})
        elif event.get("event") == "resumed":
            kept = [row for row in kept if row["step"] <= event["step"]]
    return kept


def _training_seconds(seed: Seed, rows: Sequence[dict[str, Any]]) -> list[float]:
    """Return each row's time since the seed's start without the pauses between attempts."""
    starts = sorted(float(attempt["time"]) for attempt in seed.attempts) or [float(row["time"]) for row in rows[:1]]
    seconds: list[float] = []
    attempt, before = 0, 0.0
    for row in rows:
        while attempt + 1 < len(starts) and row["time"] >= starts[attempt + 1]:
            attempt += 1
            before = seconds[-1] if seconds else 0.0
        seconds.append(before + max(0.0, row["time"] - starts[attempt]))
    return seconds


def draw(lines: Sequence[Curves], *, metric: str, axis: str, out: Path, with_seeds: bool, with_band: bool) -> None:
    """Write the picture: every run's mean thick, its band, its seeds thin; `metric` is what the axis says."""
    figure, (axes,) = page.blank(height=page.height_for(len(lines)))
    for number, one in enumerate(lines):
        _draw_run(axes, one, number, with_seeds=with_seeds, with_band=with_band)
    has_band = with_band and any(np.isfinite(one.mean.low).any() for one in lines)
    axes.set_xlabel(AXES[axis])
    axes.set_ylabel(metric + ("\nmean over seeds; band: 95 % bootstrap interval" if has_band else ""))
    if axis != "wall":
        axes.xaxis.set_major_formatter("{x:,.0f}")
    page.legend(figure, count=len(lines))
    page.save(figure, out)


def _draw_run(axes: Axes, lines: Curves, number: int, *, with_seeds: bool, with_band: bool) -> None:
    count, mean, style = len(lines.seeds), lines.mean, page.style(number)
    for curve in lines.seeds if with_seeds and count > 1 else ():
        axes.plot(curve.x, np.where(np.isfinite(curve.y), curve.y, np.nan), linewidth=0.7, alpha=0.4, **style)
    if with_band:
        axes.fill_between(mean.x, mean.low, mean.high, color=style["color"], alpha=0.18, linewidth=0)
    axes.plot(mean.x, mean.y, linewidth=1.1, **style)
    label = f"{lines.name} (n = {count} {'seed' if count == 1 else 'seeds'})"
    y = np.where(lines.whole, mean.y, np.nan)
    axes.plot(mean.x, y, linewidth=2.2, marker=page.mark(number), markevery=_marked(mean.x, number),
              label=label, **style)  # fmt: skip


def _marked(x: Values, number: int, count: int = 8) -> list[int]:
    """Return evenly spaced points to mark, at other places for the next run."""
    if len(x) == 0:
        return []
    wanted = x[0] + (x[-1] - x[0]) * (np.arange(count) + (number * 0.37) % 1) / count
    return sorted({int(index) for index in np.searchsorted(x, wanted).clip(max=len(x) - 1)})
