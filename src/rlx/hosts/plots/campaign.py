"""The progress of a study as a picture: every candidate with its seeds and interval, the head and the incumbent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlx import files

COLOURS = {
    "baseline": "#555555", "advanced": "#1f77b4", "confirmed": "#2ca02c", "rejected": "#d62728",
    "inconclusive": "#ff9900", "debug": "#9467bd", "reverted": "#8c564b",
}  # fmt: skip
OTHER = "#999999"
MARKS = {"baseline": "s", "advanced": "^", "confirmed": "D", "rejected": "x", "inconclusive": "o", "debug": "v"}
SHIFT = 0.18
"""How far beside its candidate a claim's fresh seeds are drawn."""

Row = Mapping[str, Any]


def draw(
    rows: Sequence[Row], path: Path, *, metric: str, head: str, incumbent: str | None, title: str = ""
) -> Path:  # fmt: skip
    """Draw what each candidate scored, in the order tried, and where the head and the incumbent stand."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure

    shown = [row for row in rows if row["scores"]]
    figure = Figure(figsize=(max(7.0, 0.7 * len(shown) + 3.0), 4.4), layout="constrained")
    axes = figure.subplots()
    for place, row in enumerate(shown):
        _candidate(axes, place, row)
    _levels(axes, shown, head, incumbent)
    axes.set_xticks(range(len(shown)), [_tick(row) for row in shown], rotation=45 if len(shown) > 10 else 0)
    axes.set_xlim(-0.6, max(1.0, len(shown) - 1) + 0.6)
    axes.set_ylabel(metric)
    axes.set_title(title or f"candidates tried: {max(0, len(shown) - 1)}", fontsize="medium", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)
    if shown:
        _legend(figure, axes, shown)
    with files.replacing(path) as new:
        figure.savefig(new, format="png", dpi=120, metadata={"Software": None})
    return path


def _tick(row: Row) -> str:
    return str(row["candidate"]) if row["status"] == "baseline" else f"{row['candidate']}\n{row['status']}"


def _candidate(axes: Any, place: int, row: Row) -> None:
    """Draw a candidate's seeds of the search and, beside them and hollow, the fresh ones of its claim."""
    colour, mark = COLOURS.get(row["status"], OTHER), MARKS.get(row["status"], "o")
    for shift, scores, face in ((0.0, row["scores"], colour), (SHIFT, row.get("claimed") or [], "white")):
        if not scores:
            continue
        axes.plot([place + shift - 0.06] * len(scores), scores, ".", color=colour, alpha=0.35, markersize=5)
        mean, low, high = _interval(scores)
        axes.errorbar(
            place + shift, mean, yerr=[[mean - low], [high - mean]], fmt=mark, color=colour, markerfacecolor=face,
            capsize=3, markersize=7,
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
    lines = {"baseline": ("baseline", ":"), incumbent: ("incumbent", "-")}
    lines = {head: ("head, not confirmed", "--"), **lines}
    for place, row in enumerate(rows):
        if row["candidate"] in lines:
            label, style = lines[row["candidate"]]
            colour, mean = COLOURS.get(row["status"], OTHER), sum(row["scores"]) / len(row["scores"])
            axes.hlines(mean, place, max(1.0, len(rows) - 1) + 0.6, colour, style, label=f"{label}: {mean:.4g}",
                        linewidth=1.2)  # fmt: skip


def _legend(figure: Any, axes: Any, rows: Sequence[Row]) -> None:
    from matplotlib.lines import Line2D

    handles, _ = axes.get_legend_handles_labels()
    grey: dict[str, Any] = {"color": OTHER, "linestyle": "none"}
    handles.append(Line2D([], [], marker="o", label="mean and 95 % interval, dots are seeds", **grey))
    if any(row.get("claimed") for row in rows):
        handles.append(Line2D([], [], marker="o", markerfacecolor="white", label="the claim's fresh seeds", **grey))
    figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize="small", frameon=False)
