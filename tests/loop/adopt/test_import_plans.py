"""Plans of rlxp and AutoRL, in their documented layouts, become drafts; approvals stay behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlx.errors import NotFound
from rlx.loop.adopt.import_plans import import_plans, plan_format
from rlx.study.study_folder import find_study
from tests.adopt.foreign_repos import write_repo
from tests.loop.told import git, repository

TRAIN = (
    "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--seed')\nparser.add_argument('--lr')\n"
)
RLXP = {
    "registry.yaml": "active_task: trot\nactive_study: faster\n",
    "tasks/trot/task_card.md": "# Trot\n\nTrot forward at one metre per second.\n",
    "tasks/trot/adapter.yaml": "commands:\n  train_command_runnable: python train.py --seed 3 --lr 0.01\n"
    "contract_gate:\n  required_before_training: true\n",
    "tasks/trot/studies/faster/contract.yaml": "status: approved_for_launch\ntraining_allowed: true\n"
    "metrics:\n  primary: {name: success, direction: maximize, n_seeds: 30}\n"
    "  guardrails: [{name: energy, op: <=, limit: 2}]\n"
    "scope: {keys: [lr]}\nbudget: {wall_hours: 6}\nconfirmations: {by: someone, at: yesterday}\n",
    "tasks/trot/studies/faster/candidates/c1.yaml": "id: c1\nkind: DR tuning\nhypothesis: wider friction\n"
    "status: accepted\nchanges: {lr: 0.02}\n",
    "tasks/trot/studies/faster/ledger.jsonl": '{"event": "launched"}\n{"event": "accepted"}\n{"torn',
}
AUTORL = {
    "tasks/grasp/task-profile.md": "# Task\n\n## Mission\n\nGrasp the cube.\n\n## Non-goals\n\nSpeed.\n",
    "tasks/grasp/runbook.md": "# Runbook\n\n```bash\npython train.py --seed 1\npython eval.py --ckpt best.pt\n```\n",
    "tasks/grasp/metric-spec.md": "# Metrics\n\n## Success\n\n- `grasp_error`, lower is better\n",
    "tasks/grasp/surface-map.md": "# Surfaces\n\n- `lr`\n- `train.py`\n",
    "tasks/grasp/task-contract.md": "# Contract\n\nBudget: 5 hours.\nRuling: execute. Approved by the user.\n",
    "tasks/grasp/state.json": '{"schema": 1, "facts": {"a": 1}, "loop": "l1"}',
    "tasks/grasp/loops/l1/params.json": '{"params": {"lr": 0.003}, "hypothesis": "slower", "decision": "continue"}',
}


def written(root: Path, folder: str, files: dict[str, str]) -> None:
    write_repo(root / folder, files)
    git(root, "add", "-A", "-f")
    git(root, "commit", "-qm", "plans")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    repository(tmp_path)
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "eval.py").write_text("print(1)\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "programs")
    return tmp_path


def test_rlxp_becomes_a_task_an_unapproved_study_and_candidates(root: Path) -> None:
    written(root, ".rlxp", RLXP)
    assert plan_format(root / ".rlxp") == "rlxp"
    report = import_plans(root / ".rlxp", root=root, format_name="rlxp")
    assert (report.tasks, report.studies) == (["trot"], ["trot/faster"])
    assert report.approvals >= 3
    study = find_study(root)
    assert study.task().card.mission == "Trot forward at one metre per second."
    assert "{seed}" in study.task().adapter.train
    contract = study.contract()
    assert contract.metric is not None
    assert (contract.metric.name, contract.metric.direction) == ("success", "maximize")
    assert contract.budget is not None
    assert (contract.budget.seeds, contract.budget.hours) == (30, 6)
    assert study.state().approval is None
    (path,) = report.candidates
    candidate = json.loads((root / path).read_text())
    assert (candidate["kind"], candidate["changes"]) == ("randomisation tuning", {"lr": 0.02})
    assert candidate["hypothesis"] == "wider friction (status there: accepted)"
    history = (root / path).with_name("history.jsonl").read_text().splitlines()
    assert len(history) == 2
    assert any("ledger.jsonl:3 is damaged" in note for note in report.notes)
    assert any("energy <= 2" in note for note in report.notes)


def test_autorl_pages_become_drafts(root: Path) -> None:
    written(root, ".autorl", AUTORL)
    report = import_plans(root, root=root, format_name="autorl")
    assert report.tasks == ["grasp"]
    assert report.approvals
    study = find_study(root)
    assert study.task().card.mission == "Grasp the cube."
    contract = study.contract()
    assert contract.metric is not None
    assert (contract.metric.name, contract.metric.direction) == ("grasp_error", "minimize")
    assert study.state().approval is None
    assert [json.loads((root / path).read_text())["changes"] for path in report.candidates] == [{"lr": 0.003}]


def test_a_study_that_cannot_be_drafted_yet_gives_its_command(root: Path) -> None:
    write_repo(root / ".rlxp", RLXP)
    (note,) = [note for note in import_plans(root, root=root, format_name="rlxp").notes if "study faster" in note]
    assert "differ from the last commit" in note
    assert "rlx study new faster --task trot --seeds 30 --hours 6.0 --metric success --key lr" in note


def test_importing_a_plan_twice_changes_nothing(root: Path) -> None:
    write_repo(root / ".rlxp", RLXP)
    import_plans(root, root=root, format_name="rlxp")
    before = {path: path.read_bytes() for path in (root / ".rlx").rglob("*") if path.is_file()}
    again = import_plans(root, root=root, format_name="rlxp")
    assert again.present == ["trot"]
    assert not again.tasks
    assert {path: path.read_bytes() for path in (root / ".rlx").rglob("*") if path.is_file()} == before


def test_damaged_and_foreign_plans_give_notes(root: Path) -> None:
    damaged = {"tasks/a/adapter.yaml": "commands: [", "tasks/b/adapter.yaml": "- 1\n", "tasks/c/task_card.md": "hm\n"}
    write_repo(root / ".rlxp", damaged)
    report = import_plans(root, root=root, format_name="rlxp")
    assert not report.tasks
    assert any("adapter.yaml was not read" in note for note in report.notes)
    with pytest.raises(NotFound, match=r"has no \.autorl folder"):
        import_plans(root, root=root, format_name="autorl")
