"""Charts that the server draws as SVG: they need no JavaScript, print well and travel inside a report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rlx.hosts.ui.html import Html, el
from rlx.number_format import counted, figure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rlx.hosts.plots.curves import Curves

    Values = NDArray[np.float64]

WIDTH = 720
HEIGHT = 320
LEFT = 76
RIGHT = 14
TOP = 12
BOTTOM = 46
COLUMNS = WIDTH - LEFT - RIGHT
COLOURS = 8
LANE = 17
"""The height of a finding's mark; `static/app.js` uses the same."""
MOST_THIN = 60
"""The most seeds that are drawn as thin lines in one chart."""


@dataclass(frozen=True)
class Marking:
    """A stretch of the x axis that a finding points to."""

    start: float
    end: float
    name: str
    label: str


@dataclass(frozen=True)
class Frame:
    """The area of a chart: what the ends of both axes stand for."""

    x: tuple[float, float]
    y: tuple[float, float]

    @classmethod
    def around(cls, xs: Sequence[Values], ys: Sequence[Values]) -> Frame:
        """Return the frame that holds all finite points, with a margin above and below."""
        x = _ends(xs)
        low, high = _ends(ys)
        margin = 0.04 * (high - low) or abs(high) * 0.05 or 1.0
        return cls(x, (low - margin, high + margin))

    def widened(self, share: float) -> Frame:
        """Return the frame with a margin at the left and the right."""
        margin = share * (self.x[1] - self.x[0]) or 1.0
        return Frame((self.x[0] - margin, self.x[1] + margin), self.y)

    def with_room_above(self, height: float) -> Frame:
        """Return the frame with an empty strip of this height above the points, at most half of the chart."""
        low, high = self.y
        share = min(0.5, height / (HEIGHT - TOP - BOTTOM))
        return Frame(self.x, (low, low + (high - low) / (1 - share)))

    def columns(self, x: Values) -> Values:
        return LEFT + (x - self.x[0]) / ((self.x[1] - self.x[0]) or 1.0) * COLUMNS

    def rows(self, y: Values) -> Values:
        return TOP + (self.y[1] - y) / ((self.y[1] - self.y[0]) or 1.0) * (HEIGHT - TOP - BOTTOM)

    def points(self, x: Values, y: Values) -> str:
        pairs = zip(self.columns(x).tolist(), self.rows(y).tolist(), strict=True)
        return " ".join(f"{column:.1f},{row:.1f}" for column, row in pairs)


def _ends(arrays: Sequence[Values]) -> tuple[float, float]:
    finite = [array[np.isfinite(array)] for array in arrays]
    finite = [array for array in finite if len(array)]
    if not finite:
        return 0.0, 1.0
    return min(float(array.min()) for array in finite), max(float(array.max()) for array in finite)


def decimated(x: Values, y: Values, *, columns: int = COLUMNS) -> tuple[Values, Values]:
    """Return at most the lowest and the highest point of every column, in their order; spikes stay visible."""
    keep = np.isfinite(y)
    x = x[keep]
    y = y[keep]
    if len(x) <= 2 * columns:
        return x, y
    column = np.minimum((x - x[0]) / ((x[-1] - x[0]) or 1.0) * columns, columns - 1).astype(np.int64)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    order = np.lexsort((y, column))
    ends = np.append(starts[1:], len(x)) - 1
    chosen = np.unique(np.concatenate([order[starts], order[ends]]))
    return x[chosen], y[chosen]


