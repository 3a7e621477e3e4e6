"""How runs and comparisons show themselves in a notebook, and `rlx.plot`."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING, Any

from rlx.errors import NotFound, RlxError, UsageError
from rlx.hosts.cli.format import duration, figure, interval, signed, spread, steps
from rlx.hosts.ui.html import Html, Part, el
from rlx.runs import project
from rlx.runs.run import Run, find_all
from rlx.runs.summary import UNREADABLE, summarize

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rlx.compare.comparison import RunComparison

AXES = ("steps", "wall", "episodes")


def plot(*runs: Run | str, metric: str | None = None, x: str = "steps", smooth: int = 1) -> Figure:
    """Return a figure with the learning curves of runs, given as objects, names or patterns.

    Every seed is a thin line, the mean over seeds a thick one with its 95 % bootstrap band, as in `rlx plot`.
    """
    from rlx.hosts.plots.curves import curves, picture
    from rlx.hosts.ui.curve_data import metric_names
    from rlx.runs.metric_columns import ColumnCursors

    if not runs:
        raise UsageError("no run to plot", hint="rlx.plot('cartpole_ppo_001')")
    if x not in AXES or smooth < 1:
        raise UsageError(
            f"x={x!r}, smooth={smooth}: cannot be drawn", hint=f"x is one of {', '.join(AXES)}; smooth ≥ 1"
        )
    opened = [run for reference in runs for run in _opened(reference)]
    columns = [ColumnCursors().read(run) for run in opened]
    known = [name for run, tables in zip(opened, columns, strict=True) for name in metric_names(run, tables)]
    chosen = metric or (known or [""])[0]
    lines = [curves(run, chosen, axis=x, columns=tables).smoothed(smooth)
             for run, tables in zip(opened, columns, strict=True)]  # fmt: skip
    shown = [line for line in lines if line.seeds]
    if not shown:
        names = ", ".join(dict.fromkeys(known)) or "none"
        raise NotFound(f"no values of {chosen or 'any metric'}", hint=f"known: {names}")
    return picture(shown, metric=chosen, axis=x)


def _opened(reference: Run | str) -> list[Run]:
    if isinstance(reference, Run):
        return [reference]
    return find_all(reference, root=project.root())


def _png(drawn: Figure) -> bytes:
    stream = io.BytesIO()
    drawn.savefig(stream, format="png", dpi=100)
    return stream.getvalue()


def _image(png: bytes | None, alt: str) -> Html | None:
    if png is None:
        return None
    return el("img", src=f"data:image/png;base64,{base64.b64encode(png).decode()}", alt=alt, width=640)


def _table(rows: list[tuple[str, Part]]) -> Html:
    return el("table", [el("tr", el("th", label), el("td", value)) for label, value in rows])


class RunView:
    """A run in a notebook: what `rlx info` says first, and its curve."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def png(self) -> bytes | None:
        """Return the curve; None if there is nothing to draw."""
        try:
            return _png(plot(Run(self._run.path)))
        except (RlxError, *UNREADABLE):
            return None

    def html(self) -> str:
        row = summarize(self._run.path)
        score = row["return"] or {}
        rows: list[tuple[str, Part]] = [
            ("run", el("b", row["name"])),
            ("status", f"{row['status']} ({row['tally']})" if row["tally"] else f"{row['status']} {row['reason']}"),
            (str(score.get("metric", "return")), f"{spread(row['return'])} ({score.get('source', 'no score')})"),
            ("steps per seed", steps(row["steps"], row["planned_steps"])),
            ("environment, algorithm", f"{row['env']}, {row['algo']}"),
            ("time", duration(row["seconds"])),
        ]
        if row["note"]:
            rows.append(("note", row["note"]))
        return str(el("div", _table(rows), _image(self.png(), f"learning curve of {row['name']}")))


class ComparisonView:
    """A comparison in a notebook: the verdicts first, then each side's scores."""

    def __init__(self, comparison: RunComparison) -> None:
        self._data: dict[str, Any] = comparison.document()
        self._names = [self._data["baseline"], *(candidate["run"] for candidate in self._data["candidates"])]

    def png(self) -> bytes | None:
        try:
            return _png(plot(*self._names))
        except (RlxError, *UNREADABLE):
            return None

    def html(self) -> str:
        verdicts = []
        for candidate in self._data["candidates"]:
            effect = ""
            if candidate["leaning"] is not None:
                effect = f" {signed(candidate['leaning'])} {interval(candidate['interval'], signed)}"
            text = f": {candidate['run']} against {self._data['baseline']}{effect}. {candidate['reason']}"
            verdicts.append(el("p", el("b", candidate["verdict"]), text, f" {candidate['settle']}"))
        header = el("tr", [el("th", label) for label in ("run", "n", "mean", "sd", "min", "max")])
        rows = [el("tr", [el("td", part) for part in (side["run"], side["n"], *(figure(side[key]) for key in
                ("mean", "sd", "min", "max")))]) for side in self._data["runs"]]  # fmt: skip
        return str(el("div", verdicts, el("table", header, rows), _image(self.png(), "learning curves")))
