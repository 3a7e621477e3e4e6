"""The SB3 backend holds the trainer's contract, with all its algorithms."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rlx.config.schema import Experiment
from rlx.evaluate.trained_policy import load as load_policy
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.testing import RecordingSession, TrainerContract, digest
from rlx.train.backends.sb3.sb3_trainer import Sb3Trainer
from tests.train.backends.sb3_examples import ALGORITHMS, CONTINUOUS, TOYS, rehearse, tiny


class TestPpo(TrainerContract):
    trainer = Sb3Trainer

    def experiment(self) -> Experiment:
        return tiny("ppo", total_timesteps=256, env={"vectorization": "auto"})  # CartPole's own vector version


class TestDqn(TrainerContract):
    trainer = Sb3Trainer

    def experiment(self) -> Experiment:
        return tiny("dqn", total_timesteps=160)


VARIATIONS: dict[str, dict[str, Any]] = {
    **{name: {"algorithm": name} for name in ALGORITHMS},
    "ppo, normalised": {"algorithm": "ppo", "env": {"normalize": {"obs": True, "reward": True}}},
    "ppo, schedules": {
        "algorithm": "ppo",
        "learning_rate": {"linear": [1e-2, 0]},
        "clip_range": {"cosine": [0.3, 0.1]},
    },
    "ppo, continuous": {"algorithm": "ppo", "env": {"id": "Pendulum-v1"}},
    "ppo, gsde": {"algorithm": "ppo", "env": {"id": "Pendulum-v1"}, "use_sde": True},
    "ppo, dict observations": {
        "algorithm": "ppo",
        "env": {"id": f"{TOYS}:Mixed"},
        "policy": {"type": "multi"},
    },
    "ppo, images": {
        "algorithm": "ppo",
        "env": {"id": f"{TOYS}:Pictures"},
        "policy": {"type": "cnn"},
        "total_timesteps": 64,
    },
    "ppo, bits": {"algorithm": "ppo", "env": {"id": f"{TOYS}:Switches"}},
    "ppo, dials": {"algorithm": "ppo", "env": {"id": f"{TOYS}:Dials"}},
    "ppo, discrete observations": {"algorithm": "ppo", "env": {"id": "FrozenLake-v1"}},
    "a2c, adam": {"algorithm": "a2c", "rms_prop": False},
    "recurrent_ppo, continuous": {"algorithm": "recurrent_ppo", "env": {"id": "Pendulum-v1"}},
    "dqn, one env, normalised": {
        "algorithm": "dqn",
        "env": {"num_envs": 1, "normalize": {"obs": True, "reward": True}},
    },
    "dqn, dict observations": {
        "algorithm": "dqn",
        "env": {"id": f"{TOYS}:Mixed", "normalize": {"obs": True}},
        "policy": {"type": "multi"},
    },
    "sac, gsde": {"algorithm": "sac", "use_sde": True},
    "sac, fixed entropy": {"algorithm": "sac", "entropy_coef": 0.2, "gradient_steps": -1},
    "td3, one env": {"algorithm": "td3", "env": {"num_envs": 1}},
    "ars, linear, normalised": {
        "algorithm": "ars",
        "env": {"num_envs": 1, "normalize": {"obs": True}},
        "policy": {"hidden_sizes": []},
    },
}


@pytest.mark.parametrize("name", VARIATIONS)
def test_every_algorithm_trains_saves_resumes_exactly_loads_and_predicts(name: str, tmp_path: Path) -> None:
    experiment = tiny(**VARIATIONS[name])
    whole = rehearse(experiment, tmp_path / "whole")
    assert whole.is_complete
    stopped = rehearse(experiment, tmp_path / "part", stop_at_poll=whole.polls // 2)
    assert not stopped.is_complete
    resumed = rehearse(experiment, tmp_path / "part", checkpoint=stopped.saved)
    assert (resumed.saved.resume, resumed.saved.missing) == ("exact", "")
    assert resumed.saved.step == whole.saved.step
    assert digest(resumed.saved) == digest(whole.saved)
    policy = load_policy(tmp_path / "part/latest")
    policy.reset()
    masks = np.ones((4, 4), dtype=bool) if experiment.algo.name == "maskable_ppo" else None
    actions = policy.predict(whole.observations, masks=masks)
    np.testing.assert_array_equal(actions, whole.greedy)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_rows_use_one_vocabulary(name: str, tmp_path: Path) -> None:
    row = rehearse(tiny(name), tmp_path).rows[-1][1]
    expected = {
        "rollout/return_mean",
        "rollout/length_mean",
        "rollout/episodes",
        "train/learning_rate",
        "train/updates",
    }
    if name in CONTINUOUS:
        expected |= {"train/actor_loss", "train/critic_loss", "train/q_mean"} - {"rollout/return_mean"}
        expected -= {"rollout/return_mean", "rollout/length_mean"}  # Pendulum's episodes are longer than this run
    elif "dqn" in name:
        expected |= {"train/loss", "train/exploration_rate", "train/q_mean"}
    elif name == "ars":
        expected |= {"train/step_size", "train/delta_std"}
    else:
        expected |= {"train/policy_loss", "train/value_loss", "train/explained_variance"}
    if "ppo" in name:
        expected |= {"train/entropy", "train/approx_kl", "train/clip_fraction", "train/loss"}
    assert expected <= set(row)
    assert not any(key.startswith("time/") or key.endswith("entropy_loss") for key in row)


@pytest.mark.slow
def test_a_resume_in_another_process_is_exact_too(tmp_path: Path) -> None:
    experiment = tiny("ppo", env={"normalize": {"obs": True, "reward": True}})
    whole = rehearse(experiment, tmp_path / "whole")
    rehearse(experiment, tmp_path / "part", stop_at_poll=whole.polls // 2)
    code = """
