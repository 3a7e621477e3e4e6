"""The picture of a stress test: the share of the gain that each disturbance costs, worst first, with intervals."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlx.hosts.plots import style


def draw(stress: Mapping[str, Any], *, out: Path) -> None:
    """Write the picture: one bar per condition, the limit as a line; refused conditions are not drawn."""
    rows = [condition for condition in stress["conditions"] if condition["drop"] is not None]
    figure, (axes,) = style.blank(height=1.6 + 0.28 * max(1, len(rows)))
    colours = [style.COLOURS[bool(row["brittle"])] for row in rows]
    axes.barh(range(len(rows)), [100 * row["drop"] for row in rows], color=colours, alpha=0.75, height=0.7)
    for place, row in enumerate(rows):
        if row["drop_interval"]:
            axes.plot([100 * end for end in row["drop_interval"]], [place, place], color="#000000", linewidth=1.4)
    axes.axvline(100 * stress["limit"], color="#000000", linewidth=0.9, linestyle=":")
    axes.axvline(0, color="#000000", linewidth=0.6)
    axes.set_yticks(range(len(rows)), [_label(row) for row in rows])
    axes.set_ylim(max(1, len(rows)) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(
        "lost share of the gain over the random policy, %\n"
        f"line: 95 % bootstrap interval over seeds; dotted: {stress['limit']:.0%}, the limit for brittle"
    )
    style.save(figure, out)


def _label(condition: Mapping[str, Any]) -> str:
    strength = condition["strength"]
    if isinstance(strength, float):
        strength = f"{strength:g}"
    return f"{condition['name']} {strength} {condition['unit']}".rstrip()
