"""Cheats on a whole study, typed as an agent would: each is refused with its reason in the ledger, or gains nothing."""

from __future__ import annotations

import json
import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import wait_until
from tests.faults.cheats.agent import Agent
from tests.faults.lab import LINE, PAY

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("cheats on a study")]
CONFIG = """\
env: {id: "envs/line.py:Line", num_envs: 2}
algo: {name: ppo, total_timesteps: 256, rollout_steps: 32, batch_size: 32, update_epochs: 1, learning_rate: 1.0e-4}
policy: {hidden_sizes: [8]}
eval: {every: 256, episodes: 2, metric: success_rate}
"""
LATER = """\
    reward.calls = getattr(reward, "calls", 0) + 1
    if reward.calls == 150:
"""
"""Where a cheat begins that lets every check before the training pass."""


class Walker(Agent):
    """An agent that may change what a step on the line pays."""

    def pays(self, hypothesis: str, body: str) -> str:
        """Propose another body of the reward, which is all that the scope opens."""
        identity, tree = self.proposes(hypothesis)
        (tree / "envs" / "pay.py").write_text(PAY.replace("    return", f"{body}    return", 1))
        return identity

    def is_invalid(self, identity: str) -> list[str]:
        """Have a candidate decided whose evidence must not count; return the objections, which are one new row.

        A person lets the study go on where that was one too many.
        """
        told = self.types("decide", identity)
        (row,) = self.rows("refused", candidate=identity, action="decide")
        assert {one["code"] for one in row["reasons"]} == {"EVIDENCE"}
        assert told["verdict"] == "invalid"
        if told["study_decision"] == "escalate":
            self.types("study", "approve", "--yes", "--by", "tester", "--go-on")
        return list(told["objections"])


def said_by(run: Path, word: str) -> str:
    """Return the rest of the line that a run's environment printed into its log after a word."""
    lines = (run / "logs" / "seed_0.log").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith(f"{word} ")]
    return line.removeprefix(f"{word} ")


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Walker:
    found = Walker(tmp_path_factory.mktemp("cheats") / "lab", name="cheats")
    found.commits(CONFIG)
    found.types(
        "study", "new", "cheats", "--config", "configs/line.yaml", "--metric", "success_rate",
        "--edit", "envs/pay.py::reward", "--surface", "hyperparameters", "--seeds", "200", "--hours", "4",
        "-s", "metric.seeds=2", "-s", "evaluation.episodes=4", "-s", "budget.per_seed_minutes=0.35",
        "-s", "hardware.disk_gb=0.02", "-s", "automation.stop=[]",
    )  # fmt: skip
    found.types("study", "approve", "--yes", "--by", "tester")
    found.types("study", "baseline")
    return found


def test_an_edited_evaluator_or_environment_is_out_of_scope(agent: Walker) -> None:
    identity, tree = agent.proposes("an environment that is kinder")
    (tree / "envs" / "line.py").write_text(LINE.replace('"is_success": there', '"is_success": True'))
    (tree / "configs" / "line.yaml").write_text(CONFIG.replace("episodes: 2", "episodes: 1"))
    (tree / "envs" / "pay.py").write_text(PAY + "\n\nimport rlx.evaluate.episode_metrics\n")
    told = agent.is_refused(identity)
    assert "SCOPE: envs/line.py" in told
    assert "SCOPE: configs/line.yaml: belongs to the evaluator" in told
    assert "SCOPE: envs/pay.py: it changes outside of `reward`" in told


def test_a_pipe_and_a_very_large_file_in_a_worktree_are_refused_by_name(agent: Walker) -> None:
    identity, tree = agent.proposes("what no patch can hold")
    os.mkfifo(tree / "envs" / "pipe")
    with (tree / "envs" / "weights.bin").open("wb") as stream:
        stream.truncate(40 * 2**20)
    told = agent.is_refused(identity)
    assert "'envs/pipe' is not a regular file: it cannot be part of a patch" in told
    assert "'envs/weights.bin' is larger than 32 MB: it cannot be part of a patch" in told


def test_files_that_act_by_their_name_alone_and_links_out_of_the_tree_are_refused(agent: Walker) -> None:
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
def test_a_key_that_measures_lengthens_or_replicates_is_refused(agent: Walker, change: str) -> None:
    before = len(agent.rows("refused", action="propose"))
    told = agent.types("propose", "--kind", "hyperparameter", "--hypothesis", "more", "-s", change, code=4)
    assert change.partition("=")[0] in told["error"]
    assert len(agent.rows("refused", action="propose")) == before + 1


