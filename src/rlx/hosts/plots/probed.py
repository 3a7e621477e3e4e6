"""A probe's picture: the score of the trained policies over the values of a parameter, the feasible range shaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rlx.hosts.plots import page

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PANELS = 4


def draw(probes: Sequence[Mapping[str, Any]], *, out: Path) -> None:
    """Write the picture: a panel a parameter, the first four; seeds as dots, their mean with its interval."""
    shown = probes[:MOST_PANELS]
    figure, panels = page.blank(columns=len(shown), height=4.2)
    for axes, probe in zip(panels, shown, strict=True):
        _draw(axes, probe)
    panels[0].set_ylabel(shown[0]["metric"])
    said = "bar: 95 % bootstrap interval over seeds; dots: the seeds; crosses: refused; shaded: feasible"
    figure.supxlabel(said, fontsize="small")
    page.legend(figure, count=2)
    page.save(figure, out)


def _draw(axes: Axes, probe: Mapping[str, Any]) -> None:
    points = probe["points"]
    places = _places(points)
    measured = [(x, point) for x, point in zip(places, points, strict=True) if point["refused"] is None]
    colour, is_first = page.COLOURS[0], axes.get_subplotspec().colspan.start == 0  # type: ignore[union-attr]
    axes.plot([x for x, _ in measured], [point["mean"] for _, point in measured], marker="o", color=colour,
              linewidth=1.8, label="trained policies" if is_first else None)  # fmt: skip
    axes.plot([x for x, _ in measured], [point["random"] for _, point in measured], marker="s", markersize=3,
              color=page.COLOURS[1], linestyle="--", linewidth=1,
              label="random policy" if is_first else None)  # fmt: skip
    for x, point in measured:
        if point["interval"]:
            axes.plot([x, x], point["interval"], color=colour, linewidth=5, alpha=0.35, solid_capstyle="butt")
    by_value = {str(one["at"]): one["seeds"] for one in probe["scores"]}
    for x, point in measured:
        seeds = by_value.get("None" if point["nominal"] else str(point["value"]), {})
        axes.plot([x] * len(seeds), list(seeds.values()), ".", color="#888888", markersize=4)
    refused = [x for x, point in zip(places, points, strict=True) if point["refused"]]
    axes.plot(refused, [min(point["mean"] for _, point in measured)] * len(refused), "x", color="#000000")
    _mark(axes, probe, places)
    axes.set_xlabel(probe["parameter"])


def _places(points: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return where each value stands: at itself where all are numbers, else one after the other."""
    values = [point["value"] for point in points]
    is_numeric = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
    return [float(value) for value in values] if is_numeric else [float(place) for place in range(len(values))]


def _is_geometric(places: Sequence[float]) -> bool:
    """Say whether values are spaced by ratios rather than by differences."""
    if len(places) < 3 or min(places) <= 0:
        return False
    steps, ratios = np.diff(places), np.diff(np.log(places))
    return bool(ratios.std() / ratios.mean() < steps.std() / steps.mean())


def _mark(axes: Axes, probe: Mapping[str, Any], places: Sequence[float]) -> None:
    """Shade the feasible range, mark the nominal value, and name values that are no numbers."""
    values = [point["value"] for point in probe["points"]]
    for x, point in zip(places, probe["points"], strict=True):
        if point["nominal"]:
            axes.axvline(x, color="#000000", linewidth=0.8, linestyle=":")
    low, high = probe["feasible"]["low"], probe["feasible"]["high"]
    if low is not None:
        axes.axvspan(places[values.index(low)], places[values.index(high)], color=page.COLOURS[2], alpha=0.12)
    if places == values and _is_geometric(places):
        axes.set_xscale("log")
    if places != values:
        axes.set_xticks(list(places), ["as configured" if value is None else str(value) for value in values])
