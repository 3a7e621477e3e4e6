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


def test_a_job_reaches_neither_ledger_nor_seeds_nor_the_identity_of_its_run(agent: Agent) -> None:
    identity = agent.pays("what lies about", f"""{LATER}\
        import json, os, pathlib
        run = pathlib.Path(os.environ["HOME"]).parents[1]
        root = pathlib.Path({str(agent.root)!r})
        study = root / ".rlx/tasks/line/studies/cheats"
        told = {{}}
        def attempt(name, what):
            try:
                what()
                told[name] = "done"
            except OSError as error:
                told[name] = type(error).__name__
        attempt("read the ledger", lambda: (study / "ledger.jsonl").read_bytes())
        attempt("write the ledger", lambda: (study / "ledger.jsonl").open("ab"))
        attempt("read the evidence", lambda: os.listdir(study / "evidence"))
        attempt("write the contract", lambda: (study / "contract.yaml").open("ab"))
        attempt("write the evaluator", lambda: (study / "evaluator/envs/line.py").open("ab"))
        attempt("read another run", lambda: (root / "runs/cheats_baseline_001/metadata.json").read_bytes())
        attempt("write the worktree", lambda: pathlib.Path("envs/line.py").open("ab"))
        attempt("write the identity", lambda: (run / "metadata.json").open("ab"))
        attempt("write the config", lambda: (run / "config_snapshot.yaml").open("ab"))
        attempt("replace the log", lambda: (run / "logs/seed_0.log").rename(run / "logs/away"))
        attempt("write another seed", lambda: (run / "seed_99").mkdir())
        seed = next(run.glob("seed_*"))
        os.mkfifo(seed / "attempts.fifo")
        (seed / "away").symlink_to(study / "ledger.jsonl")
        (seed / "told.json").write_text(json.dumps(told))
""")  # fmt: skip
    ledger = agent.folder / "ledger.jsonl"
    run = agent.launches(identity)
    assert agent.ends(run)["outcome"] == "completed"
    (seed,) = (agent.root / "runs" / run).glob("seed_*")
    told = json.loads((seed / "told.json").read_text())
    assert len(told) == 11
    assert set(told.values()) == {"PermissionError"}, told
    assert not (seed / "attempts.fifo").exists()
    assert not (seed / "away").is_symlink()
    assert ledger.is_file()
    assert agent.types("study", "verify")["problems"] == []


@pytest.mark.parametrize(
    ("name", "body", "outcome", "says"),
    [
        ("leaves early", "        import os\n        os._exit(0)\n", "failed", "exited 0"),
        (
            "says it is done",
            """\
        import json, os, pathlib, time
        seed = next(pathlib.Path(os.environ["HOME"]).parents[1].glob("seed_*"))
        with (seed / "events.jsonl").open("a") as stream:
            stream.write(json.dumps({"event": "completed", "time": time.time(), "step": 256}) + "\\n")
        os._exit(0)
""",
            "failed",
            "left no policy",
        ),
        (
            "fills the disk",
            """\
        import os, pathlib, time
        home = pathlib.Path(os.environ["HOME"])
        for number in range(8):
            (home / str(number)).write_bytes(os.urandom(8_000_000))
        time.sleep(60)
""",
            "killed",
            "bytes on disk",
        ),
    ],
)
def test_a_training_that_does_not_play_by_the_rules_has_no_score(
    agent: Agent, name: str, body: str, outcome: str, says: str
) -> None:
    identity = agent.pays(name, LATER + body)
    is_said_done = name == "says it is done"  # by the run's own events; the ledger knows better
    ended = agent.ends(agent.launches(identity), code=0 if is_said_done else 5)
    assert ended["outcome"] == outcome, ended
    assert says in ended["says"].lower()
    assert agent.rows("evaluated", candidate=identity) == []


