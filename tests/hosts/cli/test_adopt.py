"""`rlx adopt` prints the report, writes the draft, and `rlx task copy` makes the next task."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlx.hosts.cli.main import call
from tests.adopt.foreign_repos import ONE_FILE, write_repo


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_repo(tmp_path, ONE_FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RLX_ROOT", raising=False)
    return tmp_path


def test_the_report_names_places_defects_and_questions(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["adopt"]) == 0
    printed = capsys.readouterr().out
    assert "agent/walk.py:13" in printed
    assert "reads `final_info`" in printed
    assert "adapter.eval:" in printed
    assert not (repo / ".rlx").exists()
    assert call(["adopt", str(repo), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["draft"]["program"] == "agent/walk.py"
    assert {"file", "line", "confidence"} <= data["facts"]["seed"][0].keys()


def test_the_draft_becomes_a_task_that_can_be_copied(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["adopt", "--write", "--name", "walk", "--eval-template"]) == 0
    assert "evals/rlx_eval.py" in capsys.readouterr().out
    assert call(["task", "show", "walk", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["problems"] == []
    assert call(["adopt", "--write", "--name", "walk"]) == 4
    assert "exists already" in capsys.readouterr().err
    assert call(["task", "copy", "walk", "walk-far", "-s", "adapter.steps=99", "--mission", "Walk far."]) == 0
    assert "steps: 99" in (repo / ".rlx/tasks/walk-far/task.yaml").read_text()
    assert "steps: 40000" in (repo / ".rlx/tasks/walk/task.yaml").read_text()


def test_a_folder_without_programs_is_reported_and_not_drafted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(["adopt"]) == 0
    printed = capsys.readouterr().out
    assert "train: no training program found" in printed
    assert "rlx task new" in printed
    assert call(["adopt", "--write"]) != 0
    assert "no training program" in capsys.readouterr().err
