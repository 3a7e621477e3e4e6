"""A learner labels its resumes honestly and continues on fresh ground where it must."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlx.config.load import parse
from rlx.envs.vector import env_seeds
from rlx.errors import CheckpointInvalid
from rlx.testing import digest
from rlx.train.backends.sb3.sb3_learner import Sb3Learner
from tests.train.backends.sb3_examples import TOYS, rehearse, tiny


def learner_of(experiment: Any, root: Path, **settings: Any) -> Sb3Learner:
    learner = Sb3Learner(experiment, root=root, **{"seed": 0, **settings})
    learner.close()
    return learner


def test_an_environment_that_cannot_be_captured_makes_the_resume_a_boundary(tmp_path: Path) -> None:
    experiment = tiny("ppo", env={"id": f"{TOYS}:Opaque"})
    whole = rehearse(experiment, tmp_path / "whole")
    assert whole.saved.resume == "boundary"
    assert "stream" in whole.saved.missing
    assert whole.saved.state["env"] is None
    stopped = rehearse(experiment, tmp_path / "part", stop_at_poll=whole.polls // 2)
    resumed = rehearse(experiment, tmp_path / "part", checkpoint=stopped.saved)
    assert resumed.is_complete
    assert resumed.saved.step == whole.saved.step


def test_box2d_is_a_boundary_and_mujoco_is_exact(tmp_path: Path) -> None:
    lander = learner_of(tiny("ppo", env={"id": "LunarLander-v3"}), tmp_path)
    assert (lander.fidelity.label, "world" in lander.fidelity.missing) == ("boundary", True)
    assert learner_of(tiny("ppo", env={"id": "InvertedPendulum-v5"}), tmp_path).fidelity.label == "exact"


def test_mujoco_resumes_bit_for_bit(tmp_path: Path) -> None:
    experiment = tiny("ppo", env={"id": "InvertedPendulum-v5"})
    whole = rehearse(experiment, tmp_path / "whole")
    stopped = rehearse(experiment, tmp_path / "part", stop_at_poll=whole.polls // 2)
    assert digest(rehearse(experiment, tmp_path / "part", checkpoint=stopped.saved).saved) == digest(whole.saved)


def test_an_environment_that_can_no_longer_be_captured_weakens_the_label(tmp_path: Path) -> None:
    session = rehearse(tiny("ppo", env={"id": f"{TOYS}:Opaque", "kwargs": {"after": 10**9}}), tmp_path / "never")
    assert session.saved.resume == "exact"
    session = rehearse(tiny("ppo", env={"id": f"{TOYS}:Opaque", "kwargs": {"after": 40}}), tmp_path / "later")
    assert session.saved.resume in ("boundary", "warm")
    assert session.saved.missing


def test_a_boundary_resume_starts_from_new_seeds(tmp_path: Path) -> None:
    experiment = tiny("ppo", env={"id": f"{TOYS}:Opaque"})
    session = rehearse(experiment, tmp_path, stop_at_poll=10)
    starts = []
    for checkpoint in (None, session.saved, replace(session.saved, state={**session.saved.state, "attempt": 1})):
        learner = Sb3Learner(experiment, root=tmp_path, seed=0)
        learner.begin() if checkpoint is None else learner.restore(checkpoint)
        starts.append(np.asarray(learner.algorithm._last_obs).tobytes())
        learner.close()
    assert len(set(starts)) == 3


def test_environments_start_from_the_seeds_of_the_training_seed(tmp_path: Path) -> None:
    learner = Sb3Learner(tiny("ppo"), root=tmp_path, seed=3)
    learner.begin()
    seeds: Any = learner.env.env.np_random_seed  # type: ignore[attr-defined]
    learner.close()
    assert list(seeds) == env_seeds(3, 2)


def test_the_number_of_threads_is_the_configs_and_is_kept_by_a_resume(tmp_path: Path) -> None:
    document = {"env": {"id": "CartPole-v1", "num_envs": 2}, "resources": {"cores": 2},
                "algo": {"name": "ppo", "rollout_steps": 16, "total_timesteps": 64}}  # fmt: skip
    try:
        saved = rehearse(parse(document), tmp_path).saved
        assert saved.state["threads"] == torch.get_num_threads() == 2
        single = tiny("ppo", total_timesteps=10**6)
        learner = Sb3Learner(single, root=tmp_path, seed=0)
        assert torch.get_num_threads() == 1
        learner.close()
    finally:
        torch.set_num_threads(1)


def test_a_checkpoint_of_another_algorithm_is_refused(tmp_path: Path) -> None:
    saved = rehearse(tiny("ppo"), tmp_path / "ppo").saved
    with pytest.raises(CheckpointInvalid, match="is of `ppo`, not of `a2c`"):
        rehearse(tiny("a2c"), tmp_path / "a2c", checkpoint=saved)


def test_a_checkpoint_of_another_network_is_refused(tmp_path: Path) -> None:
    saved = rehearse(tiny("ppo"), tmp_path / "one").saved
    with pytest.raises(CheckpointInvalid, match="do not fit the network"):
        rehearse(tiny("ppo", policy={"hidden_sizes": [9]}), tmp_path / "two", checkpoint=saved)


def test_success_is_counted(tmp_path: Path) -> None:
    session = rehearse(tiny("ppo", env={"id": f"{TOYS}:Goal"}), tmp_path)
    row = session.rows[-1][1]
    assert 0.5 < row["rollout/success_rate"] < 1
    assert row["rollout/length_mean"] == 7
    assert row["rollout/return_mean"] == 7


ALGORITHM = '''
from stable_baselines3 import PPO

class Patient(PPO):
    """Counts what it does."""

    def train(self):
        self.calls = getattr(self, "calls", 0) + 1
        super().train()
        self.logger.record("train/calls", self.calls)
'''


def test_an_algorithm_of_ones_own_trains_and_says_what_a_resume_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlx.train.rollout_watch.WORTH", 0)  # mark every rollout, however slow the machine is
    (tmp_path / "algos").mkdir()
    (tmp_path / "algos/patient.py").write_text(ALGORITHM)
    experiment = tiny("algos/patient.py:Patient", total_timesteps=128, kwargs={"n_steps": 32, "batch_size": 32})
    session = rehearse(experiment, tmp_path / "out", root=tmp_path)
    assert session.rows[-1][1]["train/calls"] == 2
    assert session.saved.resume == "warm"
    assert "algos/patient.py:Patient" in session.saved.missing
    stopped = rehearse(experiment, tmp_path / "part", root=tmp_path, stop_at_poll=40)
    assert stopped.saved.step == 64
    assert rehearse(experiment, tmp_path / "part", root=tmp_path, checkpoint=stopped.saved).is_complete