def test_rewards_that_are_no_numbers_end_in_no_score_or_in_an_honest_one(agent: Agent) -> None:
    identity = agent.pays("no numbers", "    if at > 3:\n        return float('nan')\n")
    plan = agent.types("check", "candidate", identity)["plan"]
    run = agent.types("launch", identity, "--plan", plan, "--seeds", "1")["run"]
    agent._called(["wait", run, "--timeout", "120"])
    (started,) = agent.rows("started", run=run)
    (ended,) = agent.rows("ended", job=started["job"])
    assert ended["outcome"] in ("completed", "failed")
    for found in agent.evidence(identity) if ended["outcome"] == "completed" else []:
        assert found.get("failure") or 0 <= found["figures"]["success_rate"] <= 1


def test_one_that_sleeps_for_ever_and_leaves_a_child_is_killed_with_it(agent: Agent) -> None:
    identity = agent.pays("patience", f"""{LATER}\
        import os, pathlib, time
        note = next(pathlib.Path(os.environ["HOME"]).parents[1].glob("seed_*")) / "child"
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                note.write_text(str(os.getpid()))
                time.sleep(1000)
            os._exit(0)
        time.sleep(1000)
""")  # fmt: skip
    run = agent.launches(identity)
    ended = agent.ends(run, code=5)
    assert ended["outcome"] == "timeout"
    (note,) = (agent.root / "runs" / run).glob("seed_*/child")
    assert not Path(f"/proc/{note.read_text()}").exists()
    assert agent.rows("evaluated", candidate=identity) == []


def test_a_worktree_that_is_edited_after_its_check_is_another_plan(agent: Agent) -> None:
    identity = agent.pays("one thing", "    at = at * 2\n")
    plan = agent.types("check", "candidate", identity)["plan"]
    path = agent.folder / "worktrees" / identity / "envs" / "line.py"
    path.write_text(path.read_text().replace(">= 6", ">= 0"))
    told = agent.types("launch", identity, "--plan", plan, code=4)
    assert {"PLAN", "SCOPE"} <= {one["code"] for one in told["reasons"]}
    assert len(agent.rows("refused", action="launch", candidate=identity)) == 1


def test_a_contract_that_is_rewritten_after_its_approval_launches_nothing(agent: Agent) -> None:
    identity = agent.pays("another contract", "    at = at * 3\n")
    plan = agent.types("check", "candidate", identity)["plan"]
    contract = agent.folder / "contract.yaml"
    before = contract.read_text()
    contract.write_text(before.replace("alpha: 0.05", "alpha: 0.2"))
    try:
        assert contract.read_text() != before
        told = agent.types("launch", identity, "--plan", plan, code=4)
    finally:
        contract.write_text(before)
    assert {"APPROVAL_VOID", "PLAN"} <= {one["code"] for one in told["reasons"]}
    assert len(agent.rows("refused", action="launch", candidate=identity)) == 1


def test_a_row_that_is_written_into_the_ledger_by_hand_stops_everything(agent: Agent) -> None:
    ledger = agent.folder / "ledger.jsonl"
    before = ledger.read_bytes()
    last = json.loads(before.splitlines()[-1])
    body = json.dumps({"id": "x", "time": 0.0, "event": "decided", "candidate": "c001", "decision": "confirmed"})
    ledger.write_bytes(before + json.dumps({"prev": last["hash"], "body": body, "hash": "0" * 64}).encode() + b"\n")
    try:
        told = agent.types("launch", "baseline", "--phase", "baseline", code=6)
    finally:
        ledger.write_bytes(before)
    assert "ledger.jsonl" in told["error"]


def test_nobody_approves_above_the_level_that_can_be_shown(agent: Agent) -> None:
    """The last one: it voids the approval that the others live on."""
    agent.types("study", "amend", "-s", "automation.approval=signed")
    told = agent.types("study", "approve", "--yes", "--by", "the boss", code=4)
    assert "signed" in told["error"]
    assert agent.rows("refused", action="approve")
    refused = agent.types("launch", "baseline", "--phase", "baseline", code=4)
    assert {"NOT_APPROVED", "APPROVAL_VOID"} & {one["code"] for one in refused["reasons"]}
