"""A stress test's picture: how much of the gain each disturbance costs, worst first, with intervals over seeds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlx.hosts.plots import page


def draw(stress: Mapping[str, Any], *, out: Path) -> None:
    """Write the picture: a bar a condition, the limit as a line; what was refused is not drawn."""
    rows = [one for one in stress["conditions"] if one["drop"] is not None]
    figure, (axes,) = page.blank(height=1.6 + 0.28 * max(1, len(rows)))
    colours = [page.COLOURS[1] if one["brittle"] else page.COLOURS[0] for one in rows]
    axes.barh(range(len(rows)), [100 * one["drop"] for one in rows], color=colours, alpha=0.75, height=0.7)
    for row, one in enumerate(rows):
        if one["drop_interval"]:
            axes.plot([100 * end for end in one["drop_interval"]], [row, row], color="#000000", linewidth=1.4)
    axes.axvline(100 * stress["limit"], color="#000000", linewidth=0.9, linestyle=":")
    axes.axvline(0, color="#000000", linewidth=0.6)
    axes.set_yticks(range(len(rows)), [_label(one) for one in rows])
    axes.set_ylim(max(1, len(rows)) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(
        "lost of the gain over the random policy, %\n"
        f"line: 95 % bootstrap interval over seeds; dotted: {stress['limit']:.0%}, above it brittle"
    )
    page.save(figure, out)


def _label(one: Mapping[str, Any]) -> str:
    strength = f"{one['strength']:g}" if isinstance(one["strength"], float) else str(one["strength"])
    return f"{one['name']} {strength} {one['unit']}".rstrip()
