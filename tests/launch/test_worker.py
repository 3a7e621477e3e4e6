"""Real trainings under stop rules: what a rule names is ended, saved and recorded; the rest is left alone."""

from __future__ import annotations

import json

import pytest

from rlx.config.load import parse
from rlx.diagnose.rules import NAMES
from rlx.launch.worker import stop_judge
from rlx.runs.checkpoints import checkpoint
from tests.conftest import Project

pytestmark = pytest.mark.slow

ENVS = """
from gymnasium.envs.classic_control import CartPoleEnv

class Deaf(CartPoleEnv):
    def step(self, action):
        return super().step(self.np_random.integers(2))
"""
LONG = {"total_timesteps": 20_000, "learning_rate": 3e-3, "update_epochs": 4}


def test_a_run_that_is_stuck_ends_at_the_next_look_and_says_why(project: Project) -> None:
    project.write("envs.py", ENVS)
    config = project.config(env={"id": "envs.py:Deaf"}, algo=LONG, stop={"plateau": {"steps": 4000}}, backend="fast")
    told = project.rlx("train", config, code=5)
    assert "stopped by rule: plateau: the return has not risen for 4,000 steps" in told.stderr
    (seed,) = project.run("tiny_001").seeds
    assert seed.status.state == "failed"
    assert seed.status.reason.startswith("stopped by rule: plateau")
    assert 4000 <= seed.step < 20_000
    assert seed.events[-2]["event"] == "stopped"
    assert checkpoint.read(seed.checkpoints / "latest").step == seed.step
    watched = project.rlx("watch", "tiny_001", "--json", code=5)
    data = json.loads(watched.stdout)
    assert data["seeds"][0]["reason"] == seed.status.reason
    assert "crashed" not in [alarm["rule"] for alarm in data["alarms"]]
    assert "stopped by rule" in project.rlx("watch", "tiny_001", code=5).stdout
    assert "stopped by rule" in project.rlx("info", "tiny_001").stdout


def test_a_healthy_run_is_not_touched_by_any_rule(project: Project) -> None:
    stop = {"plateau": {"steps": 6000}, "budget": {"seconds": 3600}, "findings": list(NAMES)}
    project.rlx("train", project.config(algo=LONG, stop=stop, backend="fast"), "--seeds", "2")
    assert project.run("tiny_001").status == "completed"


def test_a_spent_budget_ends_every_seed(project: Project) -> None:
    config = project.config(algo=LONG, stop={"budget": {"cpu_seconds": 0.01}}, backend="fast")
    told = project.rlx("train", config, "--json", code=5)
    assert "stopped by rule: budget: " in json.loads(told.stdout)["error"]
    assert project.run("tiny_001").seeds[0].step == 512  # the first look: a fiftieth of the run, in whole rollouts


def test_a_rule_that_nobody_knows_is_refused_before_a_run_is_made(project: Project) -> None:
    config = project.config(stop={"findings": ["value_explosions"]})
    for words in (("train", config), ("config", "check", config)):
        told = project.rlx(*words, code=2)
        assert "did you mean `value_explosion`?" in told.stdout + told.stderr
    assert project.runs() == []


def test_without_a_rule_there_is_no_judge(project: Project) -> None:
    experiment = parse({"env": {"id": "CartPole-v1"}, "algo": {"name": "ppo"}})
    assert stop_judge(experiment, project.run("none"), 0) is None
