"""What is proposed where nothing more can be raced, and what becomes of candidates that were edited or failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rlx.errors import Refused
from rlx.loop.study import study_status
from rlx.loop.study.agent.autoloop import Drive
from rlx.loop.study.propose import propose
from rlx.loop.study.step_commands import next_step
from tests.loop.told import WISHES, Told, typed


def with_settings(root: Path, *settings: str) -> Told:
    return Told(root, replace(WISHES, settings=(*WISHES.settings, *settings)))


def fails(told: Told, identity: str, outcome: str = "failed") -> None:
    told.intend(f"{identity}-0", identity, "trial", (0, 1, 2), plan=told.state.candidates[identity].plan)
    told.start(f"{identity}-0")
    told.end(f"{identity}-0", (0, 1, 2), outcome, says="KeyError: 'nothing'")


def test_a_candidate_more_than_the_contract_has_is_refused_when_it_is_proposed(tmp_path: Path) -> None:
    told = with_settings(tmp_path / "lab", "budget.candidates=1")
    told.trained(told.checked(0.001), (100.0, 101.0, 102.0))
    with pytest.raises(Refused, match="BUDGET_CANDIDATES: 1 of 1 candidate were launched") as refused:
        told.proposed(0.002)
    assert "rlx study amend faster -s budget.candidates=N" in str(refused.value.hint)
    assert list(told.state.candidates) == ["c001"]


def test_a_candidate_that_was_written_before_the_contracts_last_was_launched_ends_in_the_report(tmp_path: Path) -> None:
    told = with_settings(tmp_path / "lab", "budget.candidates=1")
    first, late = told.checked(0.001), told.checked(0.002)
    told.trained(first, (100.0, 101.0, 102.0))
    told.tell("decided", candidate=first, decision="rejected", test="race", against="baseline", says="no better")
    step = next_step(told.study)
    assert (step.move.kind, step.why) == ("report", "the contract's candidates are tried")
    assert told.state.candidates[late].state == "validated"


def test_a_proposal_that_no_seeds_are_left_for_is_told_so(tmp_path: Path) -> None:
    told = with_settings(tmp_path / "lab", "budget.seeds=12")
    document = {"kind": "hyperparameter", "hypothesis": "faster", "changes": {"algo.learning_rate": 0.1}}
    made = propose(told.study, document)
    assert made["notes"] == [
        "no trial of it follows: 6 seeds are left, 4 of them kept for the claim, and a trial takes 3"
    ]
    assert made["command"] == "rlx next"


def test_what_was_edited_since_it_was_checked_is_checked_before_a_launch_that_would_be_refused(tmp_path: Path) -> None:
    told = Told(tmp_path / "lab")
    identity = told.checked(0.001)
    checked = next_step(told.study)
    assert checked.move.kind == "launch"
    tree = told.study.worktree(identity)
    (tree / "stray.py").write_text("pass\n")
    step = next_step(told.study)
    assert (step.move.kind, str(step.command)) == ("check", f"rlx check candidate {identity}")
    where = tree.relative_to(told.study.root).as_posix()
    assert step.why == f"{identity} was edited in {where} after it was checked"
    ended = Drive(told.study, lambda _: None).go()["ended"]
    assert ended.startswith(f"somebody must fix it: {identity} was refused (")
    assert "stray.py" in ended
    assert where in ended
    (tree / "stray.py").unlink()
    assert next_step(told.study) == checked


def test_a_candidate_that_failed_is_not_reopened_by_a_contract_that_was_amended(tmp_path: Path) -> None:
    told = Told(tmp_path / "lab")
    identity = told.checked(0.001)
    fails(told, identity)
    typed(told.study.root, "rlx study amend faster -s budget.seeds=70")
    typed(told.study.root, "rlx study approve --yes --by tester")
    refused = typed(told.study.root, f"rlx check candidate {identity}", code=4)
    assert [one["code"] for one in refused["reasons"]] == ["UNCHANGED"]
    brief = study_status.brief(told.study)
    assert brief["action"] == "propose"
    assert [one["standing"] for one in brief["recent"]] == ["failed"]


def test_a_candidate_that_ran_into_a_limit_may_be_tried_again_under_another_contract(tmp_path: Path) -> None:
    told = Told(tmp_path / "lab")
    identity = told.checked(0.001)
    fails(told, identity, "timeout")
    typed(told.study.root, f"rlx check candidate {identity}", code=4)
    typed(told.study.root, "rlx study amend faster -s budget.per_seed_minutes=2")
    typed(told.study.root, "rlx study approve --yes --by tester")
    step = next_step(told.study)
    assert (step.move.kind, str(step.command)) == ("mend", f"rlx check candidate {identity}")
    assert step.why.endswith("the contract was amended since: check it")
    typed(told.study.root, str(step.command))
    assert next_step(told.study).move.kind == "launch"


def test_a_candidate_that_was_lost_and_is_checked_again_is_not_called_one_that_never_trained(tmp_path: Path) -> None:
    told = Told(tmp_path / "lab")
    identity = told.checked(0.001)
    assert study_status.brief(told.study)["recent"][0]["standing"] == "checked, not trained"
    fails(told, identity, "lost")
    typed(told.study.root, f"rlx check candidate {identity}")
    assert study_status.brief(told.study)["recent"][0]["standing"] == "checked again, not trained since"


def test_config_keys_of_any_kind_that_failed_are_given_up_for_another_and_have_no_worktree_to_mend(
    tmp_path: Path,
) -> None:
    told = Told(tmp_path / "lab")
    document = {"kind": "curriculum schedule", "hypothesis": "longer", "changes": {"algo.learning_rate": 0.1}}
    identity = str(propose(told.study, document)["candidate"])
    typed(told.study.root, f"rlx check candidate {identity}")
    fails(told, identity)
    step = next_step(told.study)
    assert step.move.kind == "propose"
    refused = typed(told.study.root, f"rlx check candidate {identity}", code=4)
    assert "worktree" not in refused["hint"]


def test_the_hash_of_a_plan_may_be_pasted_with_blanks_and_what_is_not_checked_is_said_plainly(tmp_path: Path) -> None:
    told = Told(tmp_path / "lab")
    identity = told.checked(0.001)
    plan = told.state.candidates[identity].plan
    ready = typed(told.study.root, f"rlx launch {identity} --plan ' {plan} ' --dry-run")
    assert ready["seeds"] == [0, 1, 2]
    refused = typed(told.study.root, f"rlx launch {told.proposed(0.002)} --plan {plan} --dry-run", code=4)
    says = {one["code"]: one["says"] for one in refused["reasons"]}
    assert says["STATE"] == "c002 is not checked: rlx starts no trial of it now"
