"""The cost of a command counts everything it starts, and a table is replaced without touching the others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import train
from rig.cost import Command, cost

BURN = "import time\nwhile time.process_time() < 0.3: pass"
DETACH = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {BURN!r}], start_new_session=True)"


@pytest.mark.parametrize("program", [BURN, DETACH], ids=["itself", "what it leaves behind"])
def test_the_cpu_seconds_of_a_command_are_counted(program: str, tmp_path: Path) -> None:
    assert cost([Command([sys.executable, "-c", program], tmp_path, {})]).cpu >= 0.3


def test_a_command_that_fails_ends_the_benchmark_with_its_words(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no such thing"):
        Command([sys.executable, "-c", "raise SystemExit('no such thing')"], tmp_path, {}).run()


def test_a_table_takes_the_place_of_its_last_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "TABLE", tmp_path / "train.md")
    train.write("worlds", train.section("worlds", [["fast", "32", "1", ""]], 5, ""))
    train.write("first", train.section("first", [["first line", "0.7"]], 5, "On a busy machine."))
    train.write("worlds", train.section("worlds", [["fast", "32", "2", ""]], 5, ""))
    text = (tmp_path / "train.md").read_text()
    assert text.startswith(train.HEADER)
    assert text.count("## ") == 2
    assert "| fast | 32 | 2 |  |" in text
    assert "| fast | 32 | 1 |  |" not in text
    assert "| first line | 0.7 |" in text
    assert "On a busy machine." in text
    assert text.index(train.TITLES["first"]) < text.index(train.TITLES["worlds"])


def test_tasks_timed_alone_leave_the_rows_of_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "TABLE", tmp_path / "train.md")
    first, second, third = list(train.TASKS)[:3]
    old = [[name, "fast", "1", "2.0", "2.0", "", "", "20%"] for name in (first, second, third)]
    old.append([third, "sb3", "1", "9.0", "9.0", "4.5×", "4.5×", ""])
    train.write("whole", train.section("whole", old, 5, ""))
    new = [[second, "fast", "1", "1.0", "1.0", "", "", "20%"]]
    assert train.with_others(new) == [old[0], new[0], old[2], old[3]]


def test_no_ratio_stands_for_a_task_whose_gate_was_never_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert train.has_passed("cartpole")
    monkeypatch.setattr(train.learning, "judgement", lambda *_: None)
    assert not train.has_passed("cartpole")
