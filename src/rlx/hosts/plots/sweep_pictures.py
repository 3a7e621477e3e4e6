"""The pictures of a sweep: its trials as lines over the parameters, and how much each parameter matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlx.hosts.plots import style

Marks = Sequence[Sequence[tuple[float, str]]]
FAILED_COLOUR = "#999999"


def parallel(trials: Sequence[Mapping[str, Any]], keys: Sequence[str], marks: Marks, *, out: Path) -> None:
    """Draw one line per trial, best first, over one axis per parameter and one for the rank; better ones are darker."""
    figure, panels = style.blank(height=4.6)
    axes = panels[0]
    order = [trial for trial in reversed(trials) if trial["score"] is not None]
    for trial in trials:
        if trial["score"] is None:
            _line(axes, trial["places"], None, color=FAILED_COLOUR, linestyle=":", linewidth=0.8)
    for rank, trial in enumerate(order):
        share = (rank + 1) / len(order)
        is_best = rank == len(order) - 1
        colour = style.COLOURS[1] if is_best else style.COLOURS[0]
        _line(axes, trial["places"], share, color=colour, alpha=0.15 + 0.75 * share, linewidth=1 + 1.2 * is_best)
    for position, axis_marks in enumerate(marks):
        axes.axvline(position, color="#000000", linewidth=0.8)
        for place, text in axis_marks:
            axes.annotate(text, (position, place), xytext=(4, 0), textcoords="offset points", fontsize=7, va="center")
    axes.axvline(len(keys), color="#000000", linewidth=0.8)
    axes.set_xticks(range(len(keys) + 1), [*keys, "rank"], fontsize=8)
    axes.set_yticks([])
    axes.set_ylim(-0.05, 1.05)
    figure.supxlabel("dark: better; thick: the best one; dotted: failed", fontsize="small")
    style.save(figure, out)


def _line(axes: Any, places: Sequence[float | None], rank: float | None, **look: Any) -> None:
    values = [np.nan if place is None else place for place in places]
    if rank is not None:
        values.append(rank)
    axes.plot(range(len(values)), values, marker=".", markersize=3, **look)


def bars(importance: Mapping[str, float], *, out: Path) -> None:
    """Draw how much of the ranks each parameter explains on its own."""
    ordered = sorted(importance.items(), key=lambda pair: pair[1])
    figure, panels = style.blank(height=1.6 + 0.4 * max(1, len(ordered)))
    axes = panels[0]
    axes.barh([key for key, _ in ordered], [share for _, share in ordered], color=style.COLOURS[0])
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of the ranks that the parameter explains on its own")
    style.save(figure, out)
