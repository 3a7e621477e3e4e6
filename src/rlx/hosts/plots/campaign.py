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
MARKS = {"baseline": "s", "advanced": "^", "confirmed": "*", "rejected": "x", "inconclusive": "o", "debug": "d"}


def draw(rows: Sequence[Mapping[str, Any]], path: Path, *, metric: str, head: str, incumbent: str | None) -> Path:
    """Draw what each candidate scored, in the order tried, and where the head and the incumbent stand."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib.figure import Figure

    shown = [row for row in rows if row["scores"]]
    figure = Figure(figsize=(max(6.0, 0.6 * len(shown) + 3.0), 4.2), layout="constrained")
    axes = figure.subplots()
    for place, row in enumerate(shown):
        _candidate(axes, place, row)
    _level(axes, shown, head, "head", "--")
    if incumbent:
        _level(axes, shown, incumbent, "incumbent", "-")
    axes.set_xticks(range(len(shown)), [row["candidate"] for row in shown], rotation=45 if len(shown) > 8 else 0)
    axes.set_ylabel(metric)
    axes.set_title(f"candidates tried: {max(0, len(shown) - 1)}")
    axes.margins(x=0.1)
    if shown:
        axes.legend(loc="best", fontsize="small")
    with files.replacing(path) as new:
        figure.savefig(new, format="png", dpi=120, metadata={"Software": None})
    return path


def _candidate(axes: Any, place: int, row: Mapping[str, Any]) -> None:
    status = row["status"]
    colour, mark = COLOURS.get(status, "#999999"), MARKS.get(status, "o")
    scores = row["scores"]
    axes.plot([place] * len(scores), scores, ".", color=colour, alpha=0.35, markersize=5)
    mean = sum(scores) / len(scores)
    low, high = _spread(scores, mean)
    axes.errorbar(place, mean, yerr=[[mean - low], [high - mean]], fmt=mark, color=colour, capsize=3, markersize=8)


def _spread(scores: Sequence[float], mean: float) -> tuple[float, float]:
    """Return a 95 % interval of the mean over seeds (normal approximation); a single seed has none."""
    if len(scores) < 2:
        return mean, mean
    variance = sum((score - mean) ** 2 for score in scores) / (len(scores) - 1)
    half = 1.96 * (variance / len(scores)) ** 0.5
    return mean - half, mean + half


def _level(axes: Any, rows: Sequence[Mapping[str, Any]], name: str, label: str, style: str) -> None:
    for row in rows:
        if row["candidate"] == name:
            mean = sum(row["scores"]) / len(row["scores"])
            axes.axhline(mean, linestyle=style, color=COLOURS.get(row["status"], "#555555"), label=f"{label}: {name}")
