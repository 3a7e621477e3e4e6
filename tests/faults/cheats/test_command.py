"""Cheats on a study of a foreign repository, whose own programs train and measure: none of them makes a score."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import wait_until
from tests.faults.cheats.agent import Agent
from tests.faults.lab import commit

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cheats on a command")]
REPOSITORY = Path(__file__).parents[3] / "examples" / "existing_repo"
LEARN = "src/courier/learn.py"
REWARD = "src/courier/reward.py"
PARTS = ("configs", "src", "train.py", "eval.py", "pyproject.toml")
OUT = "import os, pathlib, sys, time\nout = pathlib.Path(sys.argv[sys.argv.index('--out') + 1])\n"
"""How the cheats find the folder that their training may write."""


class Courier(Agent):
    """An agent that may change how is learnt, and with it whatever the training's process does."""

    def learns(self, hypothesis: str, code: str) -> str:
        """Propose a way to learn whose module runs some code when it is imported."""
        identity, tree = self.proposes(hypothesis, kind="code")
        with (tree / LEARN).open("a") as stream:
            stream.write(f"\n\n{code}")
        return identity


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Courier:
    root = tmp_path_factory.mktemp("cheats") / "courier"
    root.mkdir()
    for name in PARTS:
        copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copyfile
        copy(REPOSITORY / name, root / name)
    (root / ".gitignore").write_text("__pycache__/\n/runs/\n/.rlx/\n")
    (root / "rlx.toml").touch()
    commit(root)
    found = Courier(root, task="courier", name="doors")
    found.types(
        "task", "new", "courier", "--mission", "Reach the door more often.", "--path", "src", "--steps", "30000",
        "--train", f"{sys.executable} train.py --seed {{seed}} --out {{out}} --steps {{steps}} {{overrides}}",
        "--eval", f"{sys.executable} eval.py --checkpoint {{checkpoint}} --episodes {{episodes}} "
        "--seed {episode_seed} --out {result}",
        "--metrics", "tensorboard:{out}/tb", "--name", "return=train/return", "--checkpoint", "{out}/policy.npz",
        "--result", "jsonl:{result}", "--result-name", "success", "--override", "{key}={value}",
        "--surface", f"reward={REWARD}", "--surface", "evaluator=eval.py,src/courier/env.py,src/courier/world.py",
    )  # fmt: skip
    found.types(
        "study", "new", "doors", "--metric", "success:max", "--edit", LEARN, "--key", "reward.*", "--seeds", "60",
        "--hours", "2", "-s", "metric.seeds=2", "-s", "evaluation.episodes=4", "-s", "budget.per_seed_minutes=0.4",
        "-s", "hardware.disk_gb=0.02", "-s", "automation.stop=[]",
    )  # fmt: skip
    found.types("study", "approve", "--yes", "--by", "tester")
    found.types("study", "baseline")
    return found


def test_an_edited_eval_and_a_link_out_of_the_tree_are_refused(agent: Courier) -> None:
    identity, tree = agent.proposes("a kinder judge", kind="code")
    (tree / "eval.py").write_text("print('{\"success\": 1.0}')\n")
    (tree / "src" / "courier" / "world.py").write_text("HORIZON = 1\n")
    (tree / LEARN).unlink()
    (tree / LEARN).symlink_to(agent.folder / "ledger.jsonl")
    told = agent.is_refused(identity)
    assert "SCOPE: eval.py: belongs to the evaluator" in told
    assert "SCOPE: src/courier/world.py: belongs to the evaluator" in told
    assert f"{LEARN}: a link that leaves the tree" in told


def test_faked_figures_and_results_are_never_counted(agent: Courier) -> None:
    identity = agent.learns("figures of my own", OUT + """
import json
for name in ("result.json", "eval.json", "metrics.jsonl", "success.json"):
    (out / name).write_text(json.dumps({"step": 30000, "success": 1e6, "return": 1e6}) + "\\n")
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter(str(out / "tb"))
for tag in ("train/return", "Train/success", "success"):
    writer.add_event(Event(step=30000, summary=Summary(value=[Summary.Value(tag=tag, simple_value=1e6)])))
writer.close()
""")  # fmt: skip
    assert agent.ends(agent.launches(identity))["outcome"] == "completed"
    (found,) = agent.evidence(identity)
    assert found["level"] == "pinned"
    assert 0 <= found["figures"]["success"] <= 1
    assert agent.types("study", "verify")["problems"] == []