import sys, pathlib
sys.path.insert(0, sys.argv[2])
from tests.train.backends.sb3_examples import rehearse, tiny
from rlx.runs.checkpoints import checkpoint
from rlx.testing import digest
folder = pathlib.Path(sys.argv[1])
experiment = tiny("ppo", env={"normalize": {"obs": True, "reward": True}})
print(digest(rehearse(experiment, folder, checkpoint=checkpoint.newest(folder)).saved))
"""
    words = [sys.executable, "-c", code, str(tmp_path / "part"), str(Path(__file__).parents[4])]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == digest(whole.saved)


def test_checking_an_experiment_does_not_import_torch() -> None:
    code = """
import sys, pathlib
from rlx.config.load import parse
from rlx.envs.make import inspect
from rlx.train.trainer import trainer_for
experiment = parse({"env": {"id": "CartPole-v1"}, "algo": {"name": "sac"}, "backend": "sb3"})
found = trainer_for(experiment).check(experiment, inspect(experiment.env, root=pathlib.Path()))
assert found[0].key == "algo.name", found
assert "torch" not in sys.modules and "stable_baselines3" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_warm_start_from_a_checkpoint_without_replay_goes_on(tmp_path: Path) -> None:
    experiment = tiny("dqn")
    whole = rehearse(experiment, tmp_path / "whole")
    stopped = rehearse(experiment, tmp_path / "part", stop_at_poll=whole.polls // 2)
    checkpoints.link(stopped.folder, "latest", "best")
    best = checkpoints.read(stopped.folder / "best")
    assert (best.resume, best.missing) == ("warm", "replay buffer")
    assert rehearse(experiment, tmp_path / "again", checkpoint=best).is_complete


def test_a_stop_asked_for_during_a_long_rollout_saves_the_boundary_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlx.train.rollout_watch.WORTH", 0)  # every rollout is long enough to be marked
    experiment = tiny("ppo", rollout_steps=64, batch_size=64, total_timesteps=512)
    session = rehearse(experiment, tmp_path, stop_at_poll=10)
    assert session.rows == []
    assert session.saved.step == 0
    session = rehearse(experiment, tmp_path, stop_at_poll=64 + 2 + 10)
    assert [step for step, _ in session.rows] == [128]
    assert session.saved.step == 128


def test_a_run_that_is_complete_trains_no_further(tmp_path: Path) -> None:
    whole = rehearse(tiny("ppo"), tmp_path)
    again: RecordingSession = rehearse(tiny("ppo"), tmp_path, checkpoint=whole.saved)
    assert again.rows == []
