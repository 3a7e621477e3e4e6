"""`rlx lab` from the command line: what a person meets before, during and after a drive."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlx.loop.lab import driver
from rlx.loop.lab.driver import last_options
from rlx.loop.lab.lab_folder import Lab
from tests.loop.lab.lab_project import tiny_lab

Cli = Callable[..., Any]
COMMANDS = (("run",), ("resume",), ("climb",), ("try", "--description", "x"))
AGENT = Path(__file__).parents[2] / "faults" / "mock_agent.py"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Lab:
    made = tiny_lab(tmp_path, is_approved=False)
    monkeypatch.chdir(made.root)
    return made


@pytest.mark.parametrize("words", COMMANDS)
def test_an_unknown_executor_is_refused_before_anything_is_written(lab: Lab, cli: Cli, words: tuple[str, ...]) -> None:
    rows = lab.study.state().rows
    answer = cli("lab", *words, "--executor", "slrum")
    assert answer.code == 2
    assert lab.study.state().rows == rows


def test_a_lab_that_nobody_approved_is_not_driven(lab: Lab, cli: Cli) -> None:
    answer = cli("lab", "run", "--agent", "true")
    assert answer.code == 4
    assert "hint: rlx lab approve" in answer.err
    assert last_options(lab) is None


def test_a_page_without_a_measured_change_does_not_say_that_none_was_better(lab: Lab, cli: Cli) -> None:
    assert "Nothing was tried yet" in cli("lab", "report").out
    assert cli("lab", "try", "--description", "nothing").code == 4
    page = cli("lab", "report").out
    assert "Nothing was measured yet" in page
    assert "No change beat the baseline" not in page


@pytest.mark.parametrize("words", [("try", "c007"), ("lesson", "c007", "--text", "too small"), ("show", "c007")])
def test_an_unknown_attempt_is_not_found_and_leads_to_the_labs_own_commands(
    lab: Lab, cli: Cli, words: tuple[str, ...]
) -> None:
    rows = lab.study.state().rows
    answer = cli("lab", *words)
    assert answer.code == 3
    assert "rlx propose" not in answer.err
    assert lab.study.state().rows == rows


def test_a_lab_that_is_driven_does_not_climb_under_its_driver(lab: Lab, cli: Cli) -> None:
    assert cli("lab", "approve", "--yes").code == 0
    with driver.held(lab):
        assert cli("lab", "climb").code == 4
    assert lab.rung == lab.config.ladder[0]


def completed(lab: Lab) -> list[Path]:
    """Return the logs of the training seeds that completed."""
    return [path for path in lab.root.glob("runs/*/seed_*/events.jsonl") if '"completed"' in path.read_text()]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_drive_and_its_resume_train_at_the_executor_that_was_named(lab: Lab, cli: Cli) -> None:
    assert cli("lab", "approve", "--yes").code == 0
    agent = f"{sys.executable} {AGENT} nothing rate:0.002 nothing"
    ran = cli("lab", "run", "--agent", agent, "--iterations", "1", "--executor", "custom")
    assert ran.code == 2, "no command that submits is configured, so nothing trains on this machine instead"
    options = last_options(lab)
    assert options is not None
    assert options.executor == "custom"
    assert not completed(lab)
    assert cli("lab", "resume").code == 2, "it goes on at the executor of the drive"
    resumed = cli("lab", "resume", "--executor", "local")
    assert resumed.code == 0, resumed.err
    assert completed(lab)
