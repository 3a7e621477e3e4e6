"""Figures of other programs are followed while they are written, by rlx's names."""

from __future__ import annotations

from pathlib import Path

from rlx.config.schema import Source
from rlx.runs.readers.reader import as_number, claimant
from rlx.runs.readers.tail_metrics import MOST_NAMES, MetricsTail
from rlx.runs.tensorboard_writer import EventWriter


def test_figures_of_a_step_are_one_row_under_our_names(tmp_path: Path) -> None:
    source = Source(reader="tensorboard", names={"rollout/return_mean": "Train/mean_reward"})
    followed = MetricsTail(source, str(tmp_path / "tb"))
    assert followed.rows() == []
    writer = EventWriter(tmp_path / "tb")
    for step in (20, 10):
        writer.write(step, {"Train/mean_reward": step / 2})
        writer.write(step, {"loss/own": 1.0, "time": 5.0})
    writer.close()
    rows = followed.rows()
    assert [(row.step, dict(row.values)) for row in rows] == [
        (10, {"rollout/return_mean": 5.0, "loss/own": 1.0}), (20, {"rollout/return_mean": 10.0, "loss/own": 1.0}),
    ]  # fmt: skip
    assert (followed.rows(), followed.count) == ([], 2)


def test_what_was_there_before_is_passed_over_and_nothing_is_told_twice(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("step,a\n1,1\n")
    followed = MetricsTail(Source(reader="csv"), str(path))
    followed.pass_over()
    assert followed.count == 0
    path.write_text("step,a,b\n1,1,\n2,2,3\n")
    assert [(row.step, dict(row.values)) for row in followed.rows()] == [(2, {"a": 2.0, "b": 3.0})]


def test_a_place_may_be_a_pattern(tmp_path: Path) -> None:
    followed = MetricsTail(Source(reader="jsonl"), f"{tmp_path}/*/log.jsonl")
    assert followed.rows() == []
    (tmp_path / "2026-11-16").mkdir()
    (tmp_path / "2026-11-16" / "log.jsonl").write_text('{"step": 1, "x": 1}\n')
    assert len(followed.rows()) == 1


def test_printed_lines_are_read_where_there_is_no_file() -> None:
    followed = MetricsTail(Source(reader="stdout"), "")
    assert [row.step for row in followed.rows(printed=["step=1 loss=2", "step=2 loss=1"])] == [1, 2]


def test_why_there_are_no_figures_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    followed = MetricsTail(Source(reader="jsonl"), str(path))
    assert followed.explain().endswith("log.jsonl does not exist")
    path.write_text('{"global_step": 1, "loss": 2}\n')
    followed.rows()
    assert "1 rows of" in followed.explain()
    assert "have no `step`; they have global_step, loss" in followed.explain()


def test_a_flood_of_names_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f'{{"step": 1, "x{number}": 1}}\n' for number in range(MOST_NAMES + 50)))
    (row,) = MetricsTail(Source(reader="jsonl"), str(path)).rows()
    assert len(row.values) == MOST_NAMES


def test_the_reader_of_a_path_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("step,x\n1,2\n")
    (tmp_path / "a.jsonl").write_text('{"step": 1}\n')
    (tmp_path / "a.log").write_text("step=1 loss=2\n")
    EventWriter(tmp_path / "tb").close()
    found = {name: claimant(tmp_path / name) for name in ("a.csv", "a.jsonl", "a.log", "tb", "none")}
    assert found == {"a.csv": "csv", "a.jsonl": "jsonl", "a.log": "stdout", "tb": "tensorboard", "none": None}


def test_numbers_are_read_as_other_programs_spell_them() -> None:
    spelled = ["1e3", "-.5", "+1,234.5", "-Inf", "NaN", "none", "", "1_000", True, None, "0x10"]
    assert [repr(as_number(text)) for text in spelled] == [
        "1000.0", "-0.5", "1234.5", "-inf", "nan", "None", "None", "None", "None", "None", "None",
    ]  # fmt: skip


def test_the_column_that_counts_steps_is_known_by_its_name_where_no_step_was_found(tmp_path: Path) -> None:
    table = tmp_path / "progress.csv"
    table.write_text("iteration,time,reward\n1,0.5,3\n")
    lost = MetricsTail(Source(reader="csv", path=str(table)), str(table))
    lost.rows(is_last=True)
    assert lost.likely_step() == "iteration"
    found = MetricsTail(Source(reader="csv", path=str(table), step="iteration"), str(table))
    found.rows(is_last=True)
    assert found.likely_step() is None
