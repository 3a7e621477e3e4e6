"""Intervals: mean, interquartile mean and median over the seeds of every run, with bootstrap intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlx.compare import Interval, bootstrap_interval, iqm, mean, median
from rlx.hosts.plots import style
from rlx.hosts.plots.scores import Scores

STATISTICS = {"mean": mean, "IQM": iqm, "median": median}


@dataclass(frozen=True)
class Estimate:
    """A statistic over seeds; one seed has no interval."""

    value: float
    interval: Interval | None


def estimates(scores: Scores) -> dict[str, Estimate]:
    """Return each statistic of a run's seeds with its 95 % interval."""
    values = scores.values
    return {
        name: Estimate(float(of(values)), bootstrap_interval(of, values) if len(values) > 1 else None)
        for name, of in STATISTICS.items()
    }


def draw(runs: Sequence[Scores], estimates_by_run: Sequence[dict[str, Estimate]], *, metric: str, out: Path) -> None:
    """Write the picture: one panel per statistic, one row per run, one small dot per seed."""
    figure, panels = style.blank(columns=len(STATISTICS), height=1.7 + 0.5 * len(runs))
    for axes, name in zip(panels, STATISTICS, strict=True):
        for row, (scores, estimates) in enumerate(zip(runs, estimates_by_run, strict=True)):
            colour = style.style(row)["color"]
            estimate = estimates[name]
            axes.plot(scores.values, [row + 0.22] * len(scores.seeds), ".", color="#888888", markersize=4)
            if estimate.interval is not None:
                axes.plot([estimate.interval.low, estimate.interval.high], [row, row], color=colour, linewidth=5,
                          alpha=0.45, solid_capstyle="butt")  # fmt: skip
            axes.plot(estimate.value, row, marker=style.mark(row), color=colour, markersize=7)
        axes.set_title(name, fontsize="medium")
        axes.set_yticks(range(len(runs)), [scores.label for scores in runs])
        axes.set_ylim(len(runs) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
        axes.locator_params(axis="x", nbins=4)
    figure.supxlabel(f"{metric}\nbar: 95 % bootstrap interval over seeds; dots: the seeds", fontsize="medium")
    style.save(figure, out)
