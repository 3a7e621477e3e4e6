"""Where a study stands, from values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlx.hosts.cli import status
from rlx.loop import proceed
from rlx.loop.proceed import RECENT, findings, mends, seeds_left
from rlx.study.budget import Amount
from tests.loop.told import Told, typed
from tests.study.story import Story
from tests.study.test_gates import contract


@pytest.mark.parametrize(
    ("seeds", "seconds", "left"), [(30, 3600.0, 12), (3, 3600.0, 3), (30, 299.0, 0), (30, 300.0, 1)]
)
def test_a_seed_that_there_is_no_time_for_is_not_left(seeds: int, seconds: float, left: int) -> None:
    assert seeds_left(Amount(seeds, seconds), contract()) == left


def test_a_refusal_is_a_finding_until_something_was_done() -> None:
    story = Story()
    story.tell("refused", action="launch", candidate="c001", reasons=[{"code": "PLAN", "says": "another"}])
    assert findings(story.state) == ["last refusal: c001: PLAN: another"]
    story.approve()
    assert findings(story.state) == []


def test_a_refused_approval_is_a_finding_with_its_sentence() -> None:
    story = Story()
    story.tell("refused", action="approve", reasons=[{"code": "APPROVAL", "says": "it is asserted, not signed"}])
    assert findings(story.state) == ["last refusal: approve: APPROVAL: it is asserted, not signed"]


def test_a_job_that_failed_is_a_finding_until_another_of_its_kind_went_well() -> None:
    story = Story()
    story.job("r1", "rehearsal", "smoke", (0,), outcome="failed", states={"0": "failed"})
    assert findings(story.state) == ["rehearsal (smoke): run_r1: failed"]
    story.job("r2", "rehearsal", "smoke", (0,))
    assert findings(story.state) == []


def test_what_was_tried_names_the_head_and_what_the_step_is_about_beside_the_last(tmp_path: Path) -> None:
    told = Told(tmp_path / "lab")
    first = told.proposed(0.001)
    for number in range(RECENT):
        told.checked(0.01 * (number + 1))
    brief = proceed.brief(told.study)
    assert brief["command"] == f"rlx check candidate {first}"
    assert [one["candidate"] for one in brief["recent"]] == ["c001", "c002", "c003", "c004", "c005", "c006"]


def test_a_proposal_is_put_in_once(tmp_path: Path) -> None:
    told = Told(tmp_path / "lab")
    assert proceed.next_step(told.study).command == "rlx schema candidate"
    proposal = {"kind": "hyperparameter", "hypothesis": "faster", "changes": {"algo.learning_rate": 0.1}}
    (told.study.root / "candidate.json").write_text(json.dumps(proposal))
    step = proceed.next_step(told.study)
    assert step.command == "rlx propose --file candidate.json"
    typed(told.study.root, step.command)
    also = [one["command"] for one in typed(told.study.root, "rlx next faster")["also"]]
    assert "rlx schema candidate" in also


def test_a_contract_that_is_amended_after_trainings_is_approved_again_and_a_rehearsal_is_only_offered(
    tmp_path: Path,
) -> None:
    told = Told(tmp_path / "lab")
    typed(told.study.root, "rlx study amend faster -s budget.seeds=70")
    brief = proceed.brief(told.study)
    assert (brief["action"], brief["command"]) == ("approve", "rlx study approve faster")
    assert brief["why"].startswith("the contract changed after tester approved it")
    assert brief["also"][0]["command"] == "rlx study rehearse faster"


def test_what_running_jobs_reserve_is_told_beside_what_is_spent(tmp_path: Path) -> None:
    told = Told(tmp_path / "lab")
    quiet = proceed.status(told.study)
    assert "reserved" not in status.render(quiet)
    job = {"job": "t", "run": "faster_c001_001", "candidate": "c001", "phase": "trial", "state": "open"}
    shown = status.render({**quiet, "jobs": [job], "reserved": {"seeds": 3, "seconds": 180.0}})
    assert "spent: 6 seeds, 3m 00s; reserved by jobs: 3 seeds, 3m 00s; left: 54 seeds" in shown


def test_why_a_check_was_refused_is_kept_with_the_draft_until_it_moves() -> None:
    story = Story()
    story.propose("c001")
    refusal = story.tell("refused", action="check", candidate="c001", reasons=[{"code": "SCOPE", "says": "outside"}])
    assert story.state.candidates["c001"].refusal is refusal
    story.validate("c001")
    assert story.state.candidates["c001"].refusal is None


@pytest.mark.parametrize(
    ("failed", "command"),
    [
        (
            {"hint": "rlx task refresh arm -s adapter.metrics.step=iteration"},
            "rlx task refresh arm -s adapter.metrics.step=iteration",
        ),
        ({"hint": "rlx task refresh arm -s adapter.metrics.path=WHERE"}, "rlx logs r_001"),
        ({"hint": "does the eval command write {result}?"}, "rlx logs r_001"),
        ({}, "rlx logs r_001"),
    ],
)
def test_the_command_that_mends_comes_first_and_else_the_log(failed: dict[str, Any], command: str) -> None:
    assert mends(failed, "rlx logs r_001") == command
