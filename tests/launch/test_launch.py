"""Runs start, end, are stopped, resumed, forked and extended through the one door."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from rlx.runs.checkpoints import checkpoint
from tests.conftest import Project, wait_until

pytestmark = pytest.mark.slow


POLE = """
from gymnasium.envs.classic_control import CartPoleEnv

class Pole(CartPoleEnv):
    def step(self, action):
        observation, _, terminated, truncated, info = super().step(action)
        reward = 1.0
        return observation, reward, terminated, truncated, info
"""


def test_a_run_trains_its_seeds_and_keeps_everything(project: Project) -> None:
    done = project.rlx("train", project.config(), "--seeds", "2", "--json")
    data = json.loads(done.stdout)
    run = project.run("tiny_001")
    assert data["run"] == "tiny_001"
    assert data["state"] == run.status == "completed"
    for seed in run.seeds:
        assert seed.rows[-1]["step"] == seed.step == 1024
        assert set(checkpoint.names(seed.checkpoints)) >= {"best", "latest", "step_1024"}
        assert seed.attempts[0]["versions"]["torch"]
        assert "train/value_loss" in seed.rows[-1]
    names = {document["name"] for document in run.evaluations()}
    assert names >= {"seed_0_latest", "seed_1_latest", "seed_0_step_512", "seed_0_step_1024"}
    assert not (run.path / "supervisor.json").exists()


def test_a_detached_run_outlives_the_shell_that_started_it(project: Project) -> None:
    config = project.config(algo={"total_timesteps": 4096})
    shell = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -m rlx train {config} --detach --json; kill -HUP 0"],
        cwd=project.root,
        capture_output=True,
        text=True,
        env=project.environment(),
        start_new_session=True,
    )
    assert json.loads(shell.stdout)["run"] == "tiny_001"
    waited = project.rlx("wait", "tiny_001", "--timeout", "120")
    assert "completed" in waited.stderr
    assert project.rlx("wait", "tiny_001", "--json").stderr == ""
    assert project.run("tiny_001").status == "completed"


def test_a_stopped_run_is_interrupted_and_resumes_to_the_planned_step(project: Project) -> None:
    config = project.config(algo={"total_timesteps": 20_000}, checkpoint={"save_every": 4000})
    project.rlx("train", config, "--detach", "--seeds", "2")
    run = project.run("tiny_001")
    wait_until(lambda: all(seed.last("rollout/return_mean") for seed in project.run("tiny_001").seeds))
    project.rlx("stop", "tiny_001")
    stopped = project.run("tiny_001")
    assert {seed.status.state for seed in stopped.seeds} == {"interrupted"}
    project.rlx("stop", "tiny_001", code=2)
    done = project.rlx("resume", "tiny_001")
    assert "exact" in done.stdout
    assert [seed.step for seed in project.run("tiny_001").seeds] == [20_096, 20_096]
    assert run.seeds[0].attempts[0]["argv"]


def test_ctrl_c_saves_and_ends_with_130(project: Project) -> None:
    config = project.config(algo={"total_timesteps": 10_000_000})
    attached = project.start("train", config)
    wait_until(lambda: project.runs() and project.run("tiny_001").seeds[0].last("rollout/return_mean"))
    attached.send_signal(signal.SIGINT)
    _, errors = attached.communicate(timeout=60)
    assert attached.returncode == 130, errors
    assert "rlx resume tiny_001" in errors
    assert project.run("tiny_001").status == "interrupted"
    assert checkpoint.newest(project.run("tiny_001").seeds[0].checkpoints) is not None


def test_more_seeds_join_a_run(project: Project) -> None:
    project.rlx("train", project.config())
    project.rlx("train", "--more", "tiny_001", "--seeds", "2")
    assert [seed.number for seed in project.run("tiny_001").seeds] == [0, 1, 2]
    assert project.run("tiny_001").status == "completed"
    project.rlx("train", "--more", "tiny_001", "--seeds", "1,", code=2)


def test_more_seeds_under_changed_code_are_refused_unless_anyway(project: Project) -> None:
    env = project.write("envs/pole.py", POLE)
    project.rlx("train", project.config(env={"id": "envs/pole.py:Pole"}, algo={"total_timesteps": 128}))
    assert "2 seeds" in project.rlx("train", "--more", "tiny_001", "--seeds", "1").stdout
    env.write_text(POLE.replace("reward = 1.0", "reward = 5.0"))
    refused = project.rlx("train", "--more", "tiny_001", "--seeds", "1", code=4).stderr
    assert "tiny_001 cannot get further seeds: the project's code (code " in refused
    assert "envs/pole.py) changed since" in refused
    assert "rlx train runs/tiny_001/config_snapshot.yaml" in refused
    assert len(project.run("tiny_001").seeds) == 2
    done = project.rlx("train", "--more", "tiny_001", "--seeds", "1", "--anyway")
    assert "2 of 3 seeds" in done.stdout
    judged = project.rlx("noise", "tiny_001", "--seeds", "2", code=6)
    assert "the attempts of tiny_001 ran different code: code " in judged.stderr


def test_a_fork_goes_on_in_a_new_run_that_names_its_origin(project: Project) -> None:
    project.rlx("train", project.config())
    project.rlx("resume", "tiny_001", code=2)
    project.rlx("resume", "tiny_001", "--fork", code=2)
    project.rlx("resume", "tiny_001", "--fork", "-s", "algo.total_timesteps=2048", "-s", "algo.learning_rate=1e-4")
    fork = project.run("tiny_002")
    assert fork.metadata["lineage"]["forked_from"] == "tiny_001"
    assert fork.seeds[0].step == 2048
    assert fork.seeds[0].rows[0]["step"] > 1024
    assert project.run("tiny_001").seeds[0].step == 1024


def test_a_run_keeps_the_backend_that_was_chosen_for_it(project: Project) -> None:
    said = project.rlx("train", project.config()).stderr
    run = project.run("tiny_001")
    assert run.config["backend"] == run.metadata["backend"]
    assert f"backend {run.metadata['backend']}: " in said


def test_checkpoints_of_one_backend_are_not_trained_further_by_another(project: Project) -> None:
    project.rlx("train", project.config(backend="fast"))
    steps = ("-s", "algo.total_timesteps=2048")
    refused = project.rlx("resume", "tiny_001", "--fork", "-s", "backend=sb3", *steps, code=2)
    assert "a checkpoint of backend fast cannot be trained further with sb3" in refused.stderr
    assert project.runs() == ["tiny_001"]


def test_a_proof_compares_a_stretch_with_and_without_a_break(project: Project) -> None:
    project.rlx("train", project.config(algo={"total_timesteps": 8192}))
    proof = json.loads(project.rlx("resume", "tiny_001", "--prove", "--json").stdout)["proof"]
    assert proof["is_equal"]
    assert proof["label"] == "exact"
    assert proof["from"] < proof["break"] < proof["to"]


def test_a_worker_refuses_to_start_without_a_launch(project: Project) -> None:
    project.rlx("train", project.config())
    done = subprocess.run(
        [sys.executable, "-m", "rlx.launch.worker", str(project.run("tiny_001").path), "0"],
        capture_output=True, text=True, env=project.environment(),
    )  # fmt: skip
    assert done.returncode == 4
    assert "no launch of tiny_001" in done.stderr


def test_two_resumes_at_once_train_every_seed_once(project: Project) -> None:
    project.rlx("train", project.config(algo={"total_timesteps": 200_000}), "--detach")
    wait_until(lambda: project.run("tiny_001").seeds[0].last("rollout/return_mean"))
    project.rlx("stop", "tiny_001")
    both = [project.start("resume", "tiny_001", "--detach") for _ in range(2)]
    for one in both:
        one.communicate(timeout=60)
    assert sorted(one.returncode for one in both) == [0, 4]
    wait_until(lambda: project.run("tiny_001").seeds[0].status.state == "running")
    project.rlx("stop", "tiny_001")
    started = [event for event in project.run("tiny_001").seeds[0].events if event["event"] == "started"]
    assert len(started) == 2


RAISES = """
import gymnasium
import numpy as np

