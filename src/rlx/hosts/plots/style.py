"""The style of a picture: size, colours, marks and line styles, and how it is written to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx import files

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which people with any common colour blindness can distinguish; the lightest is last.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#F0E442")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
STYLES = ("-", "--", ":", "-.")
WIDTH = 8.0
HEIGHT = 5.0
DOTS_PER_INCH = 150
_WITHOUT_DATE: dict[str, dict[str, Any]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}


def style(number: int) -> dict[str, Any]:
    """Return the colour and line style of the n-th run; they repeat after eight colours times four styles."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": STYLES[number // len(COLOURS) % len(STYLES)]}


def mark(number: int) -> str:
    """Return the mark of the n-th run."""
    return MARKS[number % len(MARKS)]


def height_for(count: int) -> float:
    """Return the height of a figure with a legend of so many runs, in inches."""
    return HEIGHT + 0.21 * (-(-count // _legend_columns(count)) - 1)


def blank(*, columns: int = 1, height: float = HEIGHT) -> tuple[Figure, list[Axes]]:
    """Return an empty figure with its axes side by side; it needs no display and no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, columns, squeeze=False, sharey=columns > 1)[0].tolist()
    for axes in panels:
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels


def legend(figure: Figure, *, count: int) -> None:
    """Put the legend above the axes."""
    figure.legend(loc="outside upper left", frameon=False, ncols=_legend_columns(count), handlelength=3)


def _legend_columns(count: int) -> int:
    return 2 if count > 3 else 1


def save(figure: Figure, out: Path) -> None:
    """Write the figure; the same figure gives the same bytes, and text stays text."""
    write(figure, out, metadata=_WITHOUT_DATE[out.suffix.lower()])


def write(figure: Figure, out: Path, *, metadata: dict[str, Any]) -> None:
    """Write the figure without LaTeX, a program that a `matplotlibrc` in the current folder could ask for."""
    import matplotlib
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_usetex(False)
    settings: Any = {"svg.hashsalt": "rlx", "svg.fonttype": "none", "pdf.fonttype": 42, "text.usetex": False}
    with matplotlib.rc_context(settings), files.replacing(out) as temporary:
        figure.savefig(temporary, format=out.suffix.lower()[1:], dpi=DOTS_PER_INCH, metadata=metadata)
