from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

from rlx.runs import metrics
from rlx.runs.metrics import MetricsWriter


def write(path: Path, *steps: int) -> None:
    writer = MetricsWriter(path)
    for step in steps:
        writer.write(step, {"loss": step / 10})
    writer.close()


def test_a_row_has_step_time_and_values_and_is_on_disk_at_once(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    writer = MetricsWriter(path)
    writer.write(5, {"loss": 0.5, "train/kl": np.float32(0.25)})

    (row,) = metrics.rows(path)

    assert (row["step"], row["loss"], row["train/kl"]) == (5, 0.5, 0.25)
    assert row["time"] > 1e9
    writer.close()


def test_non_finite_values_are_read_back_as_they_were(tmp_path: Path) -> None:
    writer = MetricsWriter(tmp_path / "m.jsonl")
    for step, value in enumerate([math.nan, math.inf, -math.inf, 1.0]):
        writer.write(step, {"loss": value})
    writer.close()

    series = metrics.series(metrics.rows(tmp_path / "m.jsonl"), "loss")

    np.testing.assert_array_equal(series.values, [math.nan, math.inf, -math.inf, 1.0])
    assert len(series) == 4


def test_what_was_trained_again_after_a_resume_replaces_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    write(path, 100, 200, 300)
    writer = MetricsWriter(path)
    writer.write_resume(200)
    assert metrics.last_row(path)["step"] == 200  # type: ignore[index]
    writer.write(300, {"loss": 9.0})
    writer.close()

    assert [(row["step"], row["loss"]) for row in metrics.rows(path)] == [(100, 10.0), (200, 20.0), (300, 9.0)]


def test_several_resumes_further_and_further_back(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    write(path, 1, 2, 3, 4)
    writer = MetricsWriter(path)
    writer.write_resume(3)
    writer.write_resume(1)
    writer.close()

    assert [row["step"] for row in metrics.rows(path)] == [1]
    assert metrics.last_row(path)["step"] == 1  # type: ignore[index]
    assert metrics.last_value(path, "loss") == 0.1


def test_a_series_leaves_out_rows_without_the_metric(tmp_path: Path) -> None:
    writer = MetricsWriter(tmp_path / "m.jsonl")
    writer.write(1, {"a": 1.0})
    writer.write(2, {"b": 2.0})
    writer.write(3, {"a": 3.0, "word": "text"})  # type: ignore[dict-item]
    writer.close()
    rows = metrics.rows(tmp_path / "m.jsonl")

    assert metrics.names(rows) == ["a", "b", "word"]
    assert metrics.series(rows, "a").steps.tolist() == [1.0, 3.0]
    assert len(metrics.series(rows, "word")) == 0
    assert len(metrics.series([], "a")) == 0


def test_the_last_value_is_found_in_an_earlier_row_of_a_long_file(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    writer = MetricsWriter(path)
    for step in range(3000):
        writer.write(step, {"loss": 1.0} if step != 2990 else {"rare": 7.0})
    writer.close()

    assert metrics.last_row(path)["step"] == 2999  # type: ignore[index]
    assert metrics.last_value(path, "rare") == 7.0
    assert metrics.last_value(path, "never") is None
    assert metrics.last_value(tmp_path / "none.jsonl", "loss") is None


def test_a_torn_last_row_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    write(path, 1, 2)
    with path.open("ab") as stream:
        stream.write(b'{"step": 3, "lo')

    assert metrics.last_row(path)["step"] == 2  # type: ignore[index]
    write(path, 3)
    assert [row["step"] for row in metrics.rows(path)] == [1, 2, 3]


def test_half_a_row_that_could_not_be_taken_back_is_trimmed_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.jsonl"
    writer = MetricsWriter(path)
    writer.write(1, {"loss": 1.0})
    genuine = os.write

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "write", lambda descriptor, content: genuine(descriptor, content[:10]))
        broken.setattr(os, "ftruncate", fail)
        with pytest.raises(OSError, match="Input/output"):
            writer.write(2, {"loss": 2.0})
    writer.write(3, {"loss": 3.0})
    writer.close()

    assert [row["step"] for row in metrics.rows(path)] == [1, 3]
