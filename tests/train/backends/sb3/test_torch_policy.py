"""A loaded policy is the trained one: normaliser, memory, masks and custom classes included."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rlx.envs.global_rng import GlobalGenerators
from rlx.errors import CheckpointInvalid, NotFound
from rlx.evaluate.policy import rebuild
from rlx.evaluate.trained_policy import load
from rlx.runs.checkpoints import checkpoint as checkpoints
from rlx.runs.checkpoints.checkpoint import Checkpoint
from rlx.train.backends.sb3.sb3_learner import Sb3Learner
from rlx.train.backends.sb3.sb3_trainer import Sb3Trainer
from tests.train.backends.sb3_examples import TOYS, rehearse, tiny


def test_the_normaliser_is_the_training_one_to_the_last_bit(tmp_path: Path) -> None:
    experiment = tiny("ppo", env={"id": "Pendulum-v1", "normalize": {"obs": True, "clip": 1.5}})
    session = rehearse(experiment, tmp_path)
    learner = Sb3Learner(experiment, root=tmp_path, seed=0)
    learner.begin()
    learner.restore(session.saved)
    learner.close()
    policy: Any = Sb3Trainer().load(session.saved)
    observations = np.random.default_rng(0).normal(0, 5, size=(1000, 3)).astype(np.float32)
    np.testing.assert_array_equal(policy._normalise(observations), learner.normalizer.normalize_obs(observations))  # type: ignore[union-attr]
    np.testing.assert_array_equal(policy.predict(observations), learner.policy.predict(observations))


def test_only_the_parts_with_a_scale_are_normalised(tmp_path: Path) -> None:
    experiment = tiny("ppo", env={"id": f"{TOYS}:Mixed", "normalize": {"obs": True}}, policy={"type": "multi"})
    saved = rehearse(experiment, tmp_path).saved
    assert set(saved.state["normalizer"]["obs"]) == {"numbers"}


def test_a_recurrent_policy_remembers_each_row_until_its_episode_ends(tmp_path: Path) -> None:
    session = rehearse(tiny("recurrent_ppo", env={"id": "Pendulum-v1"}), tmp_path)
    policy = Sb3Trainer().load(session.saved)
    observations = session.observations
    first, second = policy.predict(observations), policy.predict(observations)
    assert not np.array_equal(first, second)
    policy.reset(np.array([True, False, False, True]))
    third = policy.predict(observations)
    np.testing.assert_array_equal(third[[0, 3]], first[[0, 3]])
    assert not np.array_equal(third[[1, 2]], first[[1, 2]])
    policy.reset()
    np.testing.assert_array_equal(policy.predict(observations), first)
    np.testing.assert_allclose(policy.predict(observations[:2]), first[:2], rtol=1e-6)  # fewer rows: a new beginning


def test_masks_are_obeyed(tmp_path: Path) -> None:
    policy = Sb3Trainer().load(rehearse(tiny("maskable_ppo"), tmp_path).saved)
    observations = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    masks = np.random.default_rng(1).random((200, 4)) < 0.5
    masks[np.arange(200), np.arange(200) % 4] = True
    for deterministic in (True, False):
        actions = policy.predict(observations, masks=masks, deterministic=deterministic)
        assert masks[np.arange(200), actions].all()


def test_deterministic_is_obeyed(tmp_path: Path) -> None:
    policy = Sb3Trainer().load(rehearse(tiny("ppo", env={"id": "Pendulum-v1"}), tmp_path).saved)
    observations = np.zeros((50, 3), dtype=np.float32)
    assert len(np.unique(policy.predict(observations))) == 1
    assert len(np.unique(policy.predict(observations, deterministic=False))) > 25
    assert policy.predict(observations, deterministic=False).dtype == np.float32


def test_loading_draws_nothing_from_the_process(tmp_path: Path) -> None:
    saved = rehearse(tiny("sac", use_sde=True), tmp_path).saved
    before = GlobalGenerators.now().document()
    Sb3Trainer().load(saved)
    np.testing.assert_array_equal(before["torch"], GlobalGenerators.now().document()["torch"])
    assert before["python"] == GlobalGenerators.now().document()["python"]


def test_state_dependent_noise_is_drawn_from_the_loaded_deviations(tmp_path: Path) -> None:
    saved = rehearse(tiny("ppo", env={"id": "Pendulum-v1"}, use_sde=True), tmp_path).saved
    silent = {**saved.policy, "log_std": np.full_like(saved.policy["log_std"], -50)}
    policy = Sb3Trainer().load(replace(saved, policy=silent))
    observations = np.ones((20, 3), dtype=np.float32)
    np.testing.assert_allclose(
        policy.predict(observations, deterministic=False), policy.predict(observations), atol=1e-4
    )


def test_weights_that_lack_a_layer_or_have_one_too_many_are_refused(tmp_path: Path) -> None:
    saved = rehearse(tiny("ppo"), tmp_path).saved
    lacking = {key: value for key, value in saved.policy.items() if key != "value_net.bias"}
    for policy in (lacking, {**saved.policy, "extra": np.zeros(1)}, {**saved.policy, "value_net.bias": np.zeros(2)}):
        with pytest.raises(CheckpointInvalid, match="do not fit the network"):
            Sb3Trainer().load(replace(saved, policy=policy))


@pytest.mark.parametrize("name", ["ppo", "sac", "recurrent_ppo", "maskable_ppo"])
def test_a_policy_is_known_again_by_what_the_training_path_did(name: str, tmp_path: Path) -> None:
    saved = rehearse(tiny(name), tmp_path).saved
    assert len(saved.parity["greedy"]) == len(saved.parity["observations"])
    rebuild(saved)
    other = rehearse(tiny(name), tmp_path / "other", seed=1).saved
    with pytest.raises(CheckpointInvalid, match="acts differently than in training"):
        rebuild(replace(saved, policy={key: -10 * array for key, array in other.policy.items()}))


@pytest.fixture
def normalised(tmp_path: Path) -> Checkpoint:
    return rehearse(tiny("ppo", env={"normalize": {"obs": True}}), tmp_path).saved


def test_a_checkpoint_without_its_normaliser_is_refused(normalised: Checkpoint) -> None:
    rebuild(normalised)
    for lost in (None, {**normalised.state["normalizer"], "obs": {}}):
        with pytest.raises(CheckpointInvalid, match="the normaliser of the observations is missing"):
            rebuild(replace(normalised, state={**normalised.state, "normalizer": lost}))
    bare = {key: value for key, value in normalised.state.items() if key != "normalizer"}
    with pytest.raises(CheckpointInvalid, match="the normaliser of the observations is missing"):
        rebuild(replace(normalised, state=bare))


def test_a_checkpoint_with_another_seeds_normaliser_is_refused(normalised: Checkpoint, tmp_path: Path) -> None:
    other = rehearse(tiny("ppo", env={"normalize": {"obs": True}}), tmp_path / "other", seed=1).saved
    with pytest.raises(CheckpointInvalid, match="the normaliser of the observations is not the one of its training"):
        rebuild(replace(normalised, state={**normalised.state, "normalizer": other.state["normalizer"]}))


POLICY = '''
import torch
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from .parts import Doubled

class Mine(ActorCriticPolicy):
    """A wider value net, and a parameter of its own."""

    def __init__(self, observation_space, action_space, lr_schedule, *, width=4, use_sde=False):
        super().__init__(observation_space, action_space, lr_schedule, net_arch={"pi": [4], "vf": [width]})

class Extractor(BaseFeaturesExtractor):
    def __init__(self, observation_space, size=5):
        super().__init__(observation_space, size)
        self.layer = Doubled(observation_space.shape[0], size)

    def forward(self, observations):
        return torch.relu(self.layer(observations))
'''
PARTS = """
import torch

