"""Learning curves: one metric of every seed, their mean, and its bootstrap band."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rlx.compare import mean_band
from rlx.hosts.plots import style
from rlx.number_format import counted
from rlx.runs.metric_columns import MetricColumns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from rlx.runs.run import Run, Seed

    Values = NDArray[np.float64]

AXES = {"steps": "steps", "wall": "training time (minutes)", "episodes": "episodes"}
_COLUMN_OF_AXIS = {"steps": "step", "wall": "time", "episodes": "rollout/episodes"}
GRID_POINTS = 1000
EVALUATION = "eval/return_mean"


@dataclass(frozen=True, eq=False)
class Curve:
    """One seed's metric: x ascending, y with NaN and infinity kept."""

    seed: int
    x: Values
    y: Values

    def smoothed(self, window: int) -> Curve:
        """Return the moving mean over each value and those before it, `window` in all."""
        is_finite = np.isfinite(self.y)
        sums = np.concatenate([[0.0], np.cumsum(self.y[is_finite])])
        ends = np.arange(1, len(sums))
        starts = np.maximum(0, ends - window)
        y = self.y.copy()
        y[is_finite] = (sums[ends] - sums[starts]) / (ends - starts)
        return Curve(self.seed, self.x, y)


@dataclass(frozen=True, eq=False)
class Mean:
    """The mean over `n` seeds at each point that has at least two (or the only one); the band is NaN for one seed."""

    x: Values
    y: Values
    n: NDArray[np.int64]
    low: Values
    high: Values


@dataclass(frozen=True, eq=False)
class Curves:
    """One run's metric: one curve per seed that has logged it; `repeated` counts left-out duplicates of a seed."""

    name: str
    seeds: tuple[Curve, ...]
    repeated: int = 0
    differs: str = ""

    @property
    def title(self) -> str:
        """The run's name, and in what it differs from the others."""
        return f"{self.name}: {self.differs}" if self.differs else self.name

    @cached_property
    def _grid(self) -> tuple[Values, Values]:
        """The points of the mean, and every seed's value at each: NaN outside its first and its last point."""
        finite = [(curve.x[keep], curve.y[keep]) for curve in self.seeds if (keep := np.isfinite(curve.y)).any()]
        if not finite:
            return np.empty(0), np.empty((0, 0))
        if len(finite) == 1:  # the mean of one seed is that seed, with all its spikes
            return finite[0][0], finite[0][1][None]
        grid = np.unique(np.concatenate([x for x, _ in finite]))
        if len(grid) > GRID_POINTS:
            grid = np.linspace(grid[0], grid[-1], GRID_POINTS)
        values = np.array([np.interp(grid, x, y, left=np.nan, right=np.nan) for x, y in finite])
        shared = np.isfinite(values).sum(axis=0) >= min(2, len(finite))
        return grid[shared], values[:, shared]

    @cached_property
    def centre(self) -> tuple[Values, Values]:
        """The points and values of the mean without its band, which takes much longer."""
        grid, values = self._grid
        if not len(grid):
            return grid, grid
        return grid, np.nansum(values, axis=0) / np.maximum(np.isfinite(values).sum(axis=0), 1)

    @cached_property
    def mean(self) -> Mean:
        """The mean at every point; a seed counts only between its first and its last point."""
        grid, values = self._grid
        if not len(grid):
            nothing = np.empty(0)
            return Mean(nothing, nothing, nothing.astype(np.int64), nothing, nothing)
        _, y = self.centre
        return Mean(grid, y, np.isfinite(values).sum(axis=0), *_band(values))

    @cached_property
    def whole(self) -> NDArray[np.bool_]:
        """Whether the mean includes every seed that has a finite value at all."""
        return np.asarray(self.mean.n == sum(bool(np.isfinite(curve.y).any()) for curve in self.seeds))

    def smoothed(self, window: int) -> Curves:
        """Return the same curves, each smoothed."""
        return replace(self, seeds=tuple(curve.smoothed(window) for curve in self.seeds))

    def non_finite(self) -> int:
        """Count the values that are not finite, which no line can show."""
        return sum(int((~np.isfinite(curve.y)).sum()) for curve in self.seeds)


def _band(values: Values) -> tuple[Values, Values]:
    """Return the bootstrap band of the mean, for each stretch with the same two or more seeds."""
    low, high = np.full((2, values.shape[1]), np.nan)
    present = np.isfinite(values)
    for pattern in np.unique(present, axis=1).T:
        if pattern.sum() >= 2:
            columns = (present == pattern[:, None]).all(axis=0)
            band = mean_band(values[pattern][:, columns])
            low[columns] = band.low
            high[columns] = band.high
    return low, high


