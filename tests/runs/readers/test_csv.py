from __future__ import annotations

from pathlib import Path

import pytest

from rlx.runs.readers.csv import CsvReader
from rlx.testing import ReaderContract


class TestCsv(ReaderContract):
    reader = CsvReader
    place = "progress.csv"

    def write(self, path: Path, start: int, count: int) -> None:
        is_new = not path.exists()
        with path.open("a") as stream:
            stream.write('#{"t_start": 1}\nstep, loss ,score,name\n' if is_new else "")
            for row in range(start, start + count):
                score = {2: "nan", 3: "inf"}.get(row, str(row))
                stream.write(f'{100 * row},{row / 4},{score},"a, b"\n')


@pytest.mark.parametrize("separator", ["\t", ";"])
def test_other_separators_empty_cells_and_steps_as_floats_are_understood(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "progress.csv"
    rows = [["time/total_timesteps", "a", "b"], ["1.0e3", "", "2"], ["2000.0", "1", ""]]
    path.write_text("\n".join(separator.join(row) for row in rows))
    points = CsvReader(step="time/total_timesteps").read(path, is_last=True)
    assert [(point.step, point.values) for point in points] == [(1000, {"b": 2.0}), (2000, {"a": 1.0})]


def test_a_table_rewritten_with_more_columns_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "progress.csv"
    path.write_text("step,a\n1,1\n")
    reader = CsvReader()
    assert [point.values for point in reader.read(path)] == [{"a": 1.0}]
    path.write_text("step,a,b\n1,1,\n2,2,3\n")
    assert [point.values for point in reader.read(path)] == [{"a": 1.0}, {"a": 2.0, "b": 3.0}]


def test_a_table_without_the_step_names_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "monitor.csv"
    path.write_text("r,l,t\n1,2,3\n")
    reader = CsvReader()
    assert reader.read(path) == []
    assert (reader.skipped, list(reader.names)) == (1, ["r", "l", "t"])
