"""A study whose own files are gone, torn or edited says so, by one line and exit code 6, and claims nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rlx import files
from rlx.launch.study_jobs.reconcile import state_of
from rlx.loop.study.verify import verify
from rlx.runs import run
from tests.loop.told import Told, typed

COMMANDS = (
    "rlx next", "rlx status", "rlx study show", "rlx study log", "rlx study report", "rlx study verify",
    "rlx study audit", "rlx study amend -s budget.seeds=70", "rlx study approve --yes", "rlx check candidate c001",
    "rlx study queue --add c001",
)  # fmt: skip


@pytest.fixture(scope="module")
def _checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    told = Told(tmp_path_factory.mktemp("checked"))
    told.checked(0.02)
    return told.study.root


@pytest.fixture
def told(_checked: Path, tmp_path: Path) -> Told:
    """Return a study with a candidate that was checked."""
    return Told(tmp_path, copied=_checked)


@pytest.mark.parametrize("how", ["gone", "empty", "torn", "a folder"])
def test_a_study_without_its_ledger_is_no_new_study(told: Told, how: str) -> None:
    path = told.study.folder / "ledger.jsonl"
    path.unlink()
    if how == "a folder":
        path.mkdir()
    elif how != "gone":
        path.write_text('{"prev": "00' if how == "torn" else "")
    for command in COMMANDS:
        answer = typed(told.study.root, command, code=6)
        assert answer["error"].startswith("faster/ledger.jsonl is missing or empty"), command
        assert answer["hint"].startswith("restore the file from a copy")
    assert path.exists() != (how == "gone"), "and none is begun in its place"


@pytest.mark.parametrize("how", ["gone", "torn"])
def test_a_candidate_that_the_ledger_knows_and_whose_file_is_gone_is_damage(told: Told, how: str) -> None:
    path = told.study.candidate_path("c001")
    path.unlink() if how == "gone" else path.write_text(path.read_text()[:20])
    for command in ("rlx next", "rlx status", "rlx study report", "rlx check candidate c001"):
        answer = typed(told.study.root, command, code=6)
        assert "c001.json" in answer["error"]
        assert answer["hint"] == "restore the file from a copy"


def test_what_a_candidate_said_of_itself_is_verified(told: Told) -> None:
    assert not any("c001.json" in one for one in verify(told.study)["problems"])
    path = told.study.candidate_path("c001")
    path.write_text(path.read_text().replace("learns faster", "was my idea"))
    assert "candidates/c001.json is not the proposed one" in verify(told.study)["problems"]


def test_code_that_is_not_what_was_checked_is_verified_and_judges_nothing(tmp_path: Path) -> None:
    """A shorter patch would win ties, another one would be handed over as what was confirmed."""
    told = Told(tmp_path)
    name = told.checked(0.01)
    told.trained(name, (400.0, 401.0, 402.0))
    path = told.study.patch_path(name)
    assert not any(path.name in one for one in verify(told.study)["problems"])
    path.write_text("+1\n")
    assert f"candidates/{path.name} is not the checked one" in verify(told.study)["problems"]
    for word in ("verdict", "decide"):
        (reason,) = typed(told.study.root, f"rlx {word} {name}", code=4)["reasons"]
        assert (reason["code"], reason["says"]) == (
            "CANDIDATE",
            f"candidates/{path.name} is not the checked one; restore the file",
        )
    assert [one["action"] for one in told.study.ledger.events() if one.kind == "refused"] == ["judge", "judge"]
    path.unlink()
    assert f"candidates/{path.name} is gone" in verify(told.study)["problems"]


@pytest.mark.parametrize("name", ["contract.yaml", "task.yaml"])
@pytest.mark.parametrize(("content", "code"), [("", 2), ("- 1\n", 2), (None, 3)])
def test_a_document_that_was_there_is_restored_and_not_made_anew(
    told: Told, name: str, content: str | None, code: int
) -> None:
    path = told.study.contract_path if name == "contract.yaml" else told.study.task_path
    if content is None and name == "contract.yaml":
        path.unlink()
        path.mkdir()
        code = 2
    elif content is None:
        path.unlink()
    else:
        path.write_text(content)
    assert typed(told.study.root, "rlx next --full", code=code)["hint"] == "restore the file from a copy"


def test_scores_of_a_contract_without_a_metric_do_not_hold_up(told: Told) -> None:
    contract = told.study.contract_path
    contract.write_text(contract.read_text()[:300])
    problems = typed(told.study.root, "rlx study verify", code=6)["problems"]
    assert problems


def test_an_evaluator_whose_copy_is_gone_does_not_hold_up(told: Told) -> None:
    shutil.rmtree(told.study.evaluator)
    problems = typed(told.study.root, "rlx study verify", code=6)["problems"]
    assert any(one.startswith("evaluator: ") for one in problems)


@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_a_report_that_does_not_read_is_one_that_was_not_written(told: Told, content: bytes | None) -> None:
    path = told.study.report_path
    path.mkdir() if content is None else path.write_bytes(content)
    assert typed(told.study.root, "rlx next --full")["action"] == "launch"


def test_a_run_on_another_disk_is_one_of_its_study(
    told: Told, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, elsewhere = told.study.root, tmp_path_factory.mktemp("disk") / "runs"
    lineage = {"task": told.study.task_name, "study": "faster", "job": "b"}
    (elsewhere / "r_001" / "seed_0").mkdir(parents=True)
    files.write_json(elsewhere / "r_001" / "metadata.json", {"schema": 1, "lineage": lineage})
    shutil.rmtree(root / "runs", ignore_errors=True)
    (root / "runs").symlink_to(elsewhere)
    monkeypatch.chdir(root)
    assert state_of(run.find("r_001", root=root)) == "completed"


def test_where_there_is_no_repository_an_anchor_is_refused(told: Told) -> None:
    (told.study.root / ".git").rename(told.study.root / "elsewhere")
    answer = typed(told.study.root, "rlx study audit --anchor", code=4)
    assert "was not anchored" in answer["error"]
    assert "git init" in answer["hint"]


def test_two_who_amend_at_once_lose_neither_change(told: Told) -> None:
    root = told.study.root
    changes = ["budget.seeds=71", "budget.hours=3", "metric.min_effect=5", "hardware.disk_gb=1"]
    argv = [sys.executable, "-m", "rlx", "study", "amend", "-s"]
    started = [subprocess.Popen([*argv, one], cwd=root, stdout=subprocess.DEVNULL) for one in changes]
    assert [one.wait() for one in started] == [0] * len(changes)
    contract = told.study.contract()
    assert contract.budget
    assert contract.metric
    assert contract.hardware
    found = (contract.budget.seeds, contract.budget.hours, contract.metric.min_effect, contract.hardware.disk_gb)
    assert found == (71, 3, 5, 1)


def test_of_two_rehearsals_at_once_the_second_is_refused(told: Told) -> None:
    with files.locked(told.study.folder / "rehearsal"):
        assert "somebody else" in typed(told.study.root, "rlx study rehearse", code=4)["error"]


def test_what_a_run_was_made_with_is_held_to_its_intent(told: Told) -> None:
    made = told.study.root / "runs" / "r_001"
    made.mkdir(parents=True)
    (made / "metadata.json").write_text("{}")
    identity = files.sha256(b"{}")
    intent = {"job": "j9", "candidate": "baseline", "phase": "baseline", "seeds": [50], "plan": "p", "run": made.name}
    told.tell("intent", **intent, identity=identity, reserve={"seeds": 1, "seconds": 1.0})
    told.start("j9")
    told.end("j9", (50,))
    told.tell("weights", candidate="baseline", run=made.name, checkpoints={"50": "w"})
    assert not any("metadata" in one for one in verify(told.study)["problems"])
    (made / "metadata.json").write_text('{"limits": {}}')
    assert "r_001/metadata.json is not what the run was made with" in verify(told.study)["problems"]
    assert typed(told.study.root, "rlx study audit")["is_sound"]
    (made / "metadata.json").unlink()
    assert "r_001/metadata.json is gone" in verify(told.study)["problems"]
