"""Pictures of a sweep: parallel coordinates, importance, the lanes of halving and race, and score against cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rlx.hosts.ui.chart import BOTTOM, HEIGHT, TOP, WIDTH, Frame, axes, picture
from rlx.hosts.ui.html import Html, el
from rlx.number_format import figure

SIDE = 60
LOGARITHMIC_FROM = 50.0
"""An axis whose largest value is so many times its smallest is logarithmic."""
MOST_LANES = 40
LANE = 24


def parallel_coordinates(trials: Sequence[Mapping[str, Any]], *, is_lower_better: bool = False) -> Html:
    """Draw one line per trial over all parameters and its score; the best tenth is thick."""
    scored = [trial for trial in trials if isinstance(trial["score"], (int, float))]
    keys = list(dict.fromkeys(key for trial in scored for key in trial["values"]))
    if len(scored) < 2 or not keys:
        return el("p", "Too few scored trials.", class_="muted")
    scales = [_Axis.of(key, [trial["values"].get(key) for trial in scored]) for key in keys]
    scales.append(_Axis.of("score", [trial["score"] for trial in scored]))
    columns = [SIDE + index * (WIDTH - 2 * SIDE) / (len(scales) - 1) for index in range(len(scales))]
    ranked = sorted(scored, key=lambda trial: float(trial["score"]), reverse=is_lower_better)
    best = {trial["trial"] for trial in ranked[-max(1, len(ranked) // 10) :]}
    lines = []
    for trial in ranked:
        values = [*(trial["values"].get(key) for key in keys), trial["score"]]
        places = [axis.row(value) for axis, value in zip(scales, values, strict=True)]
        pairs = [(column, row) for column, row in zip(columns, places, strict=True) if row is not None]
        points = " ".join(f"{column:.1f},{row:.1f}" for column, row in pairs)
        name = el("title", f"trial {trial['trial']}: score {figure(trial['score'])}")
        if trial["trial"] in best:
            lines.append(el("g", el("polyline", points=points, class_="mean s1"), name))
        else:
            lines.append(el("g", el("polyline", points=points), name, class_="seed s0"))
    frame: list[Html] = []
    for column, axis in zip(columns, scales, strict=True):
        frame.append(el("line", x1=f"{column:.1f}", x2=f"{column:.1f}", y1=TOP + 16, y2=HEIGHT - BOTTOM, class_="axis"))
        frame.append(el("text", axis.high, x=f"{column:.1f}", y=TOP + 10, class_="tick middle"))
        frame.append(el("text", axis.low, x=f"{column:.1f}", y=HEIGHT - BOTTOM + 14, class_="tick middle"))
        if axis is scales[0]:  # a long name at the edge stays inside
            frame.append(el("text", axis.label, x=4, y=HEIGHT - BOTTOM + 32, class_="tick"))
        else:
            frame.append(el("text", axis.label, x=f"{column:.1f}", y=HEIGHT - BOTTOM + 32, class_="tick middle"))
    label = f"{len(scored)} trials over {', '.join(keys)} and score"
    return picture([lines, frame], title=label, note="one line per trial; thick: the best tenth")


class _Axis:
    """One axis of parallel coordinates: numbers, logarithmic if they span much, or choices in order."""

    def __init__(self, label: str, places: Mapping[object, float], low: str, high: str) -> None:
        self.label = label.rpartition(".")[2]
        self._places = places
        self.low = low
        self.high = high

    @classmethod
    def of(cls, label: str, values: Sequence[Any]) -> _Axis:
        known = [value for value in values if value is not None]
        numbers = [float(value) for value in known if isinstance(value, (int, float)) and not isinstance(value, bool)]
        if len(numbers) < len(known) or not numbers:
            options = list(dict.fromkeys(map(str, known)))
            places = {option: (index + 0.5) / len(options) for index, option in enumerate(options)}
            return cls(label, {value: places[str(value)] for value in known}, options[0], options[-1])
        low = min(numbers)
        high = max(numbers)
        is_log = low > 0 and high / low >= LOGARITHMIC_FROM
        scale = math.log if is_log else float
        span = (scale(high) - scale(low)) or 1.0
        units = {value: (scale(float(value)) - scale(low)) / span for value in known}
        return cls(label, units, figure(low), figure(high))

    def row(self, value: object) -> float | None:
        if value is None:
            return None
        return TOP + 16 + (1 - self._places[value]) * (HEIGHT - TOP - 16 - BOTTOM)


def importance_bars(importance: Mapping[str, float]) -> Html:
    """Draw the share of the ranks that each parameter explains alone, the largest first."""
    if not importance:
        return el("p", "Too few trials to tell.", class_="muted")
    ordered = sorted(importance.items(), key=lambda pair: -pair[1])
    parts = []
    start = 210
    for number, (key, share) in enumerate(ordered):
        row = TOP + 30 * number + 12
        width = (WIDTH - start - 70) * min(1.0, max(0.0, share))
        parts.append(el("text", key, x=start - 12, y=row, class_="tick end strong"))
        parts.append(el("rect", x=start, y=row - 8, width=f"{max(2.0, width):.1f}", height=16, rx=3, class_="fill s0"))
        parts.append(el("text", f"{share:.0%}", x=f"{start + max(2.0, width) + 8:.1f}", y=row, class_="tick row"))
    note = "share of the ranks of the scores that a parameter explains alone"
    return picture(parts, title="importance of the parameters", height=TOP + 30 * len(ordered) + 6, note=note)


def race_lanes(trials: Sequence[Mapping[str, Any]], plan: Mapping[str, Any]) -> Html:
    """Draw one lane per trial: how long halving trained it, and on how many seeds it raced."""
    shown = list(trials[:MOST_LANES])
    if not shown:
        return el("p", "No trial yet.", class_="muted")
    shares = [float(share) for share in (plan.get("halving") or {}).get("shares") or [1.0]]
    sizes = [int(size) for size in (plan.get("race") or {}).get("sizes") or []]
    search = (90.0, 400.0)
    race = (430.0, 640.0)
    height = TOP + 26 + LANE * len(shown) + 10
    parts = [el("text", "search, share of the training", x=search[0], y=TOP + 4, class_="tick")]
    if sizes:
        parts.append(el("text", "race, seeds", x=race[0], y=TOP + 4, class_="tick"))
    for share in shares:
        column = search[0] + share * (search[1] - search[0])
        parts += _mark(column, height, f"{share:.0%}")
    for size in sizes:
        column = race[0] + size / sizes[-1] * (race[1] - race[0])
        parts += _mark(column, height, str(size))
    for number, trial in enumerate(shown):
        row = TOP + 28 + LANE * number
        colour = "s0" if trial["state"] == "dropped" else "s2"
        if number == 0:
            colour = "s1"
        lane = [el("rect", x=search[0], y=row, width=search[1] - search[0], height=LANE - 10, rx=3, class_="lane")]
        lane.append(el("rect", x=search[0], y=row, width=f"{trial['share'] * (search[1] - search[0]):.1f}",
                       height=LANE - 10, rx=3, class_=f"fill {colour}"))  # fmt: skip
        if sizes and trial["seeds"]:
            width = min(1.0, trial["seeds"] / sizes[-1]) * (race[1] - race[0])
            lane.append(el("rect", x=race[0], y=row, width=f"{width:.1f}", height=LANE - 10, rx=3,
                           class_=f"fill {colour}"))  # fmt: skip
        middle = row + (LANE - 10) / 2
        lane.append(el("text", f"trial {trial['trial']}", x=search[0] - 10, y=middle, class_="tick end strong"))
        lane.append(el("text", figure(trial["score"]), x=WIDTH - 60, y=middle, class_="tick row"))
        words = (
            f"trial {trial['trial']}: {trial['state']}, trained {trial['share']:.0%}, score {figure(trial['score'])}"
        )
        parts.append(el("g", lane, el("title", words)))
    note = "the best trial first; the number at the right is its score"
    if len(trials) > MOST_LANES:
        note += f"; {len(trials) - MOST_LANES} more are in the table"
    return picture(parts, title="how far each trial went", height=height, note=note)


def _mark(column: float, height: float, label: str) -> list[Html]:
    """Return a dashed line at which trials were dropped, with its label."""
    line = el("line", x1=f"{column:.1f}", x2=f"{column:.1f}", y1=TOP + 24, y2=height - 8, class_="zero")
    return [line, el("text", label, x=f"{column:.1f}", y=TOP + 20, class_="tick middle")]


def pareto_chart(trials: Sequence[Mapping[str, Any]], front: Sequence[int]) -> Html:
    """Draw the score of each finished trial against its CPU time; a line joins those that no other beats in both."""
    known = [trial for trial in trials if trial["cpu_seconds"] is not None and trial["score"] is not None]
    if len(known) < 2:
        return el("p", "Too few finished trials.", class_="muted")
    x = np.array([float(trial["cpu_seconds"]) for trial in known])
    y = np.array([float(trial["score"]) for trial in known])
    frame = Frame.around([x], [y]).widened(0.05)
    parts: list[Any] = [axes(frame, "CPU seconds per training", "score")]
    best = sorted((trial for trial in known if trial["trial"] in set(front)), key=lambda trial: trial["cpu_seconds"])
    if len(best) > 1:
        points = frame.points(np.array([float(trial["cpu_seconds"]) for trial in best]),
                              np.array([float(trial["score"]) for trial in best]))  # fmt: skip
        parts.append(el("polyline", points=points, class_="mean s1"))
    for trial, column, row in zip(known, frame.columns(x).tolist(), frame.rows(y).tolist(), strict=True):
        words = f"trial {trial['trial']}: score {figure(trial['score'])}, {figure(trial['cpu_seconds'])} CPU seconds"
        colour = "s1" if trial["trial"] in front else "s0"
        dot = el("circle", cx=f"{column:.1f}", cy=f"{row:.1f}", r=5, class_=f"fill {colour}")
        parts.append(el("g", dot, el("title", words)))
    return picture(
        parts, title="score against CPU time", note="orange: no other trial has a higher score for less CPU time"
    )
