"""The commands that say why, on run folders and on real tiny trainings."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from rlx import files
from rlx.diagnose.rules import NAMES
from tests.conftest import Project

COMMANDS = ("analyze", "diagnose", "explain-metrics", "suggest", "summarize")
FLAT = [20.0 + (index * 7) % 5 for index in range(40)]
RAMP = [float(index * 10) for index in range(40)]
Cli = Callable[..., Any]
SCRIPT = """
import rlx
run = rlx.start({"run_name": "mine"})
for i in range(30):
    run.log(i * 10, {"rollout/return_mean": float(i)})
run.finish()
"""


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("state", ["completed", "running", "lost", "prepared", "failed"])
def test_every_command_answers_in_text_and_json(cli: Cli, make_run: Any, command: str, state: str) -> None:
    make_run("one", seeds={0: RAMP, 1: FLAT}, state=state, reason="it broke")
    text = cli(command, "one_001")
    assert text.code == 0
    assert text.err == ""
    data = cli(command, "one_001", "--json").data
    assert data["schema"] == 1
    assert data["run"] == "one_001"


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_run_is_not_found(cli: Cli, make_run: Any, command: str) -> None:
    make_run("one")
    answer = cli(command, "two_001")
    assert answer.code == 3
    assert "hint:" in answer.err


@pytest.mark.parametrize("command", COMMANDS)
def test_torn_and_foreign_metrics_get_an_answer_that_names_them(cli: Cli, make_run: Any, command: str) -> None:
    run = make_run("one", seeds={0: RAMP})
    path = run.path / "seed_0" / "metrics.jsonl"
    path.write_bytes(b"step,return\n" + path.read_bytes()[:-10])
    answer = cli(command, "one_001")
    assert answer.code == 0
    assert "metrics.jsonl" in answer.out


def test_findings_come_with_evidence_and_what_to_try(cli: Cli, make_run: Any) -> None:
    make_run("flat", env="Own-v0", seeds={0: FLAT, 1: FLAT})
    data = cli("diagnose", "flat_001", "--json").data
    found = next(one for one in data["findings"] if one["rule"] == "no_learning")
    assert found["severity"] == "high"
    assert found["evidence"][0]["seeds"] == [0]
    assert found["try"]
    assert set(data["silent"]) | set(data["blind"]) | {one["rule"] for one in data["findings"]} == set(NAMES)
    text = cli("diagnose", "flat_001").out
    assert "1. no_learning (high)" in text
    assert "could not look" in text
    assert "next: rlx suggest flat_001" in text


def test_all_names_the_rules_that_could_not_look_and_why(cli: Cli, make_run: Any) -> None:
    make_run("flat", seeds={0: FLAT})
    assert (
        "could not look (no train/explained_variance or train/critic_loss): critic_uninformative"
        in cli("diagnose", "flat_001", "--all").out
    )


def test_rules_are_described_with_limit_source_and_blind_spot(cli: Cli) -> None:
    data = cli("diagnose", "--rules", "--json").data["rules"]
    assert [rule["id"] for rule in data] == list(NAMES)
    assert "median train/approx_kl at most 0.03" in cli("diagnose", "--rules").out


def test_diagnose_without_a_run_says_how(cli: Cli) -> None:
    answer = cli("diagnose")
    assert answer.code == 2
    assert "rlx diagnose RUN" in answer.err


def test_analysis_draws_the_seeds_on_one_scale(cli: Cli, make_run: Any) -> None:
    make_run("one", env="Own-v0", seeds={0: RAMP, 1: RAMP})
    answer = cli("analyze", "one_001")
    assert "still rising on 2 of 2 seeds: return" in answer.out
    assert "▁" in answer.out
    assert cli("analyze", "one_001", "--json").data["answer"] == "still rising"


def test_unknown_metrics_are_listed_as_unknown(cli: Cli, make_run: Any) -> None:
    run = make_run("one", seeds={0: RAMP})
    files.append_line(run.path / "seed_0" / "metrics.jsonl", files.encode({"step": 9000, "my/own": 3.0}))
    assert "unknown to rlx: my/own" in cli("explain-metrics", "one_001").out
    only = cli("explain-metrics", "one_001", "--metric", "loss", "--json").data["metrics"]
    assert [one["metric"] for one in only] == ["train/loss"]
    assert cli("explain-metrics", "one_001", "--metric", "nothing").code == 3


def test_a_project_is_summarised_and_since_leaves_out_the_old(cli: Cli, make_run: Any) -> None:
    make_run("good", env="Own-v0", seeds={0: RAMP})
    old = make_run("flat", env="Own-v0", seeds={0: FLAT})
    data = cli("summarize", "--json").data
    assert data["total"] == 2
    assert data["health"] == {"no failure seen": 1, "needs attention": 1}
    assert "next: rlx diagnose flat_001" in cli("summarize").out
    document = files.read_json(old.path / "metadata.json")
    files.write_json(old.path / "metadata.json", {**document, "created": 1.0})
    assert cli("summarize", "--since", "2h", "--json").data["total"] == 1
    assert cli("summarize", "--since", "1970-01-01", "--json").data["total"] in (1, 2)
    assert cli("summarize", "--since", "soon").code == 2
    assert cli("summarize", "--since", "2026-13-45").code == 2
    assert cli("summarize", "good_001", "--since", "2h").code == 2


def test_an_empty_project_has_no_runs(cli: Cli) -> None:
    assert "no runs" in cli("summarize").out


def commands_of(project: Project, run: str) -> list[str]:
    return [one["command"] for one in json.loads(project.rlx("suggest", run, "--json").stdout)["commands"]]


def run_all(project: Project, lines: list[str]) -> None:
    """Run each command; of several trainings of one config, train the first and check the settings of the others.

    RLX_SWEEP=full trains all of them.
    """
    trained: set[str] = set()
    for line in dict.fromkeys(lines):
        words = shlex.split(line)[1:]
        is_repeat = words[0] == "train" and words[1] in trained and os.environ.get("RLX_SWEEP") != "full"
        if is_repeat and not words[1].startswith("-"):
            settings = [word for at, word in enumerate(words) if "-s" in (word, words[at - 1])]
            project.rlx("config", "check", words[1], *settings)
            continue
        if words[0] == "train" and words[1].startswith("catalog:"):
            words += ["-s", "algo.total_timesteps=512", "-s", "eval.report_episodes=2", "-s", "eval.episodes=2"]
        project.rlx(*words, timeout=900)
        trained.add(words[1])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_command_suggested_for_real_trainings_works(project: Project) -> None:
    config = project.config("still", algo={"learning_rate": 1e-9, "total_timesteps": 1024})
    project.rlx("train", config, "--seeds", "1")
    wild = project.config("wild", algo={"learning_rate": 0.5, "total_timesteps": 1024, "update_epochs": 10})
    project.rlx("train", wild, "--seeds", "1", code=None)
    lines = commands_of(project, "still_001") + commands_of(project, "wild_001")
    assert any("learning_rate" in line for line in lines)
    run_all(project, lines)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_command_suggested_for_an_off_policy_training_works(project: Project) -> None:
    algo = {"name": "dqn", "total_timesteps": 400, "buffer_size": 64, "batch_size": 32, "learning_starts": 200,
            "exploration_final": 0.9, "target_update_every": 300, "train_every": 4}  # fmt: skip
    path = project.write("configs/dqn.yaml", json.dumps({"run_name": "dqn", "env": {"id": "CartPole-v1"}, "algo": algo,
                         "eval": {"episodes": 2, "report_episodes": 2}}))  # fmt: skip
    project.rlx("train", str(path), "--seeds", "1")
    found = [one["rule"] for one in json.loads(project.rlx("diagnose", "dqn_001", "--json").stdout)["findings"]]
    assert "exploration_never_annealed" in found
    assert "replay_too_small" in found
    run_all(project, commands_of(project, "dqn_001"))


def test_a_script_without_evaluations_gets_a_partial_answer(project: Project) -> None:
    project.write("mine.py", SCRIPT)
    subprocess.run([sys.executable, "mine.py"], cwd=project.root, env=project.environment(), check=True)
    answer = json.loads(project.rlx("analyze", "mine_001", "--json").stdout)
    assert answer["answer"] == "still rising"
    assert any("no evaluation: in the script" in what for what in answer["missing"])
    run_all(project, commands_of(project, "mine_001"))
