"""The curves of runs: read once, kept while their files do not change, drawn as SVG or sent as float32."""

from __future__ import annotations

import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rlx import files
from rlx.errors import NotFound
from rlx.hosts.cli.document import run_name
from rlx.hosts.cli.plot import DEFAULT, EVALUATION
from rlx.runs.metric_columns import ColumnCursors, MetricColumns, size_of
from rlx.runs.run import METADATA, Run, find
from rlx.runs.summary import UNREADABLE

if TYPE_CHECKING:
    from rlx.hosts.plots.curves import Curves, Values

T = TypeVar("T")
MOST_KEPT = 256
POINTS = 1000
"""The columns of a curve that is sent to a browser: each has its lowest and its highest value."""

LAG = 10.0
LONGEST_LAG = 15.0


@dataclass
class _Kept:
    """A value that was computed from a run's files, and how many bytes they had then."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    has_value: bool = False
    value: object = None
    version: int = -1
    fresh_until: float = 0.0


class CurveData:
    """Opens runs of a project for pages, and keeps results of files that did not change."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._cursors = ColumnCursors()
        self._kept: OrderedDict[tuple[object, ...], _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def run(self, name: str) -> Run:
        """Return a run by its full name; a path or a part of a name is refused."""
        run = find(run_name(name), root=self.root)
        if run.name != name:
            raise NotFound(f"no run `{name}`", hint="rlx ls")
        return run

    def columns(self, run: Run) -> dict[int, MetricColumns]:
        """Return the metrics of every seed, read by byte cursor."""
        return self._cursors.read(run)

    def remembered(self, run: Run, *key: object, compute: Callable[[], T], may_lag: bool = False) -> T:
        """Return a value of a run; it is computed again only if the run has written something since.

        Many readers wait for one computation. A value that `may_lag` is computed again only after `LAG` times the
        seconds that it took, and meanwhile readers get the last one: so it never takes more than a tenth of a core.
        """
        with self._lock:
            kept = self._kept.setdefault((run.name, *key), _Kept())
            self._kept.move_to_end((run.name, *key))
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        if may_lag and kept.has_value and time.monotonic() < kept.fresh_until:
            return kept.value  # type: ignore[return-value]
        with kept.lock:
            version = size_of(run)
            if not kept.has_value or kept.version != version:
                started = time.monotonic()
                kept.value = compute()
                kept.version = version
                kept.has_value = True
                now = time.monotonic()
                kept.fresh_until = now + min(LONGEST_LAG, LAG * (now - started))
            return kept.value  # type: ignore[return-value]

    def curves(self, name: str, metric: str, *, axis: str = "steps") -> Curves:
        """Return one metric of a run."""
        from rlx.hosts.plots.curves import curves

        run = self.run(name)

        def compute() -> Curves:
            columns = None if metric == EVALUATION else self.columns(run)
            return curves(run, metric, axis=axis, columns=columns)

        return self.remembered(run, "curves", metric, axis, compute=compute)

    def groups(self, names: Sequence[str], metric: str, *, axis: str, is_pooled: bool = False) -> list[Curves]:
        """Return one metric of several runs; `is_pooled` joins the seeds of runs with the same config."""
        from rlx.hosts.plots.curves import pooled

        groups = [self.curves(name, metric, axis=axis) for name in names]
        if not is_pooled:
            return groups
        by_config: dict[str, list[Curves]] = {}
        for name, group in zip(names, groups, strict=True):
            by_config.setdefault(str(self.run(name).metadata.get("group_hash") or name), []).append(group)
        return [pooled(members) for members in by_config.values()]

    def metrics(self, name: str) -> list[str]:
        """Return the metrics that a run can show, the usual ones first; none if its rows cannot be read."""
        run = self.run(name)
        try:
            return metric_names(run, self.columns(run))
        except UNREADABLE:
            return []


def metric_names(run: Run, columns: Mapping[int, MetricColumns]) -> list[str]:
    """Return the metrics of a run, the usual ones first."""
    known = {metric for table in columns.values() for metric in table.names}
    if any(event.get("event") == "evaluated" for seed in run.seeds for event in seed.events):
        known.add(EVALUATION)
    first = [metric for metric in (DEFAULT, EVALUATION) if metric in known]
    return [*first, *sorted(known - set(first))]


def sparkline_of(data: CurveData, name: str) -> str:
    """Return the mean curve of a run as a small picture; an empty one if there is nothing to draw."""
    import numpy as np

    from rlx.hosts.ui.chart import sparkline

    nothing = np.empty(0)
    try:
        if not (data.run(name).path / METADATA).is_file():
            return sparkline(nothing, nothing)
        metrics = data.metrics(name)
        if not metrics:
            return sparkline(nothing, nothing)
        return sparkline(*data.curves(name, metrics[0]).centre)
    except UNREADABLE:
        return sparkline(nothing, nothing)


def packed(groups: Sequence[Curves], *, with_band: bool = True) -> bytes:
    """Return curves as bytes: the length of a JSON header, the header, then float32 numbers.

    All series share one x. If they have few points, these are sent as they are. Otherwise x has two points per column,
    in which each series has its lowest and its highest value. The header names each series with its group and its
    kind (mean, low, high or seed). A series without a value at some x has NaN there. `with_band` also sends seeds.
    """
    import numpy as np

    lines: list[tuple[Values, Values]] = []
    series = []
    shown = [group for group in groups if len(group.centre[0])]
    for number, group in enumerate(shown):
        for kind, seed, x, y in _lines(group, with_band=with_band):
            series.append({"group": number, "name": group.name, "kind": kind, "seed": seed})
            lines.append((x, y))
    x = _shared_x([x for x, _ in lines])
    if len(x) <= 2 * POINTS:
        arrays = [x, *(_placed(x, *line) for line in lines)]
    else:
        low = float(x[0])
        width = (float(x[-1]) - low) / POINTS
        edges = np.linspace(low, float(x[-1]), POINTS + 1)[:-1]
        middle = np.column_stack([edges + 0.25 * width, edges + 0.75 * width]).reshape(-1)
        arrays = [middle, *(_columns(*line, low, width) for line in lines)]
    header = files.encode({"points": len(arrays[0]), "series": series})
    header += b" " * (-len(header) % 4)
    return struct.pack("<I", len(header)) + header + np.stack(arrays).astype("<f4").tobytes()


def _lines(group: Curves, *, with_band: bool) -> Iterator[tuple[str, int | None, Values, Values]]:
    """Yield the lines of one run: the seeds first, so that the mean is drawn above them."""
    if with_band and len(group.seeds) > 1:
        for curve in group.seeds:
            yield "seed", curve.seed, curve.x, curve.y
        yield "low", None, group.mean.x, group.mean.low
        yield "high", None, group.mean.x, group.mean.high
    yield "mean", None, *group.centre


def _shared_x(every: Sequence[Values]) -> Values:
    """Return every x that occurs, ascending."""
    import numpy as np

    if not every:
        return np.empty(0)
    return np.unique(np.concatenate(every))


def _placed(shared: Values, x: Values, y: Values) -> Values:
    """Return a series over the shared x; NaN if it has no value there."""
    import numpy as np

    out = np.full(len(shared), np.nan)
    out[np.searchsorted(shared, x)] = y
    return out


def _columns(x: Values, y: Values, low: float, width: float) -> Values:
    """Return the lowest and highest value of every column, in the order in which they occur; NaN for none."""
    import numpy as np

    keep = np.isfinite(y)
    x = x[keep]
    y = y[keep]
    out = np.full((POINTS, 2), np.nan)
    if len(x):
        column = np.clip(((x - low) / width).astype(np.int64), 0, POINTS - 1)
        starts = np.flatnonzero(np.diff(column, prepend=-1))
        order = np.lexsort((y, column))
        lowest = order[starts]
        highest = order[np.append(starts[1:], len(x)) - 1]
        out[column[starts], 0] = y[np.minimum(lowest, highest)]
        out[column[starts], 1] = y[np.maximum(lowest, highest)]
    return out.reshape(-1)
