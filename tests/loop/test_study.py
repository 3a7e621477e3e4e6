"""A whole study on an rlx config, through the real command line: real trainings, real sandbox, real evaluator."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.lab import Lab as Project

pytestmark = pytest.mark.slow
CONFIG = """\
env: {id: CartPole-v1, num_envs: 8}
algo: {name: ppo, total_timesteps: 6144, rollout_steps: 32, batch_size: 256, update_epochs: 20, learning_rate: 0.5,
       gamma: 0.98, gae_lambda: 0.8}
policy: {hidden_sizes: [32, 32]}
eval: {every: 6144, episodes: 2}
"""


class Lab:
    """A project with a study, used as a person or an agent would: by typing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "configs").mkdir(parents=True)
        (root / "rlx.toml").touch()
        (root / ".gitignore").write_text("/runs/\n/.rlx/\n")
        (root / "configs" / "pole.yaml").write_text(CONFIG)
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")

    def git(self, *argv: str) -> None:
        subprocess.run(["git", *argv], cwd=self.root, check=True, capture_output=True)

    def rlx(self, *argv: str, code: int = 0) -> dict[str, Any]:
        return Project(self.root).types(*argv, code=code)

    def found(self, *wishes: str) -> None:
        """Make a study that is rehearsed, approved and has its pool."""
        self.rlx("study", "new", "quick", "--config", "configs/pole.yaml", "--seeds", "60", "--hours", "1", *wishes)
        self.rlx("study", "rehearse")
        self.rlx("study", "approve", "--yes", "--by", "tester")
        self.rlx("study", "baseline")

    def launched(self, candidate: str, phase: str = "trial") -> dict[str, Any]:
        plan = self.rlx("check", "candidate", candidate)["plan"]
        job = self.rlx("launch", candidate, "--phase", phase, "--plan", plan)
        self.rlx("wait", job["run"], "--timeout", "120")
        return job


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path / "a lab")


def better(lab: Lab) -> None:
    lab.rlx(
        "propose", "--kind", "hyperparameter", "--hypothesis", "a step that learns", "-s", "algo.learning_rate=0.002"
    )


def test_a_better_config_is_proposed_raced_claimed_and_confirmed(lab: Lab) -> None:
    lab.found()
    better(lab)
    lab.launched("c001")
    assert lab.rlx("decide", "c001")["decision"] == "inconclusive"
    walked = lab.rlx("study", "loop")
    assert walked["ended"].startswith("somebody must propose")
    assert lab.rlx("status")["head"] == "c001"
    drawn: list[int] = []
    for _ in range(2):
        plan = lab.rlx("next", "--full")
        claim = [plan, *plan["also"]]
        command = next(one["command"] for one in claim if "--phase confirmation" in one["command"])
        job = lab.rlx(*command.split()[1:])
        assert len(job["seeds"]) == 10
        drawn += job["seeds"]
        lab.rlx("wait", job["run"], "--timeout", "200")
    assert len(set(drawn) - set(range(2000))) == 20  # nobody can know them before the launch
    decided = lab.rlx("decide", "c001")
    assert decided["decision"] == "confirmed", decided
    assert decided["level"] == "sealed"
    assert decided["n"] == [10, 10]
    assert lab.rlx("status")["incumbent"] == "c001"
    assert lab.rlx("study", "verify")["problems"] == []
    assert lab.rlx("study", "audit", "--anchor")["is_sound"]
    report = lab.rlx("study", "report")
    assert report["outcome"].startswith("c001: ")
    assert ", confirmed: +" in report["outcome"]
    assert (lab.root / report["picture"]).read_bytes().startswith(b"\x89PNG")
    again = lab.rlx("decide", "c001")
    assert (again["decision"], again["recorded"]) == ("confirmed", "")


def test_nothing_launches_without_approval_scope_or_plan_and_every_refusal_is_a_row(lab: Lab) -> None:
    lab.rlx("study", "new", "quick", "--config", "configs/pole.yaml", "--seeds", "60", "--hours", "1")
    better(lab)
    plan = lab.rlx("check", "candidate", "c001")["plan"]
    refused = lab.rlx("launch", "c001", "--plan", plan, code=4)
    assert {"NOT_APPROVED", "PHASE"} <= {one["code"] for one in refused["reasons"]}
    lab.rlx("study", "approve", "--yes")
    wrong = lab.rlx("launch", "c001", "--plan", "0" * 16, code=4)
    assert "PLAN" in {one["code"] for one in wrong["reasons"]}
    lab.rlx("study", "amend", "-s", "budget.seeds=61")
    void = lab.rlx("launch", "c001", "--plan", plan, code=4)
    assert "APPROVAL_VOID" in {one["code"] for one in void["reasons"]}
    outside = lab.rlx(
        "propose", "--kind", "hyperparameter", "--hypothesis", "fewer episodes", "-s", "eval.episodes=1", code=4
    )
    assert "eval.episodes" in outside["error"]
    seed = lab.rlx("propose", "--kind", "hyperparameter", "--hypothesis", "another seed", "-s", "seed=7", code=4)
    assert "seed" in seed["error"]
    rows = [json.loads(line) for line in _ledger(lab).read_text().splitlines()]
    assert sum('"event":"refused"' in row["body"] for row in rows) == 5


def _ledger(lab: Lab) -> Path:
    return lab.root / ".rlx" / "tasks" / "pole" / "studies" / "quick" / "ledger.jsonl"


def test_a_contract_that_was_edited_by_hand_after_approval_launches_nothing(lab: Lab) -> None:
    lab.rlx("study", "new", "quick", "--config", "configs/pole.yaml", "--seeds", "60", "--hours", "1")
    lab.rlx("study", "approve", "--yes")
    path = _ledger(lab).with_name("contract.yaml")
    path.write_text(path.read_text() + "\n")
    refused = lab.rlx("launch", "baseline", "--phase", "baseline", code=4)
    assert "APPROVAL_VOID" in {one["code"] for one in refused["reasons"]}


def test_a_worker_that_nobody_launched_refuses_to_train(lab: Lab) -> None:
    lab.found()
    run = lab.root / "runs" / "quick_baseline_001"
    done = subprocess.run(
        [sys.executable, "-m", "rlx.launch.worker", str(run), "0"], capture_output=True, text=True, cwd=lab.root
    )
    assert done.returncode == 4
    done = subprocess.run(
        [sys.executable, "-P", "-m", "rlx.launch.supervisor", str(run), "0"], capture_output=True, cwd=lab.root
    )
    assert "no open job" in (run / "logs" / "seed_0.log").read_text()