def test_a_rollout_that_is_longer_than_the_whole_training_is_refused(agent: Walker) -> None:
    """Rollouts count whole: eight thousand steps would be trained where the contract says 256."""
    longer = ("-s", "algo.rollout_steps=4096", "-s", "algo.batch_size=64")
    told = agent.types("propose", "--kind", "hyperparameter", "--hypothesis", "longer", *longer)
    assert "VALUE: it would train 8,192 steps, the baseline 256" in agent.is_refused(told["candidate"])


def test_a_key_that_names_code_to_run_is_refused_before_it_is_trained(agent: Walker) -> None:
    told = agent.types("propose", "--kind", "hyperparameter", "--hypothesis", "mine", "-s", "policy.type=os:system")
    says = "VALUE: it names code that the baseline does not run, so that rlx could not measure it: `os:system`"
    assert says in agent.is_refused(told["candidate"])


def test_a_reward_of_a_million_is_learnt_from_and_never_counted(agent: Walker) -> None:
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


def test_a_worker_that_is_started_by_hand_refuses_to_train(agent: Walker) -> None:
    run = agent.root / "runs" / "cheats_baseline_001"
    for module in ("rlx.launch.worker", "rlx.launch.supervisor"):
        subprocess.run([sys.executable, "-P", "-m", module, str(run), "0"], capture_output=True, cwd=agent.root)
    assert "no open job" in (run / "logs" / "seed_0.log").read_text()
    assert len(agent.rows("started", run=run.name)) == 1


def test_a_job_reaches_neither_ledger_nor_seeds_nor_the_identity_of_its_run(agent: Walker) -> None:
    identity = agent.pays("what lies about", f"""{LATER}\
        import json, os, pathlib
        root = pathlib.Path({str(agent.root)!r})
        run = pathlib.Path(os.environ["HOME"]).parents[3]
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
        attempt("read its own weights", lambda: os.listdir(run / "seed_0" / "checkpoints"))
        attempt("write its own metrics", lambda: (run / "seed_0" / "metrics.jsonl").open("ab"))
        attempt("leave a pipe to its seed", lambda: os.mkfifo(run / "seed_0" / "attempts.fifo"))
        attempt("leave a link in its seed", lambda: (run / "seed_0" / "away").symlink_to(study / "ledger.jsonl"))
        print("told", json.dumps(told), flush=True)
""")  # fmt: skip
    ledger = agent.folder / "ledger.jsonl"
    run = agent.root / "runs" / agent.launches(identity)
    assert agent.ends(run.name)["outcome"] == "completed"
    (seed,) = run.glob("seed_*")
    told = json.loads(said_by(run, "told"))
    assert len(told) == 15
    assert set(told.values()) <= {"PermissionError", "OSError", "FileNotFoundError"}, told
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
        try:
            with (pathlib.Path(os.environ["HOME"]).parents[3] / "seed_0" / "events.jsonl").open("a") as stream:
                stream.write(json.dumps({"event": "completed", "time": time.time(), "step": 256}) + "\\n")
        except OSError:
            os._exit(7)
        os._exit(0)
""",
            "failed",
            "exited 7",
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
        (
            "fills the disk and is gone",
            """\
        import os, pathlib
        home = pathlib.Path(os.environ["HOME"])
        for number in range(8):
            (home / str(number)).write_bytes(os.urandom(8_000_000))
""",
            "killed",
            "bytes on disk",
        ),
    ],
)
def test_a_training_that_does_not_play_by_the_rules_has_no_score(
    agent: Walker, name: str, body: str, outcome: str, says: str
) -> None:
    identity = agent.pays(name, LATER + body)
    ended = agent.ends(agent.launches(identity), code=5)
    assert ended["outcome"] == outcome, ended
    assert says in ended["says"].lower()
    assert agent.rows("evaluated", candidate=identity) == []


def test_rewards_that_are_no_numbers_end_in_no_score_or_in_an_honest_one(agent: Walker) -> None:
    identity = agent.pays("no numbers", "    if at > 3:\n        return float('nan')\n")
    plan = agent.types("check", "candidate", identity)["plan"]
    run = agent.types("launch", identity, "--plan", plan, "--seeds", "1")["run"]
    agent.types("wait", run, "--timeout", "120", code=None)
    (started,) = agent.rows("started", run=run)
    (ended,) = agent.rows("ended", job=started["job"])
    assert ended["outcome"] in ("completed", "failed")
    for found in agent.evidence(identity) if ended["outcome"] == "completed" else []:
        assert found.get("failure") or 0 <= found["figures"]["success_rate"] <= 1


def test_one_that_sleeps_for_ever_and_leaves_a_child_is_killed_with_it(agent: Walker) -> None:
    identity = agent.pays("patience", f"""{LATER}\
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                print("child", os.readlink("/proc/self"), flush=True)
                time.sleep(1000)
            os._exit(0)
        time.sleep(1000)