LINKS = (
    OUT
    + """
import atexit
def link():
    (out / "policy.npz").unlink()
    (out / "policy.npz").symlink_to("/etc/passwd")
atexit.register(link)
"""
)
SAYS = (
    OUT
    + """
import atexit, json
def say():
    (out / "policy.npz").unlink()
    with (out.parent / "events.jsonl").open("a") as stream:
        stream.write(json.dumps({"event": "completed", "time": time.time(), "step": 30000}) + "\\n")
atexit.register(say)
"""
)
FILLS = OUT + "for number in range(8):\n    (out / str(number)).write_bytes(os.urandom(8_000_000))\n"
DAEMON = (
    OUT
    + """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        (out / "child").write_text(str(os.getpid()))
        time.sleep(1000)
    os._exit(0)
"""
)


@pytest.mark.parametrize(
    ("code", "outcome", "says"),
    [
        ("import os\nos._exit(0)\n", "failed", "missing metric: the command ended well"),
        (SAYS, "failed", "policy.npz"),
        (FILLS, "killed", "bytes on disk"),
    ],
    ids=["leaves early", "says it is done", "fills the disk and is gone"],
)
def test_a_training_that_does_not_play_by_the_rules_has_no_score(
    agent: Courier, code: str, outcome: str, says: str
) -> None:
    identity = agent.learns("a short cut", code)
    ended = agent.ends(agent.launches(identity), code=5)
    assert ended["outcome"] == outcome, ended
    assert says in ended["says"]
    assert agent.rows("evaluated", candidate=identity) == []


def test_a_link_in_the_place_of_weights_is_measured_as_what_it_leads_to(agent: Courier) -> None:
    identity = agent.learns("somebody else's file", LINKS)
    assert agent.ends(agent.launches(identity))["outcome"] == "completed"
    (found,) = agent.evidence(identity)
    assert found["failure"]["says"]
    assert found["figures"] == {}
    (row,) = agent.rows("evaluated", candidate=identity)
    assert row["score"] == "NaN"


def test_weights_that_are_no_numbers_have_no_score_or_an_honest_one(agent: Courier) -> None:
    identity = agent.learns("no numbers", """
def learn(settings, weights, *, seed, steps, report):
    report(steps, {"train/return": float("nan")})
    return np.full(policy.size(int(settings["hidden"])), np.nan)
""")  # fmt: skip
    assert agent.ends(agent.launches(identity))["outcome"] == "completed"
    (found,) = agent.evidence(identity)
    assert found.get("failure") or 0 <= found["figures"]["success"] <= 1
    assert agent.study.state().candidates[identity].state != "advanced"


def test_a_child_in_another_session_does_not_outlive_the_training(agent: Courier) -> None:
    identity = agent.learns("somebody who stays", DAEMON)
    run = agent.launches(identity)
    assert agent.ends(run)["outcome"] == "completed"
    (note,) = (agent.root / "runs" / run).glob("seed_*/output/child")
    assert note.read_text()
    wait_until(lambda: not agent.processes(), seconds=10)  # its number is one of its own namespace


def test_sleeping_for_ever_ends_at_the_time_that_the_contract_gives(agent: Courier) -> None:
    identity = agent.learns("patience", "import time\ntime.sleep(1000)\n")
    assert agent.ends(agent.launches(identity), code=5)["outcome"] == "timeout"
    assert agent.rows("evaluated", candidate=identity) == []


def test_a_record_of_modules_that_does_not_read_is_an_objection_and_the_candidate_is_to_be_mended(
    agent: Courier,
) -> None:
    spoil = "(out.parent / 'loaded').mkdir(exist_ok=True)\n(out.parent / 'loaded' / 'x.json').write_text('[')\n"
    identity = agent.learns("a record of my own", OUT + spoil)
    assert agent.ends(agent.launches(identity))["outcome"] == "completed"
    agent.types("decide", identity, code=None)
    (decided,) = agent.rows("decided", candidate=identity)
    assert "loaded/x.json does not list the loaded modules" in decided["says"]
    assert agent.study.state().candidates[identity].state == "debug"
    assert agent.types("next", "--full")["command"] != f"rlx decide {identity}"
