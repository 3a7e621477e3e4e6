"""Learning curves as pictures: every seed thin, their mean thick, one colour a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rlx import files

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from rlx.runs.run import Run, Seed

    Values = NDArray[np.float64]

# Okabe and Ito's colours, told apart with every common colour blindness; the lightest one comes last.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#F0E442")
STYLES = ("-", "--", ":", "-.")
AXES = {"steps": "steps", "wall": "training time (minutes)", "episodes": "episodes"}
GRID_POINTS = 1000
EVALUATION = "eval/return_mean"


@dataclass(frozen=True)
class Curve:
    """One seed's metric: x ascending, y with NaN and infinity kept."""

    seed: int
    x: Values
    y: Values


@dataclass(frozen=True)
class Curves:
    """One run's metric, a curve a seed that has logged it."""

    name: str
    seeds: tuple[Curve, ...]

    def mean(self) -> tuple[Values, Values]:
        """Return the mean over all seeds, up to where the shortest ends: no seed is left out of it."""
        finite = [(curve.x[keep], curve.y[keep]) for curve in self.seeds if (keep := np.isfinite(curve.y)).any()]
        if not finite:
            return np.empty(0), np.empty(0)
        start, end = max(x[0] for x, _ in finite), min(x[-1] for x, _ in finite)
        points = np.unique(np.concatenate([x for x, _ in finite]))
        grid = points[(points >= start) & (points <= end)]
        if len(grid) > GRID_POINTS:
            grid = np.linspace(start, end, GRID_POINTS)
        if len(grid) == 0:
            return np.empty(0), np.empty(0)
        return grid, np.mean([np.interp(grid, x, y) for x, y in finite], axis=0)

    def non_finite(self) -> int:
        """Count the values that no line can show."""
        return sum(int((~np.isfinite(curve.y)).sum()) for curve in self.seeds)


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


def draw(lines: Sequence[Curves], *, metric: str, axis: str, out: Path, with_seeds: bool = True) -> None:
    """Write the picture; its kind follows from the file's ending."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(figure)  # no display, no global state
    axes = figure.add_subplot()
    for number, one in enumerate(lines):
        style = {"color": COLOURS[number % len(COLOURS)], "linestyle": STYLES[number // len(COLOURS) % len(STYLES)]}
        _draw_run(axes, one, style, with_seeds=with_seeds)
    axes.set_xlabel(AXES[axis])
    axes.set_ylabel(metric)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    if axis != "wall":
        axes.xaxis.set_major_formatter("{x:,.0f}")
    figure.legend(loc="outside upper left", frameon=False, fontsize="small", ncols=2 if len(lines) > 3 else 1)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=150)


def _draw_run(axes: Axes, lines: Curves, style: dict[str, Any], *, with_seeds: bool) -> None:
    count = len(lines.seeds)
    label = f"{lines.name} (n = {count} {'seed' if count == 1 else 'seeds'})"
    for curve in lines.seeds if with_seeds and count > 1 else ():
        axes.plot(curve.x, np.where(np.isfinite(curve.y), curve.y, np.nan), linewidth=0.8, alpha=0.4, **style)
    x, y = lines.mean()
    marker = "o" if len(x) == 1 else ""
    axes.plot(x, y, linewidth=2.2, marker=marker, label=label, **style)
