"""Pictures of a study: the effect of each candidate with its interval, its budget, and its ledger over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlx.hosts.cli.format import when
from rlx.hosts.ui.chart import BOTTOM, TOP, WIDTH, Frame, picture, short, ticks
from rlx.hosts.ui.html import Html, el
from rlx.number_format import signed

START = 170
"""The left edge of the drawing; names stand left of it."""
ROW = 30
LANES = {
    "contract": ("created", "amended", "approved", "anchored", "drawn"),
    "ideas": ("proposed", "moved", "withdrawn", "noted"),
    "training": ("intent", "started", "ended", "weights"),
    "evidence": ("evaluated",),
    "decisions": ("decided", "claimed", "refused", "stopped", "escalated"),
}


def effect_chart(rows: Sequence[Mapping[str, Any]]) -> Html | None:
    """Draw the last effect of every candidate against its comparison, and the interval of that effect."""
    tested = [row for row in rows if row.get("effect") is not None]
    if not tested:
        return None
    ends = [0.0]
    for row in tested:
        ends += [float(row["effect"]), *map(float, row.get("interval") or ())]
    frame = Frame.around([np.array(ends)], [np.array([0.0, 1.0])]).widened(0.06)
    height = TOP + ROW * len(tested) + BOTTOM
    parts: list[Html] = []
    for value in ticks(*frame.x):
        column = _column(frame, value)
        kind = "zero" if abs(value) < 1e-12 else "grid"
        parts.append(el("line", x1=f"{column:.1f}", x2=f"{column:.1f}", y1=TOP, y2=height - BOTTOM, class_=kind))
        parts.append(el("text", short(value), x=f"{column:.1f}", y=height - BOTTOM + 18, class_="tick middle"))
    for number, row in enumerate(tested):
        y = TOP + ROW * number + ROW / 2
        colour = {"confirmed": "s2", "advanced": "s0"}.get(str(row.get("standing")), "s6")
        mark = [el("text", row["candidate"], x=START - 12, y=y, class_="tick end strong")]
        if row.get("interval"):
            low, high = (_column(frame, float(end)) for end in row["interval"])
            mark.append(el("line", x1=f"{low:.1f}", x2=f"{high:.1f}", y1=y, y2=y, class_=f"mean {colour}"))
        middle = _column(frame, float(row["effect"]))
        mark.append(el("circle", cx=f"{middle:.1f}", cy=y, r=5, class_=f"fill {colour}"))
        words = f"{row['candidate']}: {signed(float(row['effect']))} against {row.get('against') or 'the head'}"
        parts.append(el("g", mark, el("title", words)))
    parts.append(el("text", "effect against the other side of its test", x=(START + WIDTH) / 2, y=height - 6,
                    class_="label middle"))  # fmt: skip
    note = "dot: effect; line: its interval; dashed: no effect; green: confirmed on fresh seeds, blue: advanced"
    return picture(parts, title="effects of the candidates", height=height, note=note)


def _column(frame: Frame, value: float) -> float:
    share = (value - frame.x[0]) / ((frame.x[1] - frame.x[0]) or 1.0)
    return START + share * (WIDTH - START - 20)


def budget_bar(spent: float, left: float, label: str) -> Html:
    """Return how much of a budget is spent, as a bar with words."""
    bar = el("progress", value=round(spent, 3), max=round(spent + left, 3) or 1, aria_label=label)
    return el("span", label, bar)


def timeline(events: Sequence[Any]) -> Html | None:
    """Draw every event of the ledger as a mark over time, one lane per kind of work."""
    if len(events) < 2:
        return None
    times = np.array([float(event.time) for event in events])
    low = float(times.min())
    span = float(times.max()) - low or 1.0
    lanes = [*LANES, "outside"]
    height = TOP + 26 * len(lanes) + 34
    parts = []
    for number, lane in enumerate(lanes):
        y = TOP + 26 * number + 13
        parts.append(el("text", lane, x=START - 12, y=y, class_="tick end strong"))
        parts.append(el("line", x1=START, x2=WIDTH - 20, y1=y, y2=y, class_="grid"))
    for event, time in zip(events, times.tolist(), strict=True):
        number = next((place for place, lane in enumerate(LANES) if event.kind in LANES[lane]), len(LANES))
        column = START + (time - low) / span * (WIDTH - START - 20)
        dot = el("circle", cx=f"{column:.1f}", cy=TOP + 26 * number + 13, r=4, class_=f"dot s{number}")
        parts.append(el("g", dot, el("title", f"{event.kind}, {when(time)}")))
    for place, kind in ((0.0, "tick"), (1.0, "tick last")):
        column = START + place * (WIDTH - START - 20)
        parts.append(el("text", when(low + place * span), x=f"{column:.1f}", y=height - 10, class_=kind))
    return picture(parts, title="the ledger over time", height=height, note="one dot per event; each is a row below")
