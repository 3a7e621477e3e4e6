"""What `next`, `check` and `show` print works as it stands, at that moment, in a real study."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.loop.study.amend import amend
from rlx.loop.study.approve import approve
from rlx.loop.study.step_commands import next_step
from tests.loop.told import Told, typed


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    monkeypatch.delenv("RLX_ROOT", raising=False)
    return Told(tmp_path / "project")


def test_after_an_amendment_the_launch_of_what_is_undecided_names_the_plan_that_holds(told: Told) -> None:
    c001 = told.checked(0.01)
    told.trained(c001, (100.0, 103.0, 106.0))
    told.decide(c001, "inconclusive")
    amend(told.study, ["budget.seeds=80"])
    approve(told.study, by="tester")
    step = next_step(told.study)
    assert (step.move.kind, step.move.candidate) == ("launch", c001)
    assert typed(told.study.root, str(step.command), "--dry-run")["seeds"] == [3, 4, 5]


def test_after_an_amendment_a_checked_candidate_is_checked_again(told: Told) -> None:
    c001 = told.checked(0.01)
    amend(told.study, ["budget.seeds=80"])
    approve(told.study, by="tester")
    step = next_step(told.study)
    assert (step.move.kind, str(step.command)) == ("check", f"rlx check candidate {c001}")
    launch = typed(told.study.root, str(step.command))["command"]
    assert launch.startswith(f"rlx launch {c001}")
    typed(told.study.root, launch, "--dry-run")


def test_a_loop_over_a_study_that_is_over_writes_its_report_and_ends_with_done(told: Told) -> None:
    amend(told.study, ["budget.seeds=14"])
    approve(told.study, by="tester")
    assert next_step(told.study).move.kind == "report"
    ended = typed(told.study.root, "rlx study loop")
    assert ended["did"] == ["rlx study report faster"]
    assert ended["ended"].startswith("too few seeds: 8 left, 4 kept for the claim")
    assert (told.study.folder / "report.png").is_file()
    told_next = typed(told.study.root, "rlx next --full")
    assert told_next["action"] == "done"
    verified = typed(told.study.root, told_next["command"])
    assert verified["checked"]["scores"] == 6
    assert (verified["problems"], verified["command"]) == ([], "rlx study audit faster")


def test_a_check_prints_the_launch_of_what_was_checked_though_others_wait_to_be(told: Told) -> None:
    told.proposed(0.01)
    second = told.proposed(0.02)
    launch = typed(told.study.root, f"rlx check candidate {second}")["command"]
    assert launch.startswith(f"rlx launch {second} --phase trial --plan ")
    typed(told.study.root, launch, "--dry-run")
