"""`rlx reflect` as it is called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlx.runs.run import Run
from tests.diagnose.reward_terms.test_load_terms import log_terms

MakeRun = Callable[..., Run]
Cli = Callable[..., Any]


@pytest.fixture(autouse=True)
def _project(tmp_path: Path) -> None:
    (tmp_path / "rlx.toml").touch()


@pytest.fixture
def hacked(make_run: MakeRun) -> Run:
    run = make_run("hacked", seeds={0: []})
    log_terms(run, 0, coin=lambda row: 0.1 * row, goal=lambda row: 0.02)
    return run


def test_shows_terms_findings_and_a_command_that_works(cli: Cli, hacked: Run) -> None:
    answer = cli("reflect", "hacked")
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[0] == "run: hacked_001, 1 seed, 10,000 steps"
    assert "hacking risk: none" in lines
    assert lines[6].split()[:2] == ["term", "share"]
    assert lines[7].split()[:2] == ["coin", "96%"]
    assert "stored: runs/hacked_001/reward_reflection.json" in lines
    assert lines[-1] == "next: rlx plot hacked_001 --metric reward/term/coin"
    assert cli(*lines[-1].removeprefix("next: rlx ").split()).code == 0


def test_json_is_complete(cli: Cli, hacked: Run) -> None:
    data = cli("reflect", "hacked", "--json").data
    assert (data["schema"], data["run"], data["source"]) == (1, "hacked_001", "training")
    assert {"terms", "task", "findings", "notes", "steps", "file", "next"} <= set(data)


def test_against_another_run_shows_what_changed(cli: Cli, hacked: Run, make_run: MakeRun) -> None:
    before = make_run("before", seeds={0: []})
    log_terms(before, 0, goal=lambda row: 0.1 * row, push=lambda row: 0.1)
    out = cli("reflect", "hacked", "--against", "before").out
    assert "against before_001:" in out
    assert "  coin: new" in out
    assert "  push: gone" in out


def test_a_run_without_terms_is_not_found(cli: Cli, make_run: MakeRun) -> None:
    make_run("plain")
    answer = cli("reflect", "plain")
    assert answer.code == 3
    assert "plain_001 has no reward terms" in answer.err
    assert "hint: " in answer.err


def test_an_unknown_run_is_not_found(cli: Cli) -> None:
    assert cli("reflect", "nothing").code == 3