""")  # fmt: skip
    run = agent.launches(identity)
    ended = agent.ends(run, code=5)
    assert ended["outcome"] == "timeout"
    assert said_by(agent.root / "runs" / run, "child")
    wait_until(lambda: not agent.processes(), seconds=10)  # its number is one of its own namespace
    assert agent.rows("evaluated", candidate=identity) == []


def test_what_the_agents_shell_puts_on_pythons_path_reaches_no_job(agent: Walker, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs" / "__init__.py").write_text("raise SystemExit('not the project')")
    watch = f"import os, sys\nopen({str(canary)!r}, 'a').write(' '.join(sys.orig_argv) + chr(10))\n"
    for name in ("sitecustomize.py", "usercustomize.py"):
        (tmp_path / name).write_text(watch)
    identity = agent.pays("a path of my own", "    at = at * 4\n")
    plan = agent.types("check", "candidate", identity)["plan"]
    done = subprocess.run(
        agent.argv("launch", identity, "--plan", plan, "--seeds", "1"), cwd=agent.root, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, env={**agent.environment, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert agent.ends(json.loads(done.stdout)["run"])["outcome"] == "completed"
    ran = canary.read_text().splitlines()
    assert ran
    assert all(" launch " in line for line in ran), ran
    (found,) = agent.evidence(identity)
    assert found["level"] == "sealed"


def test_forged_compiled_code_is_refused_before_and_after_the_check(agent: Walker, tmp_path: Path) -> None:
    identity = agent.pays("another cache", "    at = at * 5\n")
    plan = agent.types("check", "candidate", identity)["plan"]
    (tmp_path / "pay.py").write_text(PAY.replace("0.0", "1e6"))
    cache = agent.study.worktree(identity) / "envs" / "__pycache__" / f"pay.{sys.implementation.cache_tag}.pyc"
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(tmp_path / "pay.py"), cfile=str(cache), dfile="envs/pay.py", invalidation_mode=mode)
    told = agent.types("launch", identity, "--plan", plan, code=4)
    assert {"PLAN", "SCOPE"} <= {one["code"] for one in told["reasons"]}
    assert f"{cache.name}: a candidate cannot have files there" in agent.is_refused(identity)


@pytest.mark.parametrize(
    "body", ["    import random\n    random.seed(7)\n", "    seed = 11  # luckier\n", "    numpy.random.seed(3)\n"]
)
def test_code_that_only_seeds_anew_is_refused(agent: Walker, body: str) -> None:
    assert "only the seed changes (`envs/pay.py`)" in agent.is_refused(agent.pays("luck", body))


def test_a_worktree_that_is_edited_after_its_check_is_another_plan(agent: Walker) -> None:
    identity = agent.pays("one thing", "    at = at * 2\n")
    plan = agent.types("check", "candidate", identity)["plan"]
    path = agent.folder / "worktrees" / identity / "envs" / "line.py"
    path.write_text(path.read_text().replace(">= 6", ">= 0"))
    told = agent.types("launch", identity, "--plan", plan, code=4)
    assert {"PLAN", "SCOPE"} <= {one["code"] for one in told["reasons"]}
    assert len(agent.rows("refused", action="launch", candidate=identity)) == 1


SLOWLY = "    import time\n    time.sleep(0.005)\n"


def test_a_worktree_that_is_edited_while_it_trains_changes_nothing_of_what_runs(agent: Walker) -> None:
    identity = agent.pays("slowly", SLOWLY)
    run = agent.launches(identity)
    path = agent.folder / "worktrees" / identity / "envs" / "pay.py"
    path.write_text("raise SystemExit(9)\n")
    assert agent.ends(run)["outcome"] == "completed"
    assert agent.types("verdict", identity)["objections"] == []


@pytest.mark.parametrize("is_put_back", [True, False])
def test_a_tree_that_is_edited_while_it_trains_makes_evidence_invalid(agent: Walker, is_put_back: bool) -> None:
    identity = agent.pays(f"slower {is_put_back}", SLOWLY.replace("0.005", "0.006" if is_put_back else "0.007"))
    run = agent.launches(identity)
    tree = agent.root / json.loads((agent.root / "runs" / run / "metadata.json").read_text())["lineage"]["worktree"]
    checked = (tree / "envs" / "pay.py").read_text()
    (tree / "envs" / "pay.py").write_text(checked + "# another\n")
    agent.ends(run)
    if is_put_back:
        (tree / "envs" / "pay.py").write_text(checked)
    told = agent.is_invalid(identity)
    says = f"{run}: envs.pay ran from another envs/pay.py than was checked" if is_put_back else (
        f"the code that {run} ran changed after it was launched")  # fmt: skip
    assert told == [says]


def test_a_run_that_was_made_another_is_no_evidence(agent: Walker) -> None:
    identity = agent.pays("another run", "    at = at - 17\n")
    run = agent.launches(identity)
    agent.ends(run)
    path = agent.root / "runs" / run / "metadata.json"
    before = path.read_text()
    path.write_text(before.replace('"trial"', '"smoke"'))
    assert agent.is_invalid(identity) == [f"the identity of {run} changed after it was launched"]
    told = agent.types("study", "verify", code=6)["problems"]
    path.write_text(before)
    assert told == [f"{run}/metadata.json is not what the run was made with"]


@pytest.mark.parametrize("number", ["SIGKILL", "SIGTERM", "SIGSEGV"])
def test_a_seed_that_ends_its_own_worker_has_failed_and_gets_no_second_try(agent: Walker, number: str) -> None:
    identity = agent.pays(f"{number} for what looks bad", f"""{LATER}\
        import os, signal
        os.kill(os.getpid(), signal.{number})
