"""The picture of a study's progress: every candidate with its seeds and interval, and the claims in a second panel."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlx.hosts.plots import style

COLOURS = {
    "baseline": "#4D4D4D", "advanced": "#0072B2", "confirmed": "#009E73", "rejected": "#D55E00",
    "inconclusive": "#E69F00", "debug": "#CC79A7", "reverted": "#56B4E9", "withdrawn": "#999999",
}  # fmt: skip
"""Okabe and Ito's colours, as in every picture; marks and words carry the same information."""
OTHER = "#8C8C8C"
MARKS = {"baseline": "s", "advanced": "^", "confirmed": "D", "rejected": "X", "inconclusive": "o", "debug": "v"}
WORDS = {"debug": "failed", "draft": "refused", "validated": "checked"}
HEIGHT = 4.6
CANDIDATE_INCHES = 0.85
NARROW_INCHES = 0.5
MOST_LEVEL = 12
"""With more candidates than this, columns are narrow and names are rotated."""

USUAL_LEVEL = 0.9
"""The level of a study's intervals if its contract says nothing else: each end at 0.05."""

Row = Mapping[str, Any]


def draw(
    rows: Sequence[Row],
    path: Path,
    *,
    metric: str,
    head: str,
    incumbent: str | None,
    title: str = "",
) -> Path:
    """Draw the scores of each candidate in the order tried, the levels of head and incumbent, and the claims.

    Intervals have the level of the effects that the rows give, so that picture and text agree.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    level = level_of(rows)
    claimed = [row for row in rows if row.get("claimed")]
    shown = [row for row in rows if row["scores"] or row.get("trouble") or row["status"] == "debug"]
    widths = [max(5, len(shown))]
    search_title = ""
    if claimed:
        widths = [max(3, len(shown)), max(3, len(claimed))]
        search_title = "the search:\nthe same episodes for all"
    inches = CANDIDATE_INCHES if len(shown) <= MOST_LEVEL else NARROW_INCHES
    width = max(7.0, inches * sum(widths) + 2.0)
    figure = Figure(figsize=(width, HEIGHT), layout="constrained")
    FigureCanvasAgg(figure)
    search, *others = figure.subplots(1, len(widths), squeeze=False, sharey=True, width_ratios=widths)[0]
    _panel(search, shown, "scores", search_title, level)
    _levels(search, shown, head, incumbent)
    search.set_ylabel(metric)
    for axes in others:
        _panel(axes, claimed, "claimed", "the claim:\nfresh seeds, other episodes", level)
    figure.suptitle("\n".join(textwrap.wrap(title, int(width * 12))), fontsize="medium", x=0.01, ha="left")
    _legend(figure, search, shown, level)
    style.write(figure, path, metadata={"Software": None})
    return path


def level_of(rows: Sequence[Row]) -> float:
    """Return the coverage of the last interval that the rows give."""
    known = [row["coverage"] for row in rows if row.get("coverage")]
    return float(known[-1]) if known else USUAL_LEVEL


def _panel(axes: Any, rows: Sequence[Row], which: str, title: str, level: float) -> None:
    """Draw one column per candidate: its seeds, their mean and interval, or `no score`."""
    for place, row in enumerate(rows):
        if row[which]:
            _scores(axes, place, row, row[which], level)
        else:
            axes.annotate("no score", (place, 0.03), xycoords=("data", "axes fraction"), rotation=90, ha="center",
                          va="bottom", color=_colour(row), fontsize="small", backgroundcolor="white")  # fmt: skip
    rotation: dict[str, Any] = {}
    separator = "\n"
    if len(rows) > MOST_LEVEL:
        rotation = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        separator = " "
    axes.set_xticks(range(len(rows)), [separator.join(_tick(row)) for row in rows], fontsize="small", **rotation)
    for label, row in zip(axes.get_xticklabels(), rows, strict=True):
        label.set_color(_colour(row))
    axes.set_xlim(-0.6, max(1.0, len(rows) - 1) + 0.6)
    axes.set_title(title, fontsize="small", color=OTHER)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)


def _colour(row: Row) -> str:
    return COLOURS.get(row["status"], OTHER)


def _tick(row: Row) -> list[str]:
    """Return a candidate's name and result; `not shown` is an advanced candidate whose claim was not confirmed."""
    words = [str(row["candidate"])]
    if row["status"] == "baseline":
        return words
    if row.get("test") == "claim" and row["status"] == "advanced":
        words.append("not shown")
    else:
        words.append(str(WORDS.get(row["status"], row["status"])))
    if "harm" in (row.get("guards") or {}).values():
        words.append("(harm)")
    return words


def _scores(axes: Any, place: int, row: Row, scores: Sequence[float], level: float) -> None:
    axes.plot([place - 0.14] * len(scores), scores, ".", color=_colour(row), alpha=0.4, markersize=5, markeredgewidth=0)
    mean, low, high = _interval(scores, level)
    axes.errorbar(
        place, mean, yerr=[[mean - low], [high - mean]], fmt=MARKS.get(row["status"], "o"), color=_colour(row),
        markeredgecolor="white", markersize=8, elinewidth=1.6, capsize=3.5, zorder=3,
    )  # fmt: skip


def _interval(scores: Sequence[float], level: float) -> tuple[float, float, float]:
    """Return the mean over seeds and its bootstrap interval; a single seed has none."""
    from rlx.compare.stats import bootstrap_interval, mean

    middle = float(mean(scores))
    if len(scores) < 2:
        return middle, middle, middle
    interval = bootstrap_interval(mean, scores, level=level)
    return middle, min(interval.low, middle), max(interval.high, middle)


def _levels(axes: Any, rows: Sequence[Row], head: str, incumbent: str | None) -> None:
    """Draw the levels of the baseline, the incumbent and the head."""
    lines = {head: ("head, not confirmed", "--"), "baseline": ("baseline", ":"), incumbent: ("incumbent", "-")}
    for place, row in enumerate(rows):
        if row["candidate"] in lines and row["scores"]:
            label, line_style = lines[row["candidate"]]
            mean = sum(row["scores"]) / len(row["scores"])
            axes.hlines(mean, place, max(1.0, len(rows) - 1) + 0.6, _colour(row), line_style, linewidth=1.3, alpha=0.8,
                        label=f"{label}: {mean:.4g} in the search")  # fmt: skip


def _legend(figure: Any, axes: Any, rows: Sequence[Row], level: float) -> None:
    from matplotlib.lines import Line2D

    handles, _ = axes.get_legend_handles_labels()
    grey: dict[str, Any] = {"color": OTHER, "linestyle": "none"}
    handles = [handle for handle in handles if not handle.get_label().startswith("_")]
    if any(row["scores"] for row in rows):
        handles.append(Line2D([], [], marker=".", label="a training seed", **grey))
        handles.append(Line2D([], [], marker="o", label=f"mean over seeds, {100 * level:.3g} % interval", **grey))
    if handles:
        figure.legend(handles=handles, loc="outside lower left", ncols=3, fontsize="small", frameon=False)