class Raises(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, value=0.0, after=100):
        self.value, self.after, self.steps = value, after, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        if self.steps > self.after and not self.value:
            raise RuntimeError("the arm fell off")
        reward = self.value if self.steps > self.after else 0.0
        return np.zeros(2, np.float32), reward, self.steps % 20 == 0, False, {}
"""


def test_an_env_that_raises_fails_the_seed_in_one_line(project: Project) -> None:
    project.write("envs/raises.py", RAISES)
    done = project.rlx("train", project.config(env={"id": "envs/raises.py:Raises"}), code=5)
    assert "the arm fell off" in done.stderr
    assert project.run("tiny_001").status == "failed"
    assert "raises.py" in project.rlx("info", "tiny_001", "--traceback").stdout


def test_a_reward_that_is_nan_stops_the_seed_and_names_the_step(project: Project) -> None:
    project.write("envs/raises.py", RAISES)
    config = project.config(env={"id": "envs/raises.py:Raises", "kwargs": {"value": float("nan")}})
    done = project.rlx("train", config, code=5)
    assert "reward" in done.stderr
    assert "step" in done.stderr
    assert project.run("tiny_001").status == "failed"


def test_a_config_that_cannot_train_leaves_no_run(project: Project) -> None:
    done = project.rlx("train", project.config(env={"id": "CartPole-v7"}), code=None)
    assert done.returncode in (2, 3)
    assert "CartPole-v1" in done.stderr
    done = project.rlx("train", project.config(env={"id": "Pendulum-v1"}, algo={"name": "dqn"}), code=2)
    project.rlx("train", "configs/absent.yaml", code=3)
    assert project.runs() == []