def line_chart(
    groups: Sequence[Curves],
    *,
    x_label: str,
    y_label: str,
    markings: Sequence[Marking] = (),
    with_band: bool = True,
    note: str = "",
) -> Html:
    """Draw for every group the mean as a thick line, its 95 % interval as a band, and the seeds as thin lines.

    A `note` replaces the words below the chart, if its lines are not means over seeds.
    """
    shown = [group for group in groups if len(group.centre[0])]
    if not shown:
        return el("p", f"No values of {y_label} yet.", class_="muted")
    seeds = [decimated(curve.x, curve.y) for group in shown for curve in group.seeds]
    frame = Frame.around([x for x, _ in seeds], [y for _, y in seeds]).with_room_above(LANE * len(markings))
    if frame.x[0] == frame.x[1]:  # a single step: its dot stands in the middle
        frame = frame.widened(0.5)
    thin = []
    thick = []
    drawn = 0
    for number, group in enumerate(shown):
        colour = f"s{number % COLOURS}"
        if with_band and len(group.seeds) > 1:
            thick.append(_band(frame, group, colour))
        for curve in group.seeds[: max(0, MOST_THIN - drawn)]:
            if len(group.seeds) > 1:
                name = el("title", f"{group.name}, seed {curve.seed}")
                thin.append(el("g", _line(frame, curve.x, curve.y), name, class_=f"seed {colour}"))
                drawn += 1
        dash = {0: None, 1: "7 4", 2: "2 3"}.get(number // COLOURS, "7 3 2 3")
        thick.append(_line(frame, *group.centre, class_=f"mean {colour}", stroke_dasharray=dash))
    marks = [_marking(frame, marking, lane) for lane, marking in enumerate(markings)]
    title = f"{y_label} over {x_label}: {', '.join(group.name for group in shown[:6])}"
    drawing = _svg([axes(frame, x_label, y_label), marks, thin, thick], title=title)
    legend = [_legend_entry(number, group, is_mean=not note) for number, group in enumerate(shown)]
    words = note or "thick: mean over seeds; band: 95 % bootstrap interval of the mean; thin: seeds"
    if not note and not any(len(group.seeds) > 1 for group in shown):
        words = "one seed: no interval"
    caption = el("figcaption", el("ul", legend, class_="legend"), el("small", words))
    if note:
        return el("figure", drawing, caption, class_="chart picture")
    return el("figure", el("div", drawing, class_="plot"), _readout(), caption, class_="chart", data_x=x_label,
              data_y=y_label)  # fmt: skip


def _line(frame: Frame, x: Values, y: Values, **attributes: object) -> Html:
    """Return a curve; one point alone as a dot."""
    x, y = decimated(x, y)
    if len(x) == 1:
        column, row = frame.points(x, y).split(",")
        return el("circle", cx=column, cy=row, r=4, **attributes)
    return el("polyline", points=frame.points(x, y), **attributes)


def empty_chart(*, x_label: str, y_label: str) -> Html:
    """Return a chart without lines, which a browser fills: it keeps their place."""
    words = el("text", "Reading the curves …", x=WIDTH / 2, y=HEIGHT / 2, class_="middle")
    frame = axes(Frame((0.0, 1.0), (0.0, 1.0)), x_label, y_label)[-3:]
    drawing = _svg([frame, words], title=f"{y_label} over {x_label}")
    return el("figure", el("div", drawing, class_="plot"), _readout(), class_="chart", data_x=x_label, data_y=y_label)


def _readout() -> Html:
    """Return the line in which a browser shows the value under the pointer."""
    return el("output", class_="readout", aria_hidden="true")


def _band(frame: Frame, group: Curves, colour: str) -> Html:
    mean = group.mean
    keep = np.isfinite(mean.low)
    step = max(1, int(keep.sum()) // 400)
    x = mean.x[keep][::step]
    points = f"{frame.points(x, mean.low[keep][::step])} {frame.points(x[::-1], mean.high[keep][::step][::-1])}"
    return el("polygon", points=points, class_=f"band {colour}")


def _legend_entry(number: int, group: Curves, *, is_mean: bool) -> Html:
    x, y = group.centre
    swatch = el("span", "", class_=f"swatch s{number % COLOURS}", aria_hidden="true")
    label = f"{group.name}: mean {figure(float(y[-1]))} at {x[-1]:,.6g}, n = {counted(len(group.seeds), 'seed')}"
    if not is_mean:
        label = group.name
    return el("li", swatch, label)


def _marking(frame: Frame, marking: Marking, lane: int) -> Html:
    """Return the mark of a finding. Each has a lane of its own, as findings often point to the same steps."""
    left, right = frame.columns(np.array([marking.start, marking.end])).clip(LEFT, WIDTH - RIGHT).tolist()
    top = TOP + LANE * lane
    area = el("rect", x=f"{left:.1f}", y=top, width=f"{max(2.0, right - left):.1f}", height=LANE - 2, class_="marking")
    name = el("text", marking.name, x=f"{left + 4:.1f}", y=top + LANE - 5, class_="marking-name")
    if left > (LEFT + WIDTH - RIGHT) / 2:
        name = el("text", marking.name, x=f"{right - 4:.1f}", y=top + LANE - 5, class_="marking-name end")
    return el("g", area, name, el("title", marking.label), role="img", aria_label=marking.label)


def _svg(parts: object, *, title: str, height: int = HEIGHT) -> Html:
    return el("svg", el("title", title), parts, viewBox=f"0 0 {WIDTH} {height}", preserveAspectRatio="xMinYMin meet",
              role="img", aria_label=title)  # fmt: skip


def picture(parts: object, *, title: str, height: int = HEIGHT, note: str = "") -> Html:
    """Return a drawing that is not replaced by a zooming chart, with a note below it."""
    caption = el("figcaption", el("small", note)) if note else None
    return el("figure", _svg(parts, title=title, height=height), caption, class_="chart picture")


def axes(frame: Frame, x_label: str, y_label: str) -> list[Html]:
    """Return the grid, the ticks and the labels of a chart."""
    bottom = HEIGHT - BOTTOM
    parts = []
    for value in ticks(*frame.y):
        row = float(frame.rows(np.array([value]))[0])
        parts.append(el("line", x1=LEFT, x2=WIDTH - RIGHT, y1=f"{row:.1f}", y2=f"{row:.1f}", class_="grid"))
        parts.append(el("text", short(value), x=LEFT - 8, y=f"{row:.1f}", class_="tick end"))
    for value in ticks(*frame.x):
        column = float(frame.columns(np.array([value]))[0])
        parts.append(el("text", short(value), x=f"{column:.1f}", y=bottom + 20, class_="tick middle"))
    parts.append(el("line", x1=LEFT, x2=WIDTH - RIGHT, y1=bottom, y2=bottom, class_="axis"))
    parts.append(el("text", x_label, x=(LEFT + WIDTH - RIGHT) / 2, y=HEIGHT - 6, class_="label middle"))
    middle = (TOP + bottom) / 2
    parts.append(el("text", y_label, x=14, y=middle, class_="label middle", transform=f"rotate(-90 14 {middle})"))
    return parts


def ticks(low: float, high: float, *, most: int = 5) -> list[float]:
    """Return round numbers between two ends."""
    span = high - low
    if not math.isfinite(span) or span <= 0:
        return [low]
    step = 10.0 ** math.floor(math.log10(span / most))
    for factor in (1, 2, 5, 10):
        if span / (step * factor) <= most:
            step *= factor
            break
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def short(value: float) -> str:
    """Spell a tick: 250k, 1.5M, 0.02."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.4g}{unit}".replace("-", "−")
    return f"{value + 0.0:.4g}".replace("-", "−")


def sparkline(x: Values, y: Values, *, width: int = 120, height: int = 28) -> Html:
    """Draw a mean as a small picture that stands alone."""
    x, y = decimated(x, y, columns=width // 2)
    if len(x):
        low, high = _ends([y])
        columns = 2 + (x - x[0]) / ((x[-1] - x[0]) or 1.0) * (width - 4)
        rows = 2 + (high - y) / ((high - low) or 1.0) * (height - 4)
        pairs = zip(columns.tolist(), rows.tolist(), strict=True)
        points = " ".join(f"{column:.1f},{row:.1f}" for column, row in pairs)
    else:
        points = ""
    line = el("polyline", points=points, fill="none", stroke="#2b7cc9", stroke_width="1.6")
    return el("svg", line, xmlns="http://www.w3.org/2000/svg", width=width, height=height,
              viewBox=f"0 0 {width} {height}")  # fmt: skip


def interval_chart(
    rows: Sequence[tuple[str, Sequence[float], tuple[float, float, float] | None]], *, label: str
) -> Html:
    """Draw one line per run: its seeds as dots, and the estimate with its interval."""
    values = [value for _, seeds, estimate in rows for value in (*seeds, *(estimate or ()))]
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return el("p", f"No {label} yet.", class_="muted")
    frame = Frame.around([np.array(finite)], [np.array([0.0, 1.0])])
    frame = frame.widened(0.03)
    line = 50
    height = TOP + line * len(rows) + BOTTOM
    parts: list[Html] = []
    for value in ticks(*frame.x):
        column = float(frame.columns(np.array([value]))[0])
        parts.append(el("line", x1=f"{column:.1f}", x2=f"{column:.1f}", y1=TOP, y2=height - BOTTOM, class_="grid"))
        parts.append(el("text", short(value), x=f"{column:.1f}", y=height - BOTTOM + 20, class_="tick middle"))
    for number, (name, seeds, estimate) in enumerate(rows):
        colour = f"s{number % COLOURS}"
        row = TOP + line * number + 30
        parts.append(el("text", name, x=LEFT, y=row - 15, class_="tick strong"))
        for column in frame.columns(np.array([value for value in seeds if math.isfinite(value)])).tolist():
            parts.append(el("circle", cx=f"{column:.1f}", cy=row, r=3.5, class_=f"dot {colour}"))
        if estimate:
            low, middle, high = frame.columns(np.array(estimate)).tolist()
            parts.append(el("line", x1=f"{low:.1f}", x2=f"{high:.1f}", y1=row, y2=row, class_=f"mean {colour}"))
            parts.append(el("rect", x=f"{middle - 4:.1f}", y=row - 6, width=8, height=12, class_=f"fill {colour}"))
    parts.append(el("text", label, x=(LEFT + WIDTH - RIGHT) / 2, y=height - 6, class_="label middle"))
    return picture(parts, title=label, height=height)
