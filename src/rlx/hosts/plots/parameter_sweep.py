"""The picture of a probe: the score of the trained policies over a parameter, with the feasible range shaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rlx.hosts.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PANELS = 4


def draw(probes: Sequence[Mapping[str, Any]], *, out: Path) -> None:
    """Write the picture: one panel per parameter, at most four; seeds as dots, their mean with its interval."""
    shown = probes[:MOST_PANELS]
    figure, panels = style.blank(columns=len(shown), height=4.2)
    for axes, probe in zip(panels, shown, strict=True):
        _draw(axes, probe)
    panels[0].set_ylabel(shown[0]["metric"])
    legend = "bar: 95 % bootstrap interval over seeds; dots: the seeds; crosses: refused; shaded: feasible"
    figure.supxlabel(legend, fontsize="small")
    style.legend(figure, count=2)
    style.save(figure, out)


def _draw(axes: Axes, probe: Mapping[str, Any]) -> None:
    points = probe["points"]
    places = _places(points)
    measured = [(x, point) for x, point in zip(places, points, strict=True) if point["refused"] is None]
    x_values = [x for x, _ in measured]
    trained, random = axes.plot(x_values, [(point["mean"], point["random"]) for _, point in measured])
    trained.set(marker="o", color=style.COLOURS[0], linewidth=1.8)
    random.set(marker="s", markersize=3, color=style.COLOURS[1], linestyle="--", linewidth=1)
    if axes.get_subplotspec().colspan.start == 0:  # type: ignore[union-attr]  # one legend for all panels
        trained.set_label("trained policies")
        random.set_label("random policy")
    by_value = {str(row["at"]): row["seeds"] for row in probe["scores"]}
    for x, point in measured:
        if point["interval"]:
            axes.plot([x, x], point["interval"], color=style.COLOURS[0], linewidth=5, alpha=0.35, solid_capstyle="butt")
        seeds = by_value.get(str(None if point["nominal"] else point["value"]), {})
        axes.plot([x] * len(seeds), list(seeds.values()), ".", color="#888888", markersize=4)
    refused = [x for x, point in zip(places, points, strict=True) if point["refused"]]
    axes.plot(refused, [min(point["mean"] for _, point in measured)] * len(refused), "x", color="#000000")
    _mark(axes, probe, places)
    axes.set_xlabel(probe["parameter"])


def _places(points: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the place of each value: the value itself if all are numbers, otherwise its index."""
    values = [point["value"] for point in points]
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return [float(value) for value in values]
    return [float(index) for index in range(len(values))]


def _is_geometric(places: Sequence[float]) -> bool:
    """Return whether values are spaced by ratios rather than by differences."""
    if len(places) < 3 or min(places) <= 0:
        return False
    steps = np.diff(places)
    ratios = np.diff(np.log(places))
    return bool(ratios.std() / ratios.mean() < steps.std() / steps.mean())


def _mark(axes: Axes, probe: Mapping[str, Any], places: Sequence[float]) -> None:
    """Shade the feasible range, mark the nominal value, and name values that are not numbers."""
    values = [point["value"] for point in probe["points"]]
    for x, point in zip(places, probe["points"], strict=True):
        if point["nominal"]:
            axes.axvline(x, color="#000000", linewidth=0.8, linestyle=":")
    feasible = probe["feasible"]
    if feasible["low"] is not None:
        ends = [places[values.index(feasible[end])] for end in ("low", "high")]
        axes.axvspan(*ends, color=style.COLOURS[2], alpha=0.12)
    if places == values and _is_geometric(places):
        axes.set_xscale("log")
    if places != values:
        axes.set_xticks(list(places), ["as configured" if value is None else str(value) for value in values])
