"""A launch is refused with exit code 4 and every reason, whatever one thing is missing or off; by the command line."""

from __future__ import annotations

import contextlib
import io
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rlx.hosts.cli.main import call
from rlx.loop.study.amend import amend
from rlx.loop.study.approve import approve
from rlx.loop.study.new_study import Wishes, new_study
from rlx.runs.project import folder_identity
from rlx.study.approval.approval import Statement, assert_approval
from rlx.study.contract.contract import POINTS
from rlx.study.study_folder import Study, find_study
from tests.faults.lab import CONFIG, LINE, PAY, Lab

BASELINE = ("launch", "baseline", "--phase", "baseline")


class Door:
    """An approved study in a real repository, and what the command line answers there."""

    def __init__(self, root: Path, *paths: str) -> None:
        Lab(root).commits(CONFIG)
        wishes = Wishes(metric="success_rate", surfaces=("hyperparameters",), paths=paths, seeds=60, hours=1.0,
                        settings=("budget.per_seed_minutes=1",))  # fmt: skip
        new_study(root, "walk", wishes, config=root / "configs" / "line.yaml")
        self.study: Study = find_study(root)

    def answers(self, *argv: str, code: int = 4) -> dict[str, Any]:
        told, errors = io.StringIO(), io.StringIO()
        with contextlib.chdir(self.study.root), contextlib.redirect_stdout(told), contextlib.redirect_stderr(errors):
            found = call([*argv, "--json"])
        assert found == code, told.getvalue() + errors.getvalue()
        answer: dict[str, Any] = json.loads(told.getvalue())
        return answer

    def refuses(self, argv: Sequence[str] = BASELINE) -> dict[str, str]:
        """Type a launch that must not pass; return its reasons by code, which are one row of the ledger too."""
        reasons = self.answers(*argv)["reasons"]
        row = self.study.ledger.events()[-1]
        assert (row.kind, row["action"]) == ("refused", "launch")
        assert row["reasons"] == [{"code": one["code"], "says": one["says"]} for one in reasons]
        assert all(one["hint"] for one in reasons)
        assert len({one["says"] for one in reasons}) == len(reasons), "each reason is named once"
        return {one["code"]: one["says"] for one in reasons}

    def passes(self) -> None:
        assert self.answers(*BASELINE, "--dry-run", code=0)["run"] is None


@pytest.fixture(scope="module")
def founded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Door, bytes]:
    made = Door(tmp_path_factory.mktemp("door") / "lab", "envs/pay.py::reward")
    return made, made.study.contract_path.read_bytes()


@pytest.fixture
def door(founded: tuple[Door, bytes], monkeypatch: pytest.MonkeyPatch) -> Door:
    monkeypatch.delenv("RLX_ROOT", raising=False)
    made, contract = founded
    made.study.contract_path.write_bytes(contract)
    approve(made.study, by="tester")
    return made


@pytest.mark.parametrize("point", POINTS)
def test_without_one_of_the_eight_confirmations_nothing_starts(door: Door, point: str) -> None:
    left = ", ".join(one for one in POINTS if one != point)
    amend(door.study, [f"confirmed=[{left}]"])
    reasons = door.refuses()
    assert list(reasons) == ["BLOCKED", "APPROVAL_VOID"]
    assert reasons["BLOCKED"].startswith(POINTS[point])
    assert "not settled" in door.answers("study", "approve", "--yes")["error"]


def test_after_one_byte_of_drift_nothing_starts(door: Door) -> None:
    door.passes()
    path = door.study.contract_path
    before = path.read_bytes()
    path.write_bytes(before + b"\n")
    assert list(door.refuses()) == ["APPROVAL_VOID"]
    path.write_bytes(before)
    door.passes()


def test_a_budget_that_is_one_seed_short_lets_nothing_start(door: Door) -> None:
    amend(door.study, ["budget.seeds=20", "budget.hours=0.33334"])
    approve(door.study, by="tester")
    door.answers(*BASELINE, "--seeds", "20", "--dry-run", code=0)
    assert list(door.refuses((*BASELINE, "--seeds", "21"))) == ["BUDGET_SEEDS", "BUDGET_HOURS"]


def test_an_approval_that_has_run_out_lets_nothing_start(door: Door) -> None:
    folder = folder_identity(door.study.root)
    begun = time.time() - 30 * 86_400
    statement = Statement.of(door.study.contract(), str(door.study.state().contract), now=begun, folder=folder)
    door.study.ledger.append("approved", **assert_approval(statement, by="tester"))
    assert list(door.refuses()) == ["APPROVAL_EXPIRED"]


def test_a_change_outside_of_the_scope_is_refused_beside_every_other_reason(door: Door) -> None:
    proposed = door.answers(
        "propose", "--kind", "reward engineering", "--hypothesis", "it should guide",
        "--record", "reflection=the reward is sparse", "--record", "reason=it should guide", code=0,
    )  # fmt: skip
    tree = Path(proposed["worktree"])
    (unedited,) = door.answers("check", "candidate", "c001")["reasons"]
    assert unedited["says"].endswith(f"edit the files in {tree}")
    (tree / "envs" / "pay.py").write_text(PAY.replace("0.0", "-0.1"))
    plan = door.answers("check", "candidate", "c001", code=0)["plan"]
    (tree / "envs" / "line.py").write_text(LINE.replace("12", "24"))
    reasons = door.refuses(("launch", "c001", "--plan", plan))
    assert list(reasons) == ["SCOPE", "PLAN", "PHASE"]
    assert "envs/line.py" in reasons["SCOPE"]


def test_a_config_key_on_top_of_a_change_of_code_is_no_change_of_code_and_no_duplicate(door: Door) -> None:
    records = ("--record", "reflection=the reward is sparse", "--record", "reason=it should guide")
    what = ("propose", "--kind", "reward engineering", "--hypothesis", "it should guide more")
    code = door.answers(*what, *records, code=0)
    Path(code["worktree"], "envs", "pay.py").write_text(PAY.replace("0.0", "-0.2"))
    door.answers("check", "candidate", code["candidate"], code=0)
    change = {"kind": "hyperparameter", "hypothesis": "larger steps", "changes": {"algo.learning_rate": 0.005}}
    file = door.study.folder / "proposal.json"
    for below in ("baseline", code["candidate"]):
        file.write_text(json.dumps({**change, "builds_on": below}))
        proposed = door.answers("propose", "--file", str(file), code=0)["candidate"]
        assert door.answers("check", "candidate", proposed, code=0)["plan"]
    (door.study.worktree(proposed) / "envs" / "pay.py").write_text(PAY.replace("0.0", "-0.3"))
    assert "changes no code" in door.answers("check", "candidate", proposed)["error"]


def test_a_metric_that_a_file_in_scope_computes_lets_nothing_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RLX_ROOT", raising=False)
    door = Door(tmp_path / "lab", "envs/line.py")
    reasons = door.refuses()
    assert list(reasons) == ["BLOCKED", "NOT_APPROVED"]
    assert "envs/line.py" in door.answers("study", "approve", "--yes")["error"]
