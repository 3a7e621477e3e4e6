"""Growing metrics files are read by byte cursor as columns that hold the same numbers as the rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rlx.runs import metric_columns
from rlx.runs.metric_columns import ColumnCursor, ColumnCursors, MetricColumns, size_of
from rlx.runs.metrics import MetricsWriter, names, rows, series
from rlx.runs.run import Run


def agree(columns: MetricColumns, path: Path) -> None:
    """Check that columns hold what the rows of the file hold."""
    wanted = rows(path)
    assert len(columns) == len(wanted)
    assert sorted(columns.names) == sorted(name for name in names(wanted) if len(series(wanted, name)))
    for name in columns.names:
        steps, values = columns.values(name)
        np.testing.assert_array_equal(steps, series(wanted, name).steps)
        np.testing.assert_array_equal(values, series(wanted, name).values)


def test_only_new_bytes_are_parsed_and_columns_agree_with_rows(make_run: Callable[..., Run]) -> None:
    seed = make_run().seed(0)
    cursor = ColumnCursor(seed.metrics_path)
    agree(cursor.read(), seed.metrics_path)
    offset = cursor.offset
    writer = MetricsWriter(seed.metrics_path)
    writer.write(300, {"a": 1.0, "late": float("nan"), "later": float("inf")})
    writer.write_resume(100)
    writer.write(150, {"a": 2.0, "b": -float("inf")})
    writer.write(160, {"b": 3})
    with seed.metrics_path.open("ab") as stream:
        stream.write(b'{"step": 170, "a": true, "c": "word", "d": null, "e": [1]}\n{"step": 400, "ti')
    agree(cursor.read(), seed.metrics_path)
    assert cursor.offset > offset
    assert cursor.read().last("a") == 2.0
    assert cursor.read().last("c") is None
    assert "late" not in cursor.read().names
    writer.close()


def test_a_metric_is_drawn_over_another_one() -> None:
    columns = MetricColumns([{"step": 1, "time": 5.0, "a": 1.0, "episodes": 10}, {"step": 2, "time": 6.0, "a": 2.0},
                             {"step": 3, "time": 7.0, "episodes": 30}, {"step": 4, "time": 8.0, "a": 4.0,
                                                                        "episodes": 40}])  # fmt: skip
    assert [part.tolist() for part in columns.values("a", over="episodes")] == [[10, 40], [1, 4]]
    assert [part.tolist() for part in columns.values("a", over="time")] == [[5, 6, 8], [1, 2, 4]]
    assert [part.tolist() for part in columns.values("nothing")] == [[], []]


def test_a_replaced_file_is_read_from_its_start(make_run: Callable[..., Run]) -> None:
    seed = make_run().seed(0)
    cursor = ColumnCursor(seed.metrics_path)
    cursor.read()
    seed.metrics_path.write_bytes(b'{"step": 1, "time": 1.0, "a": 2}\n')
    assert cursor.read().values("a")[0].tolist() == [1.0]


def test_old_columns_are_forgotten_before_memory_runs_out(
    make_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make_run("first")
    second = make_run("second")
    monkeypatch.setattr(metric_columns, "MOST_BYTES", 1)
    cursors = ColumnCursors()
    cursors.read(first)
    assert cursors.read(second)[0].last("rollout/return_mean") is not None
    assert list(cursors._cursors) == [second.seed(0).metrics_path]
    agree(cursors.read(first)[0], first.seed(0).metrics_path)


def test_the_size_of_a_run_grows_with_every_row(make_run: Callable[..., Run]) -> None:
    run = make_run()
    before = size_of(run)
    writer = MetricsWriter(run.seed(0).metrics_path)
    writer.write(300, {"a": 1.0})
    writer.close()
    assert size_of(run) > before
    assert ColumnCursors().read(Run(run.path))[0].last("a") == 1.0
