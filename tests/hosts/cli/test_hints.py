"""Hints that led nowhere: each now leads to a command or a key that works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlx.config import load


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "tiny.yaml"
    path.write_text("env: {id: CartPole-v1}\nalgo: {name: ppo, total_timesteps: 512, rollout_steps: 64}\n")
    return str(path)


def test_seed_is_spelled_seeds(cli: Any, config: str) -> None:
    answer = cli("train", config, "--seed", "3")
    assert answer.code == 2
    assert "--seeds 3, trains only the seed 3" in answer.err


def test_a_recurrent_policy_is_an_algorithm(cli: Any, config: str) -> None:
    answer = cli("train", config, "-s", "policy.type=lstm")
    assert answer.code == 2
    assert "-s policy.type=mlp -s algo.name=recurrent_ppo" in answer.err
    overrides = ["policy.type=mlp", "algo.name=recurrent_ppo"]
    assert load.load(Path(config), overrides=overrides).algo.name == "recurrent_ppo"


def test_wandb_that_is_not_installed_is_refused_at_the_start(
    cli: Any, config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlx.config.cross_check.importlib.util.find_spec", lambda name: None)
    answer = cli("train", config, "-s", "log.wandb=true")
    assert answer.code == 2
    assert "`log.wandb` needs `wandb`" in answer.err
    assert "-s log.wandb=false" in answer.err


def test_wrapper_arguments_of_a_wrong_type_are_named(cli: Any, config: str) -> None:
    answer = cli("train", config, "-s", "env.wrappers=[{time_limit: {max_steps: abc}}]")
    assert answer.code == 2
    assert "env.wrappers" in answer.err


def test_another_algorithm_drops_the_keys_of_the_first_and_says_so(config: str) -> None:
    checked = load.check(Path(config), overrides=["algo.name=a2c"])
    assert any("`rollout_steps`" in located.problem.message for located in checked.notes)
    assert checked.experiment is not None
    assert checked.experiment.algo.total_timesteps == 512


def test_a_replay_buffer_that_does_not_fit_is_refused_before_training(cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    path.write_text("env: {id: Pendulum-v1}\nalgo: {name: sac, total_timesteps: 900_000_000_000}\n")
    answer = cli("train", str(path), "-s", "algo.buffer_size=900000000000", "--detach")
    assert answer.code == 2
    assert "a replay buffer of 900,000,000,000 steps needs" in answer.err
    assert "hint: -s algo.buffer_size=" in answer.err


def test_a_replay_buffer_that_no_machine_reserves_is_refused_however_short_the_training(
    cli: Any, tmp_path: Path
) -> None:
    path = tmp_path / "huge.yaml"
    path.write_text("env: {id: Pendulum-v1}\nalgo: {name: sac, total_timesteps: 500, buffer_size: 900_000_000_000}\n")
    answer = cli("train", str(path))
    assert answer.code == 2
    assert "reserves" in answer.err
    assert "hint: -s algo.buffer_size=500" in answer.err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("wrapper", "claim"),
    [
        ("{time_limit: {max_steps: abc}}", "`max_steps` is 'abc', not a whole number"),
        ("{action_repeat: {repeat: 2.5}}", "`repeat` is 2.5, not a whole number"),
        ("{scale_reward: {scale: big}}", "`scale` is 'big', not a number"),
        ("{resize: {shape: 84}}", "`shape` is 84"),
    ],
)
def test_a_wrapper_argument_of_a_wrong_type_is_named_before_training(
    cli: Any, config: str, tmp_path: Path, wrapper: str, claim: str
) -> None:
    answer = cli("train", config, "-s", f"env.wrappers=[{wrapper}]")
    assert answer.code == 2
    assert claim in answer.err
    assert "hint: set `" in answer.err
    assert not (tmp_path / "runs").exists()


OLD_ENV = """
import numpy as np
import gymnasium
from gymnasium import spaces


class Old(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, **options):
        return np.zeros(2, np.float32)

    def step(self, action):
        return np.zeros(2, np.float32), 1.0, True, {}
"""


def test_an_environment_of_the_old_api_leads_to_a_check_that_names_the_defect(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "rlx.toml").touch()
    (tmp_path / "old.py").write_text(OLD_ENV)
    (tmp_path / "old.yaml").write_text(
        "env: {id: 'old.py:Old'}\nalgo: {name: ppo, total_timesteps: 64, rollout_steps: 8, batch_size: 16}\n"
    )
    answer = cli("train", "old.yaml")
    assert answer.code == 5
    (run,) = (tmp_path / "runs").iterdir()
    assert f"rlx check env {run.name}" in answer.err
    checked = cli("check", "env", run.name)
    assert checked.code == 1
    assert "not (observation, info)" in checked.out


def test_a_reset_without_seed_is_named_with_its_right_arguments(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "rlx.toml").touch()
    (tmp_path / "old.py").write_text(OLD_ENV.replace("def reset(self, **options)", "def reset(self)"))
    checked = cli("check", "env", "old.py:Old")
    assert checked.code == 1
    assert "does not take seed and options" in checked.out
    assert "def reset(self, *, seed=None, options=None)" in checked.out
    assert "3 of 1 calls" not in checked.out


def test_a_deleted_snapshot_is_named_with_what_can_be_done(cli: Any, make_run: Any) -> None:
    run = make_run("lost")
    (run.path / "config_snapshot.yaml").unlink()
    for command in (("info",), ("resume",), ("config", "show"), ("train", "--more")):
        answer = cli(*command, "lost_001", *(["--seeds", "2"] if "--more" in command else []))
        assert answer.code == 6, command
        assert "hint: restore lost_001/config_snapshot.yaml from a copy" in answer.err
        assert "rlx rm lost_001" in answer.err
    assert cli("rm", "lost_001", "--yes").code == 0


def test_a_policy_is_not_a_run_and_the_hint_names_the_run(cli: Any, make_run: Any) -> None:
    make_run("one")
    answer = cli("info", "one_001:best")
    assert answer.code == 2
    assert "hint: use one_001;" in answer.err


@pytest.mark.slow
def test_runs_of_different_environments_and_algorithms_lead_to_a_training_that_works(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "rlx.toml").touch()
    small = "total_timesteps: 64, rollout_steps: 8"
    for name, env, algo in (("one", "CartPole-v1", "ppo, batch_size: 16"), ("two", "Acrobot-v1", "a2c")):
        text = f"run_name: {name}\nenv: {{id: {env}}}\nalgo: {{name: {algo}, {small}}}\n"
        text += "eval: {report_episodes: 2, episodes: 1}\n"
        (tmp_path / f"{name}.yaml").write_text(text)
        assert cli("train", f"{name}.yaml").code == 0
    answer = cli("compare", "one_001", "two_001", "--json")
    assert answer.code == 6
    (command,) = answer.data["candidates"][0]["commands"]
    assert cli(*command.split()[1:]).code == 0
    assert cli("compare", "one_001", "two_002").code == 0
