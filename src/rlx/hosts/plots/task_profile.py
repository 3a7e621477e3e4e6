"""The picture of a comparison over several tasks: IQM with intervals, and the performance profile."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rlx.compare import performance_profile, profile_band
from rlx.compare.task_aggregate import TaskAggregate
from rlx.hosts.plots import style

THRESHOLDS = 200
HIGHEST = 2.0  # of the reference: a single outlier must not squeeze the rest of the picture
LOWEST = -0.5


def draw(aggregate: TaskAggregate, out: Path) -> None:
    """Write the picture: the profile of normalised scores, and the IQM of every algorithm in the legend's order."""
    figure, (axes,) = style.blank(height=style.height_for(len(aggregate.algorithms)))
    everything = np.concatenate([matrix.ravel() for matrix in aggregate.scores.values()])
    low = max(LOWEST, min(0.0, float(everything.min())))
    high = min(HIGHEST, max(1.0, float(everything.max())))
    levels = np.linspace(low, high, THRESHOLDS)
    for number, algorithm in enumerate(aggregate.algorithms):
        matrix = aggregate.scores[algorithm]
        line = style.style(number)
        iqm = aggregate.aggregates[algorithm]["IQM"]
        label = f"{algorithm}: IQM {iqm.value:.2f}"
        if iqm.interval is not None:
            label += f" [{iqm.interval.low:.2f}, {iqm.interval.high:.2f}]"
        marked = list(range(number * 7 % 25, THRESHOLDS, 25))
        axes.plot(
            levels, performance_profile(matrix, levels), linewidth=2.2, marker=style.mark(number), markevery=marked,
            label=label, **line,
        )  # fmt: skip
        if len(matrix) > 1:
            band = profile_band(matrix, levels)
            axes.fill_between(levels, band.low, band.high, color=line["color"], alpha=0.18, linewidth=0)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("τ, normalised score (0: random policy, 1: reference)")
    tasks = len(aggregate.tasks)
    axes.set_ylabel(f"share of runs above τ, over {tasks} tasks\nband: 95 % bootstrap over seeds")
    style.legend(figure, count=len(aggregate.algorithms))
    style.save(figure, out)
