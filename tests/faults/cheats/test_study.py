"""Cheats on a whole study, typed as an agent would: each is refused with its reason in the ledger, or gains nothing."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rlx.hosts.cli.main import call
from rlx.runs import process

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cheats on a study")]
LINE = '''\
"""A walk on a line to a goal."""
import gymnasium
import numpy

from envs import pay


class Line(gymnasium.Env):
    max_episode_steps = 12
    observation_space = gymnasium.spaces.Box(-20, 20, (1,), numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = float(self.np_random.uniform(-1, 1))
        return self._seen(), {}

    def step(self, action):
        self.at += 1.0 if action else -1.0
        there = self.at >= 6
        return self._seen(), pay.reward(self.at, there), there, False, {"is_success": there}

    def _seen(self):
        return numpy.array([self.at], numpy.float32)
'''
PAY = '''\
"""What a step on the line pays."""


def reward(at, there):
    return 1.0 if there else 0.0
'''
CONFIG = """\
env: {id: "envs/line.py:Line", num_envs: 2}
algo: {name: ppo, total_timesteps: 256, rollout_steps: 32, batch_size: 32, update_epochs: 1, learning_rate: 1.0e-4}
policy: {hidden_sizes: [8]}
eval: {every: 256, episodes: 2, metric: success_rate}
"""
STARTS = ("launch", "study")
"""Commands that leave a supervisor behind, which must not be this process's child."""
LATER = """\
    reward.calls = getattr(reward, "calls", 0) + 1
    if reward.calls == 150:
"""
"""Where a cheat begins that lets every check before the training pass."""


@dataclass
class Agent:
    """A project with an approved study, and somebody who types, edits files and does not play fair."""

    root: Path

    def types(self, *argv: str, code: int = 0) -> dict[str, Any]:
        found, told, errors = self._started(argv) if argv[0] in STARTS else self._called(argv)
        assert found == code, told + errors
        answer: dict[str, Any] = json.loads(told)
        return answer

    def _started(self, argv: Sequence[str]) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "rlx", *argv, "--json"], cwd=self.root, capture_output=True, text=True,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def _called(self, argv: Sequence[str]) -> tuple[int, str, str]:
        """Run a command in this process: no second is spent on its imports."""
        told, errors = io.StringIO(), io.StringIO()
        with contextlib.chdir(self.root), contextlib.redirect_stdout(told), contextlib.redirect_stderr(errors):
            found = call([*argv, "--json"])
        return found, told.getvalue(), errors.getvalue()

    @property
    def folder(self) -> Path:
        return self.root / ".rlx" / "tasks" / "line" / "studies" / "cheats"

    def rows(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        bodies = [json.loads(json.loads(line)["body"]) for line in self._ledger()]
        return [one for one in bodies if one["event"] == event and fields.items() <= one.items()]

    def _ledger(self) -> list[str]:
        return (self.folder / "ledger.jsonl").read_text().splitlines()

    def proposes(self, hypothesis: str) -> tuple[str, Path]:
        """Propose a change of the reward's code; return its id and its worktree."""
        answer = self.types(
            "propose", "--kind", "reward engineering", "--hypothesis", hypothesis,
            "--record", "reflection=the reward is sparse", "--record", "reason=it should guide",
        )  # fmt: skip
        return answer["candidate"], Path(answer["worktree"])

    def pays(self, hypothesis: str, body: str) -> str:
        """Propose another body of the reward, which is all that the scope opens."""
        identity, tree = self.proposes(hypothesis)
        (tree / "envs" / "pay.py").write_text(PAY.replace("    return", f"{body}    return", 1))
        return identity

    def is_refused(self, identity: str) -> str:
        """Check a candidate that must not pass; return the reasons, which are one new row of the ledger."""
        told = self.types("check", "candidate", identity, code=4)
        (row,) = self.rows("refused", candidate=identity, action="check")
        assert [one["says"] for one in row["reasons"]] == [one["says"] for one in told["reasons"]]
        return " ".join(f"{one['code']}: {one['says']}" for one in row["reasons"])

    def launches(self, identity: str, *, seeds: int = 1) -> str:
        plan = self.types("check", "candidate", identity)["plan"]
        return str(self.types("launch", identity, "--plan", plan, "--seeds", str(seeds))["run"])

    def ends(self, run: str, *, code: int = 0) -> dict[str, Any]:
        """Wait for a job and return the row that says how it ended."""
        self.types("wait", run, "--timeout", "120", code=code)
        (started,) = self.rows("started", run=run)
        (ended,) = self.rows("ended", job=started["job"])
        return ended

    def evidence(self, identity: str) -> list[dict[str, Any]]:
        """Have a candidate judged, and return the evaluator's documents of it."""
        self.types("verdict", identity)
        rows = self.rows("evaluated", candidate=identity)
        return [json.loads((self.folder / row["file"]).read_text()) for row in rows]


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    root = tmp_path_factory.mktemp("cheats") / "lab"
    for name, text in {
        "envs/__init__.py": "", "envs/line.py": LINE, "envs/pay.py": PAY, "configs/line.yaml": CONFIG, "rlx.toml": "",
        ".gitignore": "/runs/\n/.rlx/\n",
    }.items():  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for argv in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]):
        subprocess.run(["git", *argv], cwd=root, check=True, capture_output=True)
    before = os.environ.get("RLX_ROOT")
    os.environ["RLX_ROOT"] = str(root)
    found = Agent(root)
    found.types(
        "study", "new", "cheats", "--config", "configs/line.yaml", "--metric", "success_rate",
        "--edit", "envs/pay.py::reward", "--surface", "hyperparameters", "--seeds", "200", "--hours", "4",
        "-s", "metric.seeds=2", "-s", "evaluation.episodes=4", "-s", "budget.per_seed_minutes=0.35",
        "-s", "hardware.disk_gb=0.02", "-s", "automation.stop=[]",
    )  # fmt: skip
    found.types("study", "approve", "--yes", "--by", "tester")
    found.types("study", "baseline")
    yield found
    if before is None:
        del os.environ["RLX_ROOT"]
    else:
        os.environ["RLX_ROOT"] = before