def pooled(runs: Sequence[Curves]) -> Curves:
    """Pool the seeds of several runs of one config; a seed number that repeats is the same training."""
    seeds = {curve.seed: curve for run in reversed(runs) for curve in run.seeds}
    repeated = sum(len(run.seeds) for run in runs) - len(seeds)
    return Curves(" + ".join(run.name for run in runs), tuple(seeds[number] for number in sorted(seeds)), repeated)


def curves(run: Run, metric: str, *, axis: str, columns: Mapping[int, MetricColumns] | None = None) -> Curves:
    """Read one metric of a run over steps, training time or episodes.

    A server passes the `columns` of each seed that it has read already.
    """
    lines = []
    for seed in run.seeds:
        if metric == EVALUATION:
            table = MetricColumns(evaluation_rows(seed))
        elif columns is not None:
            table = columns[seed.number]
        else:
            table = MetricColumns(seed.rows)
        line = _curve(seed, table, metric, axis=axis)
        if len(line.x):
            lines.append(line)
    return Curves(run.name, tuple(lines))


def _curve(seed: Seed, columns: MetricColumns, metric: str, *, axis: str) -> Curve:
    x, y = columns.values(metric, over=_COLUMN_OF_AXIS[axis])
    if axis == "wall":
        x = _training_seconds(seed, x) / 60
    order = np.argsort(x, kind="stable")
    return Curve(seed.number, x[order], y[order])


def evaluation_rows(seed: Seed) -> list[dict[str, Any]]:
    """Return the evaluations during training as rows of one metric; a resume discards the ones after its checkpoint."""
    kept: list[dict[str, Any]] = []
    for event in seed.events:
        if event.get("event") == "evaluated":
            kept.append({"step": event["step"], "time": event["time"], EVALUATION: event["mean"]})
        elif event.get("event") == "resumed":
            kept = [row for row in kept if row["step"] <= event["step"]]
    return kept


def _training_seconds(seed: Seed, times: Values) -> Values:
    """Return the seconds since the seed's start at each time, without the pauses between attempts."""
    starts = sorted(float(attempt["time"]) for attempt in seed.attempts) or times[:1].tolist()
    seconds: list[float] = []
    attempt = 0
    before = 0.0
    for time in times.tolist():
        while attempt + 1 < len(starts) and time >= starts[attempt + 1]:
            attempt += 1
            before = max(seconds, default=0.0)
        seconds.append(before + max(0.0, time - starts[attempt]))
    return np.array(seconds)


def draw(lines: Sequence[Curves], *, metric: str, axis: str, out: Path, with_seeds: bool, with_band: bool) -> None:
    """Write the picture."""
    style.save(picture(lines, metric=metric, axis=axis, with_seeds=with_seeds, with_band=with_band), out)


def picture(
    lines: Sequence[Curves], *, metric: str, axis: str, with_seeds: bool = True, with_band: bool = True
) -> Figure:
    """Return the figure: for every run a thick mean, its band and thin seeds; `metric` is the label of the axis."""
    figure, (axes,) = style.blank(height=style.height_for(len(lines)))
    for number, run in enumerate(lines):
        _draw_run(axes, run, number, with_seeds=with_seeds, with_band=with_band)
    if with_band and any(np.isfinite(run.mean.low).any() for run in lines):
        metric += "\nmean over seeds; band: 95 % bootstrap interval"
    axes.set_xlabel(AXES[axis])
    axes.set_ylabel(metric)
    if axis != "wall":
        axes.xaxis.set_major_formatter("{x:,.0f}")
    style.legend(figure, count=len(lines))
    return figure


def _draw_run(axes: Axes, lines: Curves, number: int, *, with_seeds: bool, with_band: bool) -> None:
    mean = lines.mean
    line = style.style(number)
    if with_seeds and len(lines.seeds) > 1:
        for curve in lines.seeds:
            axes.plot(curve.x, np.where(np.isfinite(curve.y), curve.y, np.nan), linewidth=0.7, alpha=0.4, **line)
    if with_band:
        axes.fill_between(mean.x, mean.low, mean.high, color=line["color"], alpha=0.18, linewidth=0)
    axes.plot(mean.x, mean.y, linewidth=1.1, **line)
    label = f"{lines.title} (n = {counted(len(lines.seeds), 'seed')})"
    y = np.where(lines.whole, mean.y, np.nan)
    axes.plot(mean.x, y, linewidth=2.2, marker=style.mark(number), markevery=_marked(mean.x, number),
              label=label, **line)  # fmt: skip


def _marked(x: Values, number: int, count: int = 8) -> list[int]:
    """Return evenly spaced points to mark, shifted for each run."""
    if len(x) == 0:
        return []
    places = x[0] + (x[-1] - x[0]) * (np.arange(count) + (number * 0.37) % 1) / count
    return sorted({int(index) for index in np.searchsorted(x, places).clip(max=len(x) - 1)})