""")  # fmt: skip
    ended = agent.ends(agent.launches(identity), code=5)
    (seed,) = ended["seeds"]
    assert (ended["outcome"], ended["seeds"]) == ("failed", {seed: "failed"})
    assert number in ended["says"]
    job = agent.study.state().jobs[ended["job"]]
    assert (job.again, job.counted_seeds) == (frozenset(), (int(seed),))
    assert [one["code"] for one in agent.types("check", "candidate", identity, code=4)["reasons"]] == ["UNCHANGED"]


def test_verdicts_and_decisions_at_the_same_time_measure_once_and_agree(agent: Walker) -> None:
    identity = agent.pays("many judges", "    at = at * 9\n")
    agent.ends(agent.launches(identity, seeds=3))
    asked = [agent.argv(word, identity) for word in ("verdict", "decide", "decide")]
    judges = [
        subprocess.Popen(argv, cwd=agent.root, env=agent.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for argv in asked
    ]
    told = [(judge.communicate(), judge.returncode) for judge in judges]
    assert [code for _, code in told] == [0, 0, 0], told
    assert len({json.loads(out)["p"] for (out, _), _ in told}) == 1
    assert sum(err.count(b"measuring") for (_, err), _ in told) == 1
    assert len(agent.rows("evaluated", candidate=identity)) == 3
    assert len(agent.rows("decided", candidate=identity)) == 1
    assert agent.types("study", "verify")["problems"] == []


def test_a_contract_that_is_rewritten_after_its_approval_launches_nothing(agent: Walker) -> None:
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


def test_a_row_that_is_written_into_the_ledger_by_hand_stops_everything(agent: Walker) -> None:
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


def lists_another_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make two keys, and list one of them as a signer."""
    for name in ("mine", "theirs"):
        keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
        subprocess.run(keygen, check=True, capture_output=True)
    (folder / "rlx").mkdir()
    (folder / "rlx" / "signers").write_text(f"boss {(folder / 'theirs.pub').read_text()}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))


def test_nobody_approves_above_the_level_that_can_be_shown(
    agent: Walker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last one: it voids the approval that the others live on."""
    agent.types("study", "amend", "-s", "automation.approval=signed")
    told = agent.types("study", "approve", "--yes", "--by", "the boss", code=4)
    assert "signed" in told["error"]
    assert agent.rows("refused", action="approve")
    lists_another_key(tmp_path, monkeypatch)
    told = agent.types("study", "approve", "--yes", "--key", str(tmp_path / "mine"), code=4)
    assert "sign" in told["error"]
    assert len(agent.rows("refused", action="approve")) == 2
    refused = agent.types("launch", "baseline", "--phase", "baseline", code=4)
    assert {"NOT_APPROVED", "APPROVAL_VOID"} & {one["code"] for one in refused["reasons"]}
