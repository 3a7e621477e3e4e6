"""The progress of a study as a picture: every candidate with its seeds and interval, and beside it what was claimed."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlx import files
from rlx.hosts.plots import page

COLOURS = {
    "baseline": "#4D4D4D", "advanced": "#0072B2", "confirmed": "#009E73", "rejected": "#D55E00",
    "inconclusive": "#E69F00", "debug": "#CC79A7", "reverted": "#56B4E9",
}  # fmt: skip
"""Okabe and Ito's, as on every page: told apart with every common colour blindness; marks and words say the same."""
OTHER = "#8C8C8C"
MARKS = {"baseline": "s", "advanced": "^", "confirmed": "D", "rejected": "X", "inconclusive": "o", "debug": "v"}
WORDS = {"debug": "failed", "draft": "refused", "validated": "checked"}
HEIGHT, INCHES, NARROW_INCHES, MOST_LEVEL = 4.6, 0.85, 0.5, 12
"""The picture's height, a candidate's width, the same where there are many, and how many names stand level."""

Row = Mapping[str, Any]


def draw(
    rows: Sequence[Row], path: Path, *, metric: str, head: str, incumbent: str | None, title: str = ""
) -> Path:  # fmt: skip
    """Draw what each candidate scored, in the order tried, where head and incumbent stand, and each claim apart."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    claimed = [row for row in rows if row.get("claimed")]
    shown = [row for row in rows if row["scores"] or row.get("trouble") or row["status"] == "debug"]
    widths = [max(3, len(shown)), max(3, len(claimed))] if claimed else [max(5, len(shown))]
    width = max(7.0, (INCHES if len(shown) <= MOST_LEVEL else NARROW_INCHES) * sum(widths) + 2.0)
    figure = Figure(figsize=(width, HEIGHT), layout="constrained")
    FigureCanvasAgg(figure)
    search, *others = figure.subplots(1, len(widths), squeeze=False, sharey=True, width_ratios=widths)[0]
    _panel(search, shown, "scores", "the search:\nthe same episodes for all" if claimed else "")
    _levels(search, shown, head, incumbent)
    search.set_ylabel(metric)
    for axes in others:
        _panel(axes, claimed, "claimed", "the claim:\nfresh seeds, other episodes")
    figure.suptitle(_wrapped(title, width), fontsize="medium", x=0.01, ha="left")
    _legend(figure, search, shown)
    with files.replacing(path) as new:
        figure.savefig(new, format="png", dpi=page.DOTS_PER_INCH, metadata={"Software": None})
    return path


def _wrapped(title: str, width: float) -> str:
    """Break a title into lines that the picture is wide enough for."""
    return "\n".join(textwrap.wrap(title, int(width * 12)))


def _panel(axes: Any, rows: Sequence[Row], which: str, title: str) -> None:
    """Draw one column a candidate: its seeds, their mean and interval; one without a score has its word alone."""
    for place, row in enumerate(rows):
        if row[which]:
            _scores(axes, place, row, row[which])
        else:
            axes.annotate("no score", (place, 0.03), xycoords=("data", "axes fraction"), rotation=90, ha="center",
                          va="bottom", color=_colour(row), fontsize="small", backgroundcolor="white")  # fmt: skip
    leaning = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if len(rows) > MOST_LEVEL else {}
    axes.set_xticks(range(len(rows)), [_tick(row, is_level=not leaning) for row in rows], fontsize="small", **leaning)
    for label, row in zip(axes.get_xticklabels(), rows, strict=True):
        label.set_color(_colour(row))
    axes.set_xlim(-0.6, max(1.0, len(rows) - 1) + 0.6)
    axes.set_title(title, fontsize="small", color=OTHER)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)


def _colour(row: Row) -> str:
    return COLOURS.get(row["status"], OTHER)


def _tick(row: Row, *, is_level: bool) -> str:
    if row["status"] == "baseline":
        return str(row["candidate"])
    is_harmful = "harm" in (row.get("guards") or {}).values()
    word = "not shown" if _is_lost_claim(row) else WORDS.get(row["status"], row["status"])
    words = [row["candidate"], word, *(["(harm)"] if is_harmful else [])]
    return ("\n" if is_level else " ").join(words)


def _is_lost_claim(row: Row) -> bool:
    """Say whether a candidate that took the head's place was claimed and not confirmed."""
    return row.get("test") == "claim" and row["status"] == "advanced"


def _scores(axes: Any, place: int, row: Row, scores: Sequence[float]) -> None:
    axes.plot([place - 0.14] * len(scores), scores, ".", color=_colour(row), alpha=0.4, markersize=5, markeredgewidth=0)
    mean, low, high = _interval(scores)
    axes.errorbar(
        place, mean, yerr=[[mean - low], [high - mean]], fmt=MARKS.get(row["status"], "o"), color=_colour(row),
        markeredgecolor="white", markersize=8, elinewidth=1.6, capsize=3.5, zorder=3,
    )  # fmt: skip


def _interval(scores: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean over seeds and its 95 % bootstrap interval; a single seed has none."""
    from rlx.compare.stats import bootstrap_interval, mean

    middle = float(mean(scores))
    if len(scores) < 2:
        return middle, middle, middle
    found = bootstrap_interval(mean, scores)
    return middle, min(found.low, middle), max(found.high, middle)


def _levels(axes: Any, rows: Sequence[Row], head: str, incumbent: str | None) -> None:
    """Draw where the baseline stands, and from its candidate on the incumbent, and the head where it is another."""
    lines = {head: ("head, not confirmed", "--"), "baseline": ("baseline", ":"), incumbent: ("incumbent", "-")}
    for place, row in enumerate(rows):
        if row["candidate"] in lines and row["scores"]:
            label, style = lines[row["candidate"]]
            mean = sum(row["scores"]) / len(row["scores"])
            axes.hlines(mean, place, max(1.0, len(rows) - 1) + 0.6, _colour(row), style, linewidth=1.3, alpha=0.8,
                        label=f"{label}: {mean:.4g} in the search")  # fmt: skip


def _legend(figure: Any, axes: Any, rows: Sequence[Row]) -> None:
    from matplotlib.lines import Line2D

    handles, _ = axes.get_legend_handles_labels()
    grey: dict[str, Any] = {"color": OTHER, "linestyle": "none"}
    handles = [one for one in handles if not one.get_label().startswith("_")]
    if any(row["scores"] for row in rows):
        handles.append(Line2D([], [], marker=".", label="a training seed", **grey))
        handles.append(Line2D([], [], marker="o", label="mean over seeds, 95 % interval", **grey))
    if handles:
        figure.legend(handles=handles, loc="outside lower left", ncols=3, fontsize="small", frameon=False)
