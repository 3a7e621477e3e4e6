"""Where a study stands, from values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlx.hosts.cli import status
from rlx.loop.study import study_status
from rlx.loop.study.step_commands import next_step
from rlx.loop.study.study_status import RECENT, findings
from rlx.study.ledger.state import replay
from rlx.study.situation import Facts, Situation
from tests.loop.told import Told, typed
from tests.study.story import CONTRACT, Story
from tests.study.test_moves import BUDGET, contract


@pytest.mark.parametrize(
    ("seeds", "seconds", "left"), [(30, 3600.0, 12), (3, 3600.0, 3), (30, 299.0, 0), (30, 300.0, 1)]
)
def test_a_seed_that_there_is_no_time_for_is_not_left(seeds: int, seconds: float, left: int) -> None:
    budget = {**BUDGET, "seeds": seeds, "hours": seconds / 3600}
    assert Situation(replay(()), contract(budget=budget), Facts(0.0, "")).seeds_left == left


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
    brief = study_status.brief(told.study)
    assert brief["command"] == f"rlx check candidate {first}"
    assert [one["candidate"] for one in brief["recent"]] == ["c001", "c002", "c003", "c004", "c005", "c006"]


def test_a_proposal_is_put_in_once(tmp_path: Path) -> None:
    told = Told(tmp_path / "lab")
    assert str(next_step(told.study).command) == "rlx schema candidate"
    proposal = {"kind": "hyperparameter", "hypothesis": "faster", "changes": {"algo.learning_rate": 0.1}}
    (told.study.root / "candidate.json").write_text(json.dumps(proposal))
    step = next_step(told.study)
    assert str(step.command) == "rlx propose --file candidate.json"
    typed(told.study.root, str(step.command))
    also = [one["command"] for one in typed(told.study.root, "rlx next faster --full")["also"]]
    assert "rlx schema candidate" in also


def test_a_contract_that_is_amended_after_trainings_is_approved_again_and_a_rehearsal_is_only_offered(
    tmp_path: Path,
) -> None:
    told = Told(tmp_path / "lab")
    typed(told.study.root, "rlx study amend faster -s budget.seeds=70")
    brief = study_status.brief(told.study)
    assert (brief["action"], brief["command"]) == ("approve", "rlx study approve faster")
    assert brief["why"].startswith("the contract changed after tester approved it")
    assert brief["also"][0]["command"] == "rlx study rehearse faster"


def test_what_running_jobs_reserve_is_told_beside_what_is_spent(tmp_path: Path) -> None:
    told = Told(tmp_path / "lab")
    quiet = study_status.status(told.study)
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
    ("fields", "command"),
    [
        ({"fix": ["rlx", "study", "amend", "pilot", "-s", "a=b"]}, "rlx study amend pilot -s a=b"),
        ({"fix": ["rlx", "logs", "r_001"], "reads": "rlx logs r_001"}, "rlx logs r_001"),
        ({}, "None"),
    ],
)  # fmt: skip
def test_what_comes_before_another_rehearsal_is_a_value_of_the_row(fields: dict[str, Any], command: str) -> None:
    story = Story(approve=False, pool=False)
    checks = [{"name": "metric", "ok": False, "says": "there is no such figure", "hint": "rlx study new NAME"}]
    story.tell("rehearsed", contract=CONTRACT, ok=False, checks=checks, **fields)
    assert str(Situation(story.state, contract(), Facts(0.0, CONTRACT)).rehearsal_fix) == command


def test_next_replays_the_ledger_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told(tmp_path / "lab")
    told.checked(0.01)
    replays = []

    def counting(events: Any) -> Any:
        replays.append(events)
        return replay(events)

    for module in ("rlx.study.study_folder", "rlx.launch.study_jobs.launch_candidate", "rlx.loop.study.decide"):
        monkeypatch.setattr(f"{module}.replay", counting)
    study_status.brief(told.study)
    assert len(replays) == 1