class Doubled(torch.nn.Linear):
    def forward(self, values):
        return 2 * super().forward(values)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "a project"
    (root / "policies").mkdir(parents=True)
    (root / "rlx.toml").touch()
    (root / "policies/mine.py").write_text(POLICY)
    (root / "policies/parts.py").write_text(PARTS)
    return root


@pytest.mark.parametrize(
    "policy",
    [
        {"type": "policies/mine.py:Mine", "kwargs": {"width": 6}},
        {
            "kwargs": {
                "features_extractor_class": "policies/mine.py:Extractor",
                "features_extractor_kwargs": {"size": 3},
            }
        },
        {"kwargs": {"optimizer_class": "torch.optim:AdamW", "ortho_init": False}},
    ],
    ids=["class", "extractor", "optimizer"],
)
def test_a_policy_of_ones_own_trains_resumes_and_loads_where_the_project_was_moved(project: Path, policy: Any) -> None:
    experiment = tiny("ppo", policy=policy)
    folder = project / "runs/mine_001/seed_0/checkpoints"
    whole = rehearse(experiment, folder, root=project)
    stopped = rehearse(experiment, project / "part", root=project, stop_at_poll=whole.polls // 2)
    resumed = rehearse(experiment, project / "part", root=project, checkpoint=stopped.saved)
    assert resumed.saved.resume == "exact"
    for name, array in whole.saved.policy.items():
        np.testing.assert_array_equal(resumed.saved.policy[name], array)
    moved = project.with_name("elsewhere")
    shutil.move(project, moved)
    for marker in (True, False):
        loaded = load(moved / "runs/mine_001/seed_0/checkpoints/latest")
        np.testing.assert_array_equal(loaded.predict(whole.observations), whole.greedy)
        if marker:
            (moved / "rlx.toml").unlink()  # without it, the folder that has `runs` is the project


def test_a_policy_class_that_is_gone_is_said_so(project: Path) -> None:
    folder = project / "runs/mine_001/seed_0/checkpoints"
    rehearse(tiny("ppo", policy={"type": "policies/mine.py:Mine"}), folder, root=project)
    (project / "policies/mine.py").rename(project / "policies/other.py")
    with pytest.raises(NotFound, match=r"policies/mine\.py"):
        load(folder / "latest")


def test_a_checkpoint_is_loaded_without_its_environment(tmp_path: Path) -> None:
    saved = rehearse(
        tiny("ppo", env={"id": f"{TOYS}:Pictures"}, policy={"type": "cnn"}, total_timesteps=32), tmp_path
    ).saved
    config = {**saved.config, "env": {**saved.config["env"], "id": "Gone-v0"}}
    policy = Sb3Trainer().load(replace(saved, config=config))
    assert policy.predict(np.zeros((3, 36, 40, 1), dtype=np.uint8)).shape == (3,)


def test_the_present_threads_are_left_alone(tmp_path: Path) -> None:
    saved = checkpoints.read(rehearse(tiny("ppo"), tmp_path).saved.path)
    torch.set_num_threads(1)
    Sb3Trainer().load(saved)
    assert torch.get_num_threads() == 1
