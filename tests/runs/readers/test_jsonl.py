from __future__ import annotations

import json
import math
from pathlib import Path

from rlx.runs.readers.jsonl import JsonlReader
from rlx.testing import ReaderContract


class TestJsonl(ReaderContract):
    reader = JsonlReader
    place = "log.jsonl"

    def write(self, path: Path, start: int, count: int) -> None:
        with path.open("a") as stream:
            for row in range(start, start + count):
                score = {2: math.nan, 3: math.inf}.get(row, row)
                stream.write(
                    json.dumps({"step": 100 * row, "time": 1e9, "loss": row / 4, "score": score, "note": "a"}) + "\n"
                )


def test_figures_inside_objects_and_lists_are_named_by_their_path(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(
        '{"at": {"env_steps": 10}, "eval": {"success": 0.5, "by": [1, 2]}, "ok": true, "best": "-Infinity"}\n'
    )
    (point,) = JsonlReader(step="at.env_steps").read(path)
    assert (point.step, point.time) == (10, None)
    assert point.values == {"eval.success": 0.5, "eval.by.0": 1.0, "eval.by.1": 2.0, "best": -math.inf}


def test_rows_without_a_step_are_counted_and_their_names_known(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"global_step": 1, "loss": 2}\nnot json\n[1]\n{"global_step": 2, "loss": 1}')
    reader = JsonlReader()
    assert reader.read(path, is_last=True) == []
    assert (reader.skipped, list(reader.names)) == (2, ["global_step", "loss"])
    assert [point.step for point in JsonlReader(step="global_step").read(path)] == [1]
    assert [point.step for point in JsonlReader(step="global_step").read(path, is_last=True)] == [1, 2]


def test_a_file_that_was_begun_again_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 1, "loss": 3}\n{"step": 2, "loss": 2}\n')
    reader = JsonlReader()
    reader.read(path)
    path.write_text('{"step": 5, "loss": 9}\n')
    assert [point.step for point in reader.read(path)] == [5]


def test_a_whole_number_that_no_float_holds_is_infinite_and_no_step(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    huge = "9" * 400
    path.write_text(f'{{"step": 1, "loss": {huge}}}\n{{"step": {huge}, "loss": 1}}\n{{"step": 2, "loss": -{huge}}}\n')
    assert [(one.step, one.values["loss"]) for one in JsonlReader().read(path)] == [(1, math.inf), (2, -math.inf)]