def test_an_edited_evaluator_or_environment_is_out_of_scope(agent: Agent) -> None:
    identity, tree = agent.proposes("an environment that is kinder")
    (tree / "envs" / "line.py").write_text(LINE.replace('"is_success": there', '"is_success": True'))
    (tree / "configs" / "line.yaml").write_text(CONFIG.replace("episodes: 2", "episodes: 1"))
    (tree / "envs" / "pay.py").write_text(PAY + "\n\nimport rlx.evaluate.tally\n")
    told = agent.is_refused(identity)
    assert "SCOPE: envs/line.py" in told
    assert "SCOPE: configs/line.yaml: belongs to the evaluator" in told
    assert "SCOPE: envs/pay.py: it changes outside of `reward`" in told


def test_files_that_act_by_their_name_alone_and_links_out_of_the_tree_are_refused(agent: Agent) -> None:
    identity, tree = agent.proposes("files that nobody looks at")
    for name in ("sitecustomize.py", "usercustomize.py", "conftest.py", "numpy.py", "evil.pth", ".env"):
        (tree / name).write_text("raise SystemExit\n")
    (tree / "envs" / "__pycache__").mkdir(exist_ok=True)
    (tree / "envs" / "pay.py").unlink()
    (tree / "envs" / "pay.py").symlink_to(agent.folder / "ledger.jsonl")
    (tree / "envs" / "mine.py").symlink_to("../../../../../../../runs")
    told = agent.is_refused(identity)
    for name in ("sitecustomize.py", "usercustomize.py", "conftest.py", "numpy.py", "evil.pth", ".env"):
        assert f"SCOPE: {name}: " in told
    assert "envs/pay.py: a link that leaves the tree" in told
    assert "envs/mine.py: a link that leaves the tree" in told


@pytest.mark.parametrize(
    "change",
    ["eval.episodes=1", "env.max_episode_steps=500", "seed=7", "algo.seed=7", "algo.total_timesteps=100000",
     "env.id=CartPole-v1", "env.kwargs.goal=1", "eval.metric=return"],
)  # fmt: skip
def test_a_key_that_measures_lengthens_or_replicates_is_refused(agent: Agent, change: str) -> None:
    before = len(agent.rows("refused", action="propose"))
    told = agent.types("propose", "--kind", "hyperparameter", "--hypothesis", "more", "-s", change, code=4)
    assert change.partition("=")[0] in told["error"]
    assert len(agent.rows("refused", action="propose")) == before + 1


def test_a_reward_of_a_million_is_learnt_from_and_never_counted(agent: Agent) -> None:
    identity = agent.pays("riches", "    return 1e6 if there else 1000.0\n")
    (tree,) = [one for one in (agent.folder / "worktrees").iterdir() if one.name == identity]
    assert "1e6" in (tree / "envs" / "pay.py").read_text()
    run = agent.launches(identity)
    assert agent.ends(run)["outcome"] == "completed"
    seed = agent.root / "runs" / run / "seed_0"
    seed = next(seed.parent.glob("seed_*"))
    forged = {"figures": {"success_rate": 1e6}, "episodes": [{"success": 1, "return": 1e6}] * 4}
    for place in (seed.parent / "eval").glob("*/*.json"):  # what the run says of itself
        place.write_text(json.dumps(forged))
    (seed / "metrics.jsonl").write_text(json.dumps({"step": 256, "eval/success_rate": 1e6}) + "\n")
    (found,) = agent.evidence(identity)
    assert found["level"] == "sealed"
    assert 0 <= found["figures"]["success_rate"] <= 1
    assert all(0 <= episode["return"] <= 1 for episode in found["episodes"])


def test_a_worker_that_is_started_by_hand_refuses_to_train(agent: Agent) -> None:
    run = agent.root / "runs" / "cheats_baseline_001"
    for module in ("rlx.launch.worker", "rlx.launch.supervisor"):
        subprocess.run([sys.executable, "-P", "-m", module, str(run), "0"], capture_output=True, cwd=agent.root)
    assert "no open job" in (run / "logs" / "seed_0.log").read_text()
    assert len(agent.rows("started", run=run.name)) == 1
