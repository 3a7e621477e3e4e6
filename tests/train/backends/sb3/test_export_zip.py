"""An exported policy is SB3's own: it opens without rlx and acts as the checkpoint does."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from stable_baselines3.common.vec_env import VecNormalize

from rlx.envs.make import make_env
from rlx.errors import MissingExtra, UsageError
from rlx.runs.checkpoints.checkpoint import Checkpoint
from rlx.testing import RecordingSession
from rlx.train.backends.fast.fast_trainer import FastTrainer
from rlx.train.backends.sb3 import requirements
from rlx.train.backends.sb3.sb3_trainer import Sb3Trainer, export
from rlx.train.backends.sb3.vec_env import SpacesOnly
from tests.train.backends.sb3_examples import TOYS, tiny

TRAINERS: dict[str, Any] = {"fast": FastTrainer, "sb3": Sb3Trainer}
NORMALIZED = {"normalize": {"obs": True, "reward": True}}
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "discrete": ("ppo", {}, {}),
    "discrete, normalised": ("ppo", NORMALIZED, {}),
    "box": ("ppo", {"id": "Pendulum-v1"}, {}),
    "box, normalised": ("ppo", {"id": "Pendulum-v1", **NORMALIZED}, {"activation": "relu"}),
    "dict, normalised": ("ppo", {"id": f"{TOYS}:Mixed", **NORMALIZED}, {"type": "multi"}),
    "multi binary": ("ppo", {"id": f"{TOYS}:Switches"}, {}),
    "multi discrete": ("ppo", {"id": f"{TOYS}:Dials"}, {}),
    "masked": ("maskable_ppo", {}, {}),
}


def trained(backend: str, experiment: Any, folder: Path) -> Checkpoint:
    session = RecordingSession(experiment.model_copy(update={"backend": backend}), folder, root=folder)
    TRAINERS[backend]().train(session)
    return session.saved


def observations(space: gymnasium.Space[Any], count: int = 1000) -> Any:
    """Return a batch of observations as the environment might give them."""
    space.seed(0)
    if isinstance(space, gymnasium.spaces.Dict):
        return {key: observations(part, count) for key, part in space.spaces.items()}
    return np.stack([space.sample() for _ in range(count)])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("backend", TRAINERS)
def test_the_exported_policy_takes_the_same_greedy_actions(backend: str, case: str, tmp_path: Path) -> None:
    algorithm, env, policy = CASES[case]
    experiment = tiny(algorithm, env=env, policy=policy)
    saved = trained(backend, experiment, tmp_path / "run")
    made = make_env(experiment.env, root=tmp_path)
    seen, masks = observations(made.observation_space), None

    loader, written = export(saved, tmp_path / "policy.zip")

    module, _, name = loader.partition(":")
    model = getattr(importlib.import_module(module), name).load(tmp_path / "policy.zip", device="cpu")
    shown = seen
    if "normalised" in case:
        scales = VecNormalize.load(str(written[1]), SpacesOnly(made.observation_space, made.action_space))
        shown = scales.normalize_obs(seen)
    if algorithm == "maskable_ppo":
        masks = np.random.default_rng(0).random((1000, 4)) < 0.5
        masks[:, 0] |= ~masks.any(axis=1)
    theirs, _ = model.predict(shown, deterministic=True, **({} if masks is None else {"action_masks": masks}))
    ours = TRAINERS[backend]().load(saved).predict(seen, masks=masks)
    assert (len(written) == 2) == ("normalised" in case)
    assert model.num_timesteps == saved.step
    if isinstance(made.action_space, gymnasium.spaces.Box):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(ours, theirs)
    made.close()


def test_it_opens_and_trains_on_where_rlx_is_not_installed(tmp_path: Path) -> None:
    experiment = tiny("ppo", learning_rate={"linear": [1e-3, 0]}, clip_range={"cosine": [0.2, 0.1]})
    export(trained("fast", experiment, tmp_path / "run"), tmp_path / "policy.zip")
    code = (
        "import sys; sys.modules['rlx'] = None\n"
        "from stable_baselines3 import PPO\n"
        "from stable_baselines3.common.env_util import make_vec_env\n"
        f"model = PPO.load({str(tmp_path / 'policy.zip')!r}, env=make_vec_env('CartPole-v1', 2), device='cpu')\n"
        "model.learn(64, reset_num_timesteps=False)\n"
        "print(model.learning_rate, model.clip_range(0.0), model.num_timesteps)\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["0.001", "0.2", "192"], done.stderr


def test_an_off_policy_algorithm_keeps_its_buffer_size(tmp_path: Path) -> None:
    from stable_baselines3 import DQN

    loader, _ = export(trained("sb3", tiny("dqn"), tmp_path / "run"), tmp_path / "policy.zip")
    assert loader == "stable_baselines3:DQN"
    assert DQN.load(tmp_path / "policy.zip").buffer_size == 60


def test_observations_that_sb3_cannot_read_are_refused(tmp_path: Path) -> None:
    saved = trained("fast", tiny("ppo", env={"id": f"{__name__}:Pairs"}), tmp_path / "run")
    with pytest.raises(UsageError, match="cannot be exported: SB3 cannot read Tuple observations"):
        export(saved, tmp_path / "policy.zip")
    assert not (tmp_path / "policy.zip").exists()


def test_without_sb3_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = trained("fast", tiny("ppo"), tmp_path / "run")
    monkeypatch.setattr(requirements, "PACKAGES", ("no_such_package",))
    with pytest.raises(MissingExtra) as caught:
        export(saved, tmp_path / "policy.zip")
    assert caught.value.hint == "pip install 'rlx[sb3]'"


class Pairs(gymnasium.Env[Any, Any]):
    """Observations in two parts."""

    observation_space = gymnasium.spaces.Tuple([gymnasium.spaces.Discrete(2), gymnasium.spaces.Box(0, 1, (2,))])
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.observation_space.sample(), 1.0, bool(self.np_random.random() < 0.2), False, {}
