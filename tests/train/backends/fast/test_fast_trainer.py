"""The fast backend holds the trainer's contract in every kind of space."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from rlx.config.schema import Experiment
from rlx.envs.make import inspect
from rlx.errors import CheckpointInvalid, JobFailed
from rlx.evaluate.trained_policy import load as load_policy
from rlx.testing import RecordingSession, TrainerContract, digest
from rlx.train.backends.fast.fast_trainer import FastTrainer
from rlx.train.backends.sb3.sb3_trainer import Sb3Trainer
from tests.train.backends.sb3_examples import TOYS, tiny


def fast(**settings: Any) -> Experiment:
    return tiny(**{"total_timesteps": 256, **settings}).model_copy(update={"backend": "fast"})


def rehearse(experiment: Experiment, folder: Path, *, trainer: Any = FastTrainer, **settings: Any) -> RecordingSession:
    """Train once and return the session."""
    session = RecordingSession(experiment, folder, root=folder, **settings)
    trainer().train(session)
    return session


class TestDiscrete(TrainerContract):
    trainer = FastTrainer

    def experiment(self) -> Experiment:
        return fast()


class TestBox(TrainerContract):
    trainer = FastTrainer

    def experiment(self) -> Experiment:
        return fast(env={"id": "Pendulum-v1", "normalize": {"obs": True, "reward": True}})


class TestBitsFromChoices(TrainerContract):
    trainer = FastTrainer

    def experiment(self) -> Experiment:
        return fast(env={"id": f"{TOYS}:Switches"})


class TestLateResets(TrainerContract):
    trainer = FastTrainer

    def experiment(self) -> Experiment:
        env = {"id": "tests.envs.swarm:Late", "num_envs": 3, "vectorization": "auto", "kwargs": {"horizon": 9}}
        return fast(env={**env, "normalize": {"obs": True}}, batch_size=24)


VARIATIONS: dict[str, dict[str, Any]] = {
    "schedules": {"learning_rate": {"linear": [1e-2, 0]}, "clip_range": {"cosine": [0.3, 0.1]}},
    "normalised": {"env": {"normalize": {"obs": True, "reward": True}}},
    "only observations normalised": {"env": {"normalize": {"obs": True}}},
    "dials": {"env": {"id": f"{TOYS}:Dials"}, "policy": {"hidden_sizes": [8, 4], "activation": "relu"}},
    "dict observations, normalised": {
        "env": {"id": f"{TOYS}:Mixed", "normalize": {"obs": True}},
        "policy": {"type": "multi", "activation": "gelu"},
    },
    "discrete observations": {"env": {"id": "FrozenLake-v1"}, "policy": {"hidden_sizes": []}},
    "masks": {"algorithm": "maskable_ppo"},
    "value clipping, early stop": {"clip_range_value": 0.2, "target_kl": 0.001, "entropy_coef": 0.01},
    "its own vector": {"env": {"vectorization": "auto"}},
    "processes": {"env": {"vectorization": "async"}},
    "one env": {"env": {"num_envs": 1}},
}


@pytest.mark.parametrize("name", VARIATIONS)
def test_every_variation_trains_saves_resumes_exactly_loads_and_predicts(name: str, tmp_path: Path) -> None:
    experiment = fast(**{"total_timesteps": 128, **VARIATIONS[name]})
    whole = rehearse(experiment, tmp_path / "whole")
    assert whole.is_complete
    stopped = rehearse(experiment, tmp_path / "part", stop_at_poll=whole.polls // 2)
    assert not stopped.is_complete
    resumed = rehearse(experiment, tmp_path / "part", checkpoint=stopped.saved)
    assert resumed.saved.step == whole.saved.step
    if name == "processes":
        assert resumed.saved.resume == "boundary"
        assert "environment state" in resumed.saved.missing
    else:
        assert (resumed.saved.resume, resumed.saved.missing) == ("exact", "")
        assert digest(resumed.saved) == digest(whole.saved)
        assert resumed.rows[-1] == whole.rows[-1]
    policy = load_policy(tmp_path / "part/latest")
    masks = np.ones((4, 4), dtype=bool) if experiment.algo.name == "maskable_ppo" else None
    np.testing.assert_array_equal(policy.predict(whole.observations, masks=masks), resumed.greedy)


def test_the_rows_are_those_of_sb3(tmp_path: Path) -> None:
    for env, algo in (("CartPole-v1", {}), ("Pendulum-v1", {"clip_range_value": 0.2})):
        experiment = tiny("ppo", env={"id": env, "wrappers": [{"time_limit": {"max_steps": 20}}]}, **algo)
        ours, theirs = (rehearse(experiment, tmp_path / f"{env}_{kind.name}", trainer=kind)
                        for kind in (FastTrainer, Sb3Trainer))  # fmt: skip
        assert ours.rows[-1][1].keys() == theirs.rows[-1][1].keys()
        assert [step for step, _ in ours.rows] == [step for step, _ in theirs.rows]


def test_a_stop_asked_for_during_a_long_rollout_saves_the_boundary_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlx.train.rollout_watch.WORTH", 0)  # every rollout is long enough to be marked
    experiment = fast(rollout_steps=64, batch_size=64, total_timesteps=512, env={"normalize": {"obs": True}})
    whole = rehearse(experiment, tmp_path / "whole")
    stopped = rehearse(experiment, tmp_path / "part", stop_at_poll=100)
    assert stopped.saved.step == 128
    assert digest(rehearse(experiment, tmp_path / "part", checkpoint=stopped.saved).saved) == digest(whole.saved)


class Gambler(RecordingSession):
    """A session whose evaluations draw from every generator."""

    def after_update(self, step: int, metrics: Callable[[], Mapping[str, float]], **arguments: Any) -> bool:
        random.random()
        np.random.rand(3)
        arguments["policy"].predict(self.observations, deterministic=False)
        return super().after_update(step, metrics, **arguments)


def test_what_an_evaluation_draws_changes_nothing(tmp_path: Path) -> None:
    quiet = rehearse(fast(), tmp_path / "quiet")
    gambler = Gambler(fast(), tmp_path / "gambler", root=tmp_path)
    FastTrainer().train(cast("Any", gambler))
    assert digest(gambler.saved) == digest(quiet.saved)
    assert gambler.saved.state["random"]["python"] == quiet.saved.state["random"]["python"]


@pytest.mark.parametrize(
    "settings",
    [{"algorithm": "a2c"}, {"algorithm": "recurrent_ppo"}, {"env": {"id": "Pendulum-v1"}, "use_sde": True},
     {"env": {"id": f"{TOYS}:Pictures"}}, {"policy": {"type": "cnn"}}, {"policy": {"type": "nets.py:Mine"}},
     {"policy": {"kwargs": {"ortho_init": False}}}, {"env": {"id": "FrozenLake-v1", "normalize": {"obs": True}}}],
)  # fmt: skip
def test_what_it_cannot_train_is_refused_with_a_way_out(settings: dict[str, Any]) -> None:
    experiment = tiny(**settings)
    found = FastTrainer().check(experiment, inspect(experiment.env, root=Path.cwd()))
    assert [problem.hint for problem in found if problem.is_error]


def test_a_gpu_is_refused() -> None:
    experiment = tiny("ppo").model_copy(update={"device": "cuda"})
    found = FastTrainer().check(experiment, inspect(experiment.env, root=Path.cwd()))
    assert [problem.key for problem in found] == ["device"]


def test_a_checkpoint_without_its_normaliser_or_with_another_is_refused(tmp_path: Path) -> None:
    saved = rehearse(fast(env={"normalize": {"obs": True}}), tmp_path).saved
    with pytest.raises(CheckpointInvalid, match="normaliser of the observations is missing"):
        FastTrainer().load(replace(saved, state={**saved.state, "normalizer": None}))
    saved.state["normalizer"]["obs"][""]["mean"] += 1
    with pytest.raises(CheckpointInvalid, match="not the one of its training"):
        FastTrainer().load(saved)


def test_a_checkpoint_of_another_backend_or_network_is_refused(tmp_path: Path) -> None:
    saved = rehearse(tiny("ppo"), tmp_path / "sb3", trainer=Sb3Trainer).saved
    with pytest.raises(CheckpointInvalid, match="is of sb3's `ppo`, not of fast's `ppo`"):
        rehearse(fast(), tmp_path, checkpoint=saved)
    saved = rehearse(fast(), tmp_path / "fast").saved
    with pytest.raises(CheckpointInvalid, match=r"weights do not fit.*is of shape \(8, 4\), not \(9, 4\)"):
        rehearse(fast(policy={"hidden_sizes": [9]}), tmp_path, checkpoint=saved)
    with pytest.raises(CheckpointInvalid, match=r"weights do not fit.*absent"):
        rehearse(fast(policy={"hidden_sizes": [8, 8]}), tmp_path, checkpoint=saved)


def test_weights_that_are_not_finite_are_named(tmp_path: Path) -> None:
    with pytest.raises(JobFailed, match=r"is (nan|inf|-inf) at step"), np.errstate(all="ignore"):
        rehearse(fast(learning_rate=1e38, max_grad_norm=1e30), tmp_path)


TORCH_FREE = """
import sys, pathlib
from rlx.testing import RecordingSession, digest
from rlx.train.backends.fast.fast_trainer import FastTrainer
from rlx.config.load import parse
experiment = parse({
    "env": {"id": "CartPole-v1", "num_envs": 8},
    "algo": {"name": "ppo", "rollout_steps": 256, "batch_size": 2048, "update_epochs": 4, "total_timesteps": 4096},
})
session = RecordingSession(experiment, pathlib.Path(sys.argv[1]), root=pathlib.Path(sys.argv[1]))
FastTrainer().train(session)
FastTrainer().load(session.saved)
assert "torch" not in sys.modules
print(digest(session.saved))
"""


def test_it_needs_no_torch_and_gives_the_same_weights_on_one_core_and_on_two(tmp_path: Path) -> None:
    found = set()
    for threads in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", TORCH_FREE, str(tmp_path / threads)], check=True, capture_output=True, text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
        )  # fmt: skip
        found.add(done.stdout)
    assert len(found) == 1
