"""`rlx eval` as it is called."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rlx.hosts.cli.main import call
from rlx.runs.project import mark_own
from rlx.runs.run import Run
from tests.conftest import Project
from tests.evaluate.linear import GOOD, POOR, make_run, register


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    register(monkeypatch)
    monkeypatch.setenv("RLX_ROOT", str(tmp_path))
    mark_own(tmp_path)
    make_run(tmp_path, "cartpole", {0: GOOD, 1: POOR})
    return tmp_path


def test_prints_each_seed_and_the_random_policy(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["eval", "cartpole_001", "--episodes", "4"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].split() == ["seed", "checkpoint", "step", "n", "mean", "std", "min", "max"]
    assert lines[1].split() == ["0", "latest", "1,024", "4", "500", "0", "500", "500"]
    assert lines[3].startswith("random policy")
    assert "seed 1: " in err
    (kept,) = {document["fingerprint"] for document in Run(root / "runs/cartpole_001").evaluations()}
    assert f"stored: runs/cartpole_001/eval/{kept}/" in lines


def test_json_is_complete(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["eval", "cartpole_001:best", "--seed", "1", "--episodes", "2", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["run"], data["env"]) == (1, "cartpole_001", "CartPole-v1")
    (row,) = data["seeds"]
    assert (row["seed"], row["checkpoint"], row["n"]) == (1, "best", 2)
    assert (root / row["file"]).is_file()
    assert data["random"]["n"] == 2


def test_a_loose_checkpoint_is_printed_and_not_kept(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(root / "runs/cartpole_001/seed_0/checkpoints/best", root / "mine")
    assert call(["eval", str(root / "mine"), "--episodes", "2"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1].split()[:5] == ["–", "mine", "1,024", "2", "500"]
    assert "kept" not in out
    assert not (root / "runs/cartpole_001/eval").exists()


def test_what_is_kept_is_said_and_measured_anew_when_asked(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["eval", "cartpole_001", "--episodes", "2"]
    assert call(argv) == 0
    first = capsys.readouterr()
    assert call(argv) == 0
    stored = capsys.readouterr()
    assert stored.out == first.out
    assert "seed 0: 500 (stored)" in stored.err
    assert call([*argv, "--again"]) == 0
    assert "stored" not in capsys.readouterr().err


def test_fresh_episodes_show_what_was_claimed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["eval", "cartpole_001"]) == 0
    capsys.readouterr()
    assert call(["eval", "cartpole_001", "--fresh", "3"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].split()[-1] == "claimed"
    assert "note: claimed " in out
    assert "fresh episodes, return)" in out
    assert call(["eval", "cartpole_001", "--fresh", "2", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["seeds"][0]["claimed"] == {"score": 500.0, "purpose": "report"}
    assert data["purpose"] == "fresh"


def test_seeds_without_the_checkpoint_are_named_and_the_others_measured(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(root / "runs/cartpole_001/seed_1/checkpoints/best")
    assert call(["eval", "cartpole_001:best", "--episodes", "2", "--json"]) == 3
    data = json.loads(capsys.readouterr().out)
    assert [row["seed"] for row in data["seeds"]] == [0]
    assert data["missing"] == ["seed 1 of cartpole_001 has no checkpoint `best`"]


def test_a_run_that_cannot_be_written_to_says_so(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "runs/cartpole_001/eval").write_text("in the way")
    assert call(["eval", "cartpole_001", "--episodes", "2"]) == 0
    assert "rlx cannot write to runs/cartpole_001/eval/" in capsys.readouterr().out


def test_scenarios_are_shown_with_their_pass_rate(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "protocol.yaml").write_text(
        "env: {id: CartPole-v1}\n"
        "eval:\n"
        "  metric: pass_rate\n"
        "  scenarios:\n"
        "    short: {kwargs: {max_episode_steps: 50}, pass: truncated}\n"
        "    odd: {kwargs: {sutton_barto_reward: true}}\n"
    )
    argv = ["eval", "cartpole_001", "--protocol", str(root / "protocol.yaml"), "--episodes", "3"]
    assert call(argv) == 0
    out, err = capsys.readouterr()
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["seed", "checkpoint", "step", "n", "mean", "return", "std", "min", "max", "pass_rate"]
    assert lines[1] == ["0", "latest", "1,024", "3", "500", "0", "500", "500", "1"]
    assert "seed 0: pass_rate 1\n" in err
    assert ["0", "short", "3", "50", "100%"] in lines
    assert ["0", "odd", "3", "0", "–"] in lines
    assert call([*argv, "--json"]) == 0
    row = json.loads(capsys.readouterr().out)["seeds"][0]
    assert (row["score"], row["pass_rate"], row["scenarios"]["short"]["mean"], row["stored"]) == (1.0, 1.0, 50.0, True)
    assert call(["ls"]) == call(["info", "cartpole_001"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].split()[6] == "score"
    assert " pass_rate  " in out.splitlines()[1]
    assert "\npass_rate: " in out
    assert ["seed", "status", "step", "pass_rate", "time"] in [line.split() for line in out.splitlines()]


def test_what_was_claimed_is_in_the_metric_of_the_fresh_episodes(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scenarios = {"short": {"kwargs": {"max_episode_steps": 50}, "pass": "truncated"}}
    make_run(root, "rated", {0: GOOD}, eval={"metric": "pass_rate", "scenarios": scenarios, "report_episodes": 2})
    assert call(["eval", "rated_001"]) == call(["eval", "rated_001", "--fresh", "3"]) == 0
    out = capsys.readouterr().out
    assert "note: claimed pass_rate 1 (report), fresh 1: +0 over 1 seed\n" in out
    (root / "plain.yaml").write_text("env: {id: CartPole-v1}\n")
    assert call(["eval", "rated_001", "--fresh", "2", "--protocol", str(root / "plain.yaml")]) == 0
    assert "note: claimed 500 (report), fresh 500: +0 over 1 seed\n" in capsys.readouterr().out
    assert call(["info", "rated_001", "--json"]) == 0
    evaluations = json.loads(capsys.readouterr().out)["evaluations"]
    latest = next(one for one in evaluations if (one["purpose"], one["checkpoint"]) == ("report", "latest"))
    assert (latest["episodes"], latest["return"]["mean"], latest["return"]["metric"]) == (2, 1.0, "pass_rate")


def test_runs_whose_environment_was_edited_compare_after_the_printed_commands(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = "import gymnasium\ndef make(**kwargs):\n    return gymnasium.make('CartPole-v1', **kwargs)\n"
    (root / "world.py").write_text(world)
    for name, weights in (("old", POOR), ("new", GOOD)):
        make_run(root, name, {0: weights}, env={"id": "world.py:make"}, policy={"hidden_sizes": [len(name)]})
        assert call(["eval", f"{name}_001"]) == 0
        (root / "world.py").write_text(world + f"# edited after {name}\n")
    capsys.readouterr()
    assert call(["compare", "old_001", "new_001", "--json"]) == 6
    (candidate,) = json.loads(capsys.readouterr().out)["candidates"]
    assert "different protocols (files.world.py" in candidate["reason"]
    for command in candidate["commands"]:
        assert call(command.split()[1:]) == 0
    capsys.readouterr()
    call(["compare", "old_001", "new_001", "--json"])
    data = json.loads(capsys.readouterr().out)
    assert "protocol" not in data["candidates"][0]["reason"]
    assert [run["mean"] for run in data["runs"]][1] == 500.0


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["eval", "cartpole_001", "--fresh", "0"], 2, "must be at least 1"),
        (["eval", "cartpole_001", "--fresh", "3", "--episodes", "4"], 2, "leave out --episodes 4"),
        (["eval", "cartpole_001", "--like", "cartpole_001", "--protocol", "x.yaml"], 2, "leave out one of them"),
        (["eval", "cartpole_001", "--protocol", "x.yaml"], 3, "x.yaml"),
        (["eval", "cartpole_009"], 3, "did you mean `cartpole_001`?"),
        (["eval", "cartpole_001:step_7"], 3, "it has: best, latest"),
        (["eval", "cartpole_001", "--episodes", "0"], 2, "must be at least 1"),
        (["eval", "cartpole_001", "--seed", "8"], 3, "its seeds: 0, 1"),
        (["eval", "cartpole_001", "--like", "nothing"], 3, "no run `nothing`"),
    ],
)
def test_bad_input_is_one_line_with_a_hint(
    root: Path, capsys: pytest.CaptureFixture[str], argv: list[str], code: int, words: str
) -> None:
    assert call(argv) == code
    assert words in capsys.readouterr().err


def test_an_env_file_that_was_deleted_is_named(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(root, "own", {0: GOOD}, env={"id": "envs/gone.py:World"})
    assert call(["eval", "own_001"]) == 3
    assert "envs/gone.py" in capsys.readouterr().err


WORLD = """
import gymnasium
import numpy as np


