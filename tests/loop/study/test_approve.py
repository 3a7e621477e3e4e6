"""Approving a real study: what may take the place of what, what is said of a stop, and what the door then says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlx import files
from rlx.errors import Refused
from rlx.hosts.cli.main import call
from rlx.launch.study_jobs import launch_candidate
from rlx.launch.study_jobs.launch_candidate import LaunchOrder
from rlx.loop.study import study_status
from rlx.loop.study.amend import amend
from rlx.loop.study.approve import approve
from rlx.loop.study.evaluator import StudyEvaluator
from rlx.loop.study.new_study import Wishes, new_study
from rlx.loop.study.step_commands import next_step
from rlx.loop.study.study_status import notice_amendment
from rlx.loop.study.verify import audit
from rlx.runs.project import folder_identity, mark_made_here, mark_own
from rlx.study.approval.approval import Statement, assert_approval
from rlx.study.study_folder import Study, find_study
from tests.study.approval.test_approval import Signer, has_ssh

CONFIG = "env: {id: CartPole-v1}\nalgo: {name: ppo, total_timesteps: 64}\n"


@pytest.fixture(scope="module")
def _new(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("new") / "project"
    (root / "configs").mkdir(parents=True)
    (root / "configs" / "pole.yaml").write_text(CONFIG)
    (root / "rlx.toml").write_text("schema = 1\n")
    who = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "as it is")):
        subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True)
    wishes = Wishes(seeds=60, hours=1.0, settings=("budget.per_seed_minutes=1",))
    new_study(root, "faster", wishes, config=root / "configs" / "pole.yaml")
    return root


@pytest.fixture
def study(_new: Path, tmp_path: Path) -> Study:
    root = Path(shutil.copytree(_new, tmp_path / "project", symlinks=True))
    mark_own(root)
    mark_made_here(find_study(root).folder)
    return find_study(root)


@pytest.fixture
def signer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Signer:
    home = tmp_path / "home" / "rlx"
    home.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home.parent))
    return Signer(home)


def refused_codes(study: Study) -> list[str]:
    with pytest.raises(Refused) as refused:
        launch_candidate.launch(study, LaunchOrder("baseline", "baseline"), is_dry=True)
    return [one["code"] for one in refused.value.reasons]


@has_ssh
def test_where_a_signature_is_asked_for_the_hint_says_how_one_is_given(
    study: Study, signer: Signer, capfd: pytest.CaptureFixture[str]
) -> None:
    amend(study, ["automation.approval=signed"])
    with pytest.raises(Refused, match="the approval is asserted; the contract requires signed") as refused:
        approve(study, by="me")
    assert refused.value.hint == "sign it: rlx study approve faster --key FILE"
    study.ledger.append("escalated", why="three starts without a row")
    assert str(next_step(study).command) == "rlx study approve faster --go-on --key FILE"
    with pytest.raises(Refused) as refused:
        approve(study, by="me", goes_on=True)
    assert refused.value.hint == "sign it: rlx study approve faster --go-on --key FILE"
    with pytest.raises(Refused) as refused:
        approve(study, by="me", key=signer.key)
    assert refused.value.hint == "to let it go on: rlx study approve faster --go-on --key FILE"
    assert approve(study, by="me", key=signer.key, goes_on=True)["level"] == "signed"
    assert capfd.readouterr() == ("", "")


def test_approving_says_that_this_contract_was_not_rehearsed(study: Study) -> None:
    assert approve(study, by="me")["rehearsal"].startswith("none yet; ")
    checks = [{"name": "training", "ok": True, "says": "fine"}]
    study.ledger.append("rehearsed", contract=study.state().contract, ok=True, checks=checks)
    assert approve(study, by="me")["rehearsal"] == "the whole path works"
    amend(study, ["budget.seeds=61"])
    assert approve(study, by="me")["rehearsal"].startswith("none of this contract, which was amended since: rlx study ")


@has_ssh
def test_a_weaker_approval_does_not_take_the_place_of_a_stronger_one_that_stands(study: Study, signer: Signer) -> None:
    approve(study, by="me", key=signer.key)
    with pytest.raises(Refused, match="a stronger approval stands, signed by ada; asserted would") as refused:
        approve(study, by="an agent")
    assert refused.value.hint is not None
    assert study.state().approval is not None
    assert study_status.approval_words(study.state()).startswith("signed by ada")
    approve(study, by="me", key=signer.key)
    amend(study, ["budget.seeds=61"])
    assert approve(study, by="me")["level"] == "asserted", "the stronger one is of another contract, and stands no more"


@has_ssh
def test_a_signature_that_no_longer_holds_is_named_once_and_may_be_replaced(study: Study, signer: Signer) -> None:
    approve(study, by="me", key=signer.key)
    signer.signers.write_text("# nobody\n")
    assert refused_codes(study) == ["APPROVAL"]
    assert "is empty" in study_status.status(study)["approval"]
    assert approve(study, by="me")["level"] == "asserted"


def test_what_makes_an_approval_void_expired_or_weak_is_named_once(study: Study) -> None:
    amend(study, ["automation.approval=signed"])
    sha256, folder = str(study.state().contract), folder_identity(study.root)
    statement = Statement.of(study.contract(), sha256, now=time.time() - 30 * 86_400, folder=folder)
    study.ledger.append("approved", **assert_approval(statement, by="me"))
    assert refused_codes(study) == ["APPROVAL_EXPIRED", "APPROVAL_LEVEL"]
    study.contract_path.write_text(study.contract_path.read_text() + "\n")
    assert refused_codes(study) == ["APPROVAL_VOID", "APPROVAL_EXPIRED", "APPROVAL_LEVEL"]
    assert next_step(study).move.kind == "rehearse"


def test_a_study_that_has_stopped_goes_on_only_where_that_is_said(study: Study) -> None:
    approve(study, by="me")
    study.ledger.append("escalated", why="three starts without a row")
    assert str(next_step(study).command) == "rlx study approve faster --go-on"
    with pytest.raises(Refused, match="three starts without a row") as refused:
        approve(study, by="me")
    assert refused.value.hint == "to let it go on: rlx study approve faster --go-on"
    assert study.state().escalation is not None
    told = approve(study, by="me", goes_on=True)
    assert "three starts without a row" in told["goes_on_after"]
    assert study.state().escalation is None
    assert next_step(study).move.kind == "baseline"


def test_approvals_at_the_same_time_all_end_with_an_answer(study: Study) -> None:
    words = [sys.executable, "-m", "rlx", "study", "approve", "--yes", "--json", "--by"]
    at_once = [subprocess.Popen([*words, f"x{number}"], cwd=study.root, stdout=subprocess.PIPE) for number in range(4)]
    answers = [(one.communicate(timeout=120)[0], one.returncode) for one in at_once]
    assert {code for _, code in answers} == {0}, answers
    assert study.state().approval is not None
    StudyEvaluator(study).pin.verify()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["ledger.jsonl", "contract.yaml", "task.yaml", "active.json"])
def test_a_pipe_in_the_place_of_a_file_of_the_study_is_refused_at_once(
    study: Study, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    approve(study, by="me")
    monkeypatch.chdir(study.root)
    places = {"task.yaml": study.task_path, "active.json": study.root / ".rlx" / "active.json"}
    path = places.get(name, study.folder / name)
    path.unlink()
    os.mkfifo(path)
    for command in ("next", "status", "study approve --yes", "study audit"):
        code = call(command.split())
        assert code in ((2, 3, 6) if name != "active.json" else (0, 2, 3, 4, 6)), command
        assert "a bug" not in capsys.readouterr().err


def test_a_copied_study_has_neither_the_approval_of_the_first_nor_one_of_its_own(study: Study) -> None:
    """Else one approval would pay for as many claims as there are copies."""
    approve(study, by="me")
    shutil.copytree(study.folder, study.folder.with_name("second"))
    copy = Study(study.root, study.task_name, "second")

    with pytest.raises(Refused, match="second was not made in this folder"):
        launch_candidate.launch(copy, LaunchOrder("baseline", "baseline"))
    mark_made_here(copy.folder)
    with pytest.raises(Refused, match=r"the approval is for pole/faster, and this is pole/second: a copied"):
        launch_candidate.launch(copy, LaunchOrder("baseline", "baseline"))
    with pytest.raises(Refused, match=r"the contract is that of pole/faster, and this is pole/second"):
        approve(copy, by="me")

    refused = [event for event in copy.ledger.events() if event.kind == "refused"]
    assert [(one["action"], [reason["code"] for reason in one["reasons"]]) for one in refused] == [
        ("launch", ["APPROVAL"]),
        ("approve", ["APPROVAL"]),
    ]
    assert launch_candidate.launch(study, LaunchOrder("baseline", "baseline"), is_dry=True).seeds, "the first goes on"


def test_an_approval_that_names_no_folder_holds_nowhere(study: Study) -> None:
    """Else the author of an archive could approve it for everybody who unpacks it."""
    statement = Statement.of(study.contract(), str(study.state().contract), now=time.time())
    study.ledger.append("approved", **assert_approval(statement, by="me"))
    assert refused_codes(study) == ["APPROVAL"]


def test_what_was_shown_is_what_is_approved(study: Study) -> None:
    shown = notice_amendment(study)["sha256"]
    amend(study, ["budget.seeds=5000"])
    with pytest.raises(Refused, match="changed while it was read") as refused:
        approve(study, by="me", shown=shown)
    assert refused.value.hint == "read it again: rlx study approve faster"
    assert study.state().approval is None
    assert study.state().last_refusal is not None
    assert approve(study, by="me", shown=notice_amendment(study)["sha256"])["level"] == "asserted"


def test_a_contract_that_is_exchanged_while_it_is_approved_is_not_the_approved_one(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    notice_amendment(study)
    before = study.contract_path.read_text()

    def exchanged(*_: object) -> None:
        study.contract_path.write_text(before.replace("seeds: 60", "seeds: 5000"))

    monkeypatch.setattr("rlx.loop.study.approve.refuse_other_measures", exchanged)
    approve(study, by="me")
    monkeypatch.undo()
    approval = study.state().approval
    assert approval is not None
    assert approval.contract == files.sha256(before.encode())
    assert "APPROVAL_VOID" in refused_codes(study)


def test_an_approval_of_a_clock_that_ran_ahead_does_not_stand_and_rows_that_go_back_are_told(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time
    with monkeypatch.context() as ahead:
        ahead.setattr(time, "time", lambda: now() + 3000 * 86_400)
        approve(study, by="me")
    assert refused_codes(study) == ["APPROVAL"]
    assert "a clock is wrong" in study_status.status(study)["approval"]
    approve(study, by="me")
    assert any("min before the row above it: a clock was set" in note for note in audit(study)["notes"])
