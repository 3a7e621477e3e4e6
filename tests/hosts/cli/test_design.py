"""`cards`, `recommend`, `spec`, `check spec` and `docs --run`: a cold start reaches a checked spec and a config."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from rlx.config.load import read

Cli = Callable[..., Any]
BROKEN = """
import gymnasium as gym


class Broken(gym.Env):
    observation_space = gym.spaces.Discrete(2)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        raise RuntimeError("no simulator")
"""
VALVE = """
import gymnasium as gym
import numpy as np


class Valve(gym.Env):
    \"\"\"Keep the level of a tank near its target with one valve.\"\"\"

    observation_space = gym.spaces.Box(-2, 2, (2,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.level, self.target = self.np_random.uniform(-1, 1, 2)
        self.steps = 0
        return np.array([self.level, self.target], np.float32), {}

    def step(self, action):
        self.steps += 1
        self.level = float(np.clip(self.level + 0.1 * np.clip(action[0], -1, 1), -2, 2))
        seen = np.array([self.level, self.target], np.float32)
        return seen, -abs(self.level - self.target), False, self.steps >= 50, {}
"""
FLAT = [20.0 + (index * 7) % 5 for index in range(40)]


def test_cards_are_found_by_words_and_by_a_task(cli: Cli) -> None:
    data = cli("cards", "reward", "hacking", "--json").data
    assert data["cards"][0]["id"] == "reward-hacking"
    assert data["cards"][0]["sources"][0].startswith("Skalse")
    data = cli("cards", "--for", "a quadruped on rough terrain", "--json").data
    assert "leg-terrain-curriculum" not in [card["id"] for card in data["cards"]]  # the curriculum is not known
    assert "leg-joint-targets" in [card["id"] for card in data["cards"]]
    assert cli("cards").code == 0
    assert "critic-twin" in cli("cards", "critic-twin").out


def test_cards_for_a_run_follow_its_findings(cli: Cli, make_run: Any) -> None:
    make_run("one", seeds={0: FLAT}, state="failed", reason="it broke")
    data = cli("cards", "--for", "one_001", "--json").data
    assert data["kind"] == "run"
    assert "fail-crash" in [card["id"] for card in data["cards"]]


def test_bad_input_has_a_hint_that_works(cli: Cli) -> None:
    answer = cli("cards", "xylophone")
    assert answer.code == 3
    assert "hint: rlx cards" in answer.err
    answer = cli("recommend", "NoSuchEnv-v0")
    assert answer.code == 3
    assert "hint:" in answer.err
    for command in (["recommend", ""], ["spec", "new", "--env", " "], ["check", "env", ""]):
        assert cli(*command).code == 2
    answer = cli("check", "spec", "missing.yaml")
    assert answer.code == 3
    answer = cli("docs", "setting-up-experiment-tracking", "--run")
    assert answer.code == 2
    assert cli("docs", "--run").code == 2
    assert cli("docs", "gaussian-actors").code == 3


def test_an_environment_that_raises_is_named_with_its_line(cli: Cli) -> None:
    Path("broken.py").write_text(BROKEN)
    for command in (["recommend", "broken.py:Broken"], ["spec", "new", "--env", "broken.py:Broken"]):
        answer = cli(*command)
        assert answer.code == 1
        assert "broken.py:Broken cannot be played: reset raised broken.py:10: RuntimeError: no simulator" in answer.err
        assert "rlx check env broken.py:Broken" in answer.err
    assert not Path("spec.yaml").exists()


def test_a_spec_with_an_unknown_key_names_line_and_meaning(cli: Cli) -> None:
    Path("spec.yaml").write_text("env: CartPole-v1\nmdp:\n  discont: 0.9\n")
    answer = cli("check", "spec")
    assert answer.code == 2
    assert "spec.yaml:3" in answer.err
    assert "did you mean `discount`?" in answer.err


def test_a_topic_prints_its_cards_and_runs_its_recipe(cli: Cli) -> None:
    data = cli("docs", "configuring-distributed-rollouts", "--json").data
    assert "batch-divides" in data["cards"]
    run = cli("docs", "batch-calculator", "--run", "--json")
    assert run.code == 0
    assert run.data["runs"][0]["holds"] is True
    assert "def fitting_sizes" in cli("docs", "batch-calculator").out
    assert "did you mean `batch-calculator`?" in cli("docs", "batch-calclator", "--run").err
    assert len(cli("docs", "topics", "--json").data["design_topics"]) == 50


@pytest.mark.parametrize("env_id", ["CartPole-v1", "valve.py:Valve"])
def test_a_cold_start_reaches_a_checked_spec_and_a_config_by_the_printed_commands_alone(cli: Cli, env_id: str) -> None:
    """The scripted model knows one sentence. It asks rlx, and then it types each printed `next`."""
    Path("valve.py").write_text(VALVE)
    answer = cli("docs", f"design an RL solution for {env_id}", "--json")
    assert answer.data["next"] == "rlx docs architect"
    command = cli(*shlex.split(answer.data["next"])[1:], "--json").data["next"].replace("ENV", env_id)
    seen = []
    for _ in range(5):
        words = shlex.split(command)[1:]
        if words[0] == "train":
            break
        seen.append(" ".join(words[:2]))
        answer = cli(*words, "--json")
        assert answer.code == 0, answer.err
        command = answer.data["next"]
    assert seen == ["spec new", "check spec", "spec config", "spec config"]
    config = shlex.split(command)[2]
    assert read(Path(config)).env.id == env_id
    assert cli("spec", "status", "--json").data["next"] == command  # it finds the config that was written


@pytest.mark.slow
def test_recommend_writes_the_two_configs_to_settle(cli: Cli) -> None:
    answer = cli("recommend", "Pendulum-v1", "--seconds", "1", "--write", "configs", "--json")
    assert answer.code == 0, answer.err
    written = answer.data["written"]
    assert answer.data["next"] == f"rlx settle {written[0]} {written[1]}"
    names = {yaml.safe_load(Path(path).read_text())["algo"]["name"] for path in written}
    assert names == {"ppo", "sac"}
    again = cli("recommend", "Pendulum-v1", "--seconds", "1", "--write", "configs")
    assert again.code == 2


@pytest.mark.slow
def test_status_shows_the_workflows_and_the_next_step(cli: Cli) -> None:
    cli("spec", "new", "--env", "CartPole-v1")
    data = cli("spec", "status", "--json").data
    assert {step["workflow"] for step in data["steps"]} == {
        "architect", "environment", "algorithm", "evaluation", "operations",
    }  # fmt: skip
    assert data["next"].startswith("rlx spec config")
    text = Path("spec.yaml").read_text().replace("discount: 0.99", "discount: 0.5")
    Path("spec.yaml").write_text(text)
    data = cli("spec", "status", "--json").data
    assert {step["section"]: step["state"] for step in data["steps"]}["mdp"] == "defect"
    assert data["next"].startswith("rlx check spec")


def test_a_subject_that_rlx_does_not_know_is_an_error(cli: Cli, make_run: Any) -> None:
    make_run("one")
    answer = cli("cards", "--for", "one_01")
    assert answer.code == 3
    assert "hint: did you mean `one_001`?" in answer.err


@pytest.mark.parametrize(
    ("topic", "hint"),
    [("train", "rlx train --help"), ("guides/sweep", "rlx docs guides/sweeps"), ("qmixx", "rlx docs qmix")],
)
def test_an_unknown_page_leads_to_the_closest_one(cli: Cli, topic: str, hint: str) -> None:
    answer = cli("docs", topic)
    assert answer.code == 3
    assert f"hint: {hint}" in answer.err


def test_the_list_of_topics_fits_a_terminal(cli: Cli) -> None:
    assert max(map(len, cli("docs", "topics").out.splitlines())) <= 140


@pytest.mark.slow
def test_a_run_becomes_a_dataset_and_offline_runs_are_ordinary_runs(cli: Cli) -> None:
    """Record a run, plan to learn from it, train what follows, compare it with cloning, and continue it."""
    Path("rlx.toml").touch()
    teacher = "algo: {name: ppo, total_timesteps: 2048, rollout_steps: 64}\nenv: {id: CartPole-v1, num_envs: 8}\n"
    Path("teacher.yaml").write_text(f"run_name: teacher\n{teacher}")
    assert cli("train", "teacher.yaml").code == 0
    data = cli("export", "teacher_001", "--to", "dataset", "--episodes", "20", "--random", "0.5", "--json").data
    assert data["episodes"] == 20
    assert cli("export", "teacher_001", "--to", "csv", "--episodes", "3").code == 2
    spec = {"schema": 1, "env": "CartPole-v1", "offline": {"dataset": data["path"], "algorithm": "cql"}}
    for name in ("cql", "bc"):
        spec["offline"]["algorithm"] = name  # type: ignore[index]
        Path(f"{name}.yaml").write_text(yaml.safe_dump(spec))
        config = f"configs/{name}.yaml"
        assert cli("spec", "config", f"{name}.yaml", "--write", config).code == 0
        short = ("-s", "algo.total_timesteps=100", "-s", "eval.every=50", "-s", f"run_name={name}")
        answer = cli("train", config, *short)
        assert answer.code == 0, answer.err
    verdict = cli("compare", "bc_001", "cql_001", "--json").data
    assert verdict["baseline"] == "bc_001"
    assert cli("eval", "cql_001", "--json").code == 0
    assert cli("diagnose", "cql_001", "--json").code == 0
    longer = cli("resume", "cql_001", "--fork", "-s", "algo.total_timesteps=150")
    assert longer.code == 0, longer.err


@pytest.mark.slow
def test_a_team_is_drafted_checked_trained_and_compared_as_any_environment(cli: Cli) -> None:
    Path("rlx.toml").touch()
    Path("envs").mkdir()
    Path("envs/meet.py").write_text(
        "from rlx.design.recipes.worlds.pettingzoo_checks import MeetOnLine\n"
        "from rlx.envs.team import TeamEnv\n\n\ndef team():\n    return TeamEnv(MeetOnLine())\n"
    )
    drafted = cli("spec", "new", "--env", "envs/meet.py:team", "--json").data["document"]
    assert drafted["multi_agent"]["agents"] == 2
    drafted["strategy"]["algorithm"] = "ppo"
    Path("spec.yaml").write_text(yaml.safe_dump({**drafted, "env": "envs/meet.py:team"}))
    checked = cli("check", "spec", "--json")
    assert "spec_agents" not in [finding["rule"] for finding in checked.data["findings"]]
    assert cli("spec", "config", "--write", "configs/team.yaml").code == 0
    config = yaml.safe_load(Path("configs/team.yaml").read_text())
    assert config["policy"]["kwargs"] == {"agents": 2, "critic": "local"}
    short = ("-s", "algo.total_timesteps=4096", "-s", "eval.every=2048")
    assert cli("train", "configs/team.yaml", *short, "-s", "run_name=local").code == 0
    assert (
        cli("train", "configs/team.yaml", *short, "-s", "run_name=central", "-s", "policy.kwargs.critic=central").code
        == 0
    )
    assert cli("compare", "local_001", "central_001", "--json").data["baseline"] == "local_001"
    scores = cli("eval", "central_001", "--json").data
    assert "central" in str(scores)