class Walk(gymnasium.Env):
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, size=5, render_mode=None):
        self.size, self.render_mode = size, render_mode
        self.observation_space = gymnasium.spaces.Box(-size, size, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = int(self.np_random.integers(1 - self.size, self.size))
        return np.full(1, self.at, np.float32), {}

    def step(self, action):
        self.at += 1 if action else -1
        is_over = abs(self.at) >= self.size
        info = {"is_success": self.at >= self.size} if is_over else {}
        return np.full(1, self.at, np.float32), float(self.at), is_over, False, info

    def render(self):
        frame = np.full((32, 64, 3), 60, np.uint8)
        frame[:, : 32 + 3 * self.at] = (250, 200, 0)
        return frame


class Shift(gymnasium.ObservationWrapper):
    def __init__(self, env, by=0.0):
        super().__init__(env)
        self.by = by

    def observation(self, observation):
        return observation - np.float32(self.by)
"""

PPO = {"total_timesteps": 128, "rollout_steps": 32, "batch_size": 32, "update_epochs": 2}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("env", "algo"),
    [
        ({"id": "CartPole-v1", "normalize": {"obs": True, "reward": True}}, {"name": "ppo", **PPO}),
        (
            {
                "id": "walk.py:Walk", "kwargs": {"size": 4},
                "wrappers": [{"time_limit": {"max_steps": 20}}, {"walk.py:Shift": {"by": 2.0}}],
            },
            {"name": "recurrent_ppo", "lstm_size": 8, **PPO},
        ),
    ],
    ids=["normalised", "own env, wrapped, recurrent"],
)  # fmt: skip
def test_a_checkpoint_scores_what_training_reported_and_is_filmed(
    tmp_path: Path, env: dict[str, object], algo: dict[str, object]
) -> None:
    def rlx(*argv: str) -> str:
        done = subprocess.run([sys.executable, "-m", "rlx", *argv], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    (tmp_path / "rlx.toml").touch()
    (tmp_path / "walk.py").write_text(WORLD)
    config = {"run_name": "tiny", "env": {**env, "num_envs": 2}, "algo": algo, "policy": {"hidden_sizes": [8]}}
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(config))
    rlx("train", "tiny.yaml")
    (file,) = tmp_path.glob("runs/tiny_001/eval/*/seed_0_latest.json")
    reported = json.loads(file.read_text())
    shown = json.loads(rlx("ls", "--json"))["runs"][0]["return"]
    rlx("eval", "tiny_001", "--episodes", "30")
    rlx("eval", "tiny_001", "--again")
    assert json.loads(rlx("ls", "--json"))["runs"][0]["return"] == shown
    assert Run(tmp_path / "runs/tiny_001").own_protocol == file.parent.name
    found = json.loads(file.read_text())
    assert found["episodes"] == reported["episodes"]
    assert len({episode["return"] for episode in found["episodes"]}) > 1
    (film,) = json.loads(rlx("video", "tiny_001", "--json"))["films"]
    assert Path(film["file"]).stat().st_size > 500


FRAMES = """
import gymnasium

IS_FLIPPED = False


class Frames(gymnasium.wrappers.FrameStackObservation):
    def __init__(self, env, is_flipped=IS_FLIPPED):
        super().__init__(env, 3)
        self.is_flipped = is_flipped

    def turned(self, frames):
        return frames[::-1].copy() if self.is_flipped else frames

    def reset(self, **settings):
        frames, info = super().reset(**settings)
        return self.turned(frames), info

    def step(self, action):
        frames, *rest = super().step(action)
        return self.turned(frames), *rest
"""


@pytest.mark.slow
def test_frames_in_another_order_than_in_training_are_refused(project: Project) -> None:
    file = project.write("frames.py", FRAMES)
    project.rlx("train", project.config(env={"wrappers": ["frames.py:Frames"]}, algo=PPO))
    project.rlx("eval", "tiny_001", "--episodes", "2")
    bare = project.config("bare", env={"wrappers": ["frames.py:Frames"]}, algo=PPO, eval={"env": {"wrappers": []}})
    assert "(4,) in the evaluation, but float32 (3, 4) in training" in project.rlx("train", bare, code=2).stderr
    file.write_text(FRAMES.replace("IS_FLIPPED = False", "IS_FLIPPED = True"))
    by_code = project.rlx("eval", "tiny_001", "--episodes", "2", code=6)
    assert "CartPole-v1: observations have another order than in training" in by_code.stderr
    file.write_text(FRAMES)
    snapshot = project.run("tiny_001").path / "config_snapshot.yaml"
    config = yaml.safe_load(snapshot.read_text())
    config["env"]["wrappers"] = [{"name": "frames.py:Frames", "kwargs": {"is_flipped": True}}]
    snapshot.write_text(yaml.safe_dump(config))
    assert "another order than in training" in project.rlx("eval", "tiny_001", "--episodes", "2", code=6).stderr
    assert "another order than in training" in project.rlx("video", "tiny_001:latest", code=6).stderr
    file.write_text(FRAMES.replace("return frames[::-1].copy() if self.is_flipped else frames", "return 2 * frames"))
    config["env"]["wrappers"] = ["frames.py:Frames"]
    snapshot.write_text(yaml.safe_dump(config))
    changed = project.rlx("eval", "tiny_001", "--episodes", "2")
    assert "note: CartPole-v1 shows other observations than in training" in changed.stdout


POLE = """
from gymnasium.envs.classic_control import CartPoleEnv

class Pole(CartPoleEnv):
    def step(self, action):
        observation, _, terminated, truncated, info = super().step(action)
        reward = 1.0
        return observation, reward, terminated, truncated, info
"""


def test_a_number_of_an_environment_edited_since_training_is_said_to_belong_to_it(project: Project) -> None:
    env = project.write("envs/pole.py", POLE)
    limit = [{"name": "time_limit", "kwargs": {"max_steps": 20}}]
    sizes = {"algo": {"total_timesteps": 128}, "eval": {"every": None, "report_episodes": 2}}
    project.rlx("train", project.config(env={"id": "envs/pole.py:Pole", "wrappers": limit}, **sizes))
    note = "envs/pole.py changed since training: the numbers belong to the changed environment"
    assert note not in project.rlx("eval", "tiny_001", "--again").stdout
    env.write_text(POLE.replace("reward = 1.0", "reward = 5.0"))
    assert note in project.rlx("eval", "tiny_001").stdout
    assert note in project.rlx("eval", "tiny_001").stdout  # stored with it
    env.write_text(POLE)
    assert note not in project.rlx("eval", "tiny_001", "--again").stdout


def test_a_script_of_ones_own_is_not_measured_from_outside(project: Project) -> None:
    script = "import rlx\nwith rlx.start({'env': 'CartPole-v1', 'lr': 1e-3}, seed=0) as run: pass"
    subprocess.run([sys.executable, "-c", script], cwd=project.root, check=True, env=project.environment())
    (name,) = project.runs()
    for command in ("eval", "video"):
        refused = project.rlx(command, name, code=2).stderr
        assert f"{name} is trained by a script of your own" in refused
        assert "hint: score it in the script: run.evaluate(policy)" in refused
    assert "run.evaluate(policy)" in project.rlx("noise", name, code=3).stderr
    assert "run.evaluate(policy)" in project.rlx("settle", name, name, code=2).stderr
    assert "rlx eval" not in project.rlx("info", name).stdout + project.rlx("ls").stdout
