"""Recommendations follow from measurements, name their reasons, and their configs load."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.config.load import parse
from rlx.config.schema import Env
from rlx.design.check_spec import check_spec
from rlx.design.env_profile import EnvProfile, profile_env
from rlx.design.knowledge_card import find_card
from rlx.design.recommend import BUFFER_BYTES, DataAtHand, discount, recommend
from rlx.design.spec_draft import draft_spec
from rlx.design.step_cost import Throughput

ROOT = Path(__file__).parents[2]
THROUGHPUT = Throughput({8: 1000.0}, 8)
SHORT = 0.8
CAMERA = """
import gymnasium as gym
import numpy as np

class Camera(gym.Env):
    observation_space = gym.spaces.Box(0, 255, (96, 96, 3), np.uint8)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.image(), {}

    def step(self, action):
        self.steps += 1
        return self.image(), float(action), self.steps >= 20, False, {}

    def image(self):
        return self.np_random.integers(0, 256, (96, 96, 3), dtype=np.uint8)
"""


@pytest.fixture(scope="module")
def profiles() -> dict[str, EnvProfile]:
    ids = ("CartPole-v1", "Pendulum-v1", "MountainCar-v0")
    return {env_id: profile_env(Env(id=env_id), root=ROOT, seconds=SHORT) for env_id in ids}


@pytest.mark.parametrize(
    ("env_id", "first_two"),
    [("CartPole-v1", {"ppo", "dqn"}), ("Pendulum-v1", {"ppo", "sac"}), ("MountainCar-v0", {"dqn", "ppo"})],
)
def test_the_first_two_are_of_two_families(profiles: dict[str, EnvProfile], env_id: str, first_two: set[str]) -> None:
    advice = recommend(profiles[env_id], THROUGHPUT)
    assert {choice.name for choice in advice.ranked[:2]} == first_two
    assert advice.confidence in ("high", "medium", "low")
    assert advice.because


def test_a_reward_that_is_never_met_puts_replay_first(profiles: dict[str, EnvProfile]) -> None:
    assert recommend(profiles["MountainCar-v0"], THROUGHPUT).ranked[0].name == "dqn"


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
def test_every_recommended_config_loads_and_its_batch_fits(profiles: dict[str, EnvProfile], env_id: str) -> None:
    for choice in recommend(profiles[env_id], THROUGHPUT).ranked:
        experiment = parse(choice.config, source="test")
        assert experiment.algo.name == choice.name
        if "batch_size" in choice.config["algo"] and "rollout_steps" in choice.config["algo"]:
            rollout = choice.config["env"]["num_envs"] * choice.config["algo"]["rollout_steps"]
            assert rollout % choice.config["algo"]["batch_size"] == 0


def test_a_replay_buffer_of_images_fits_into_memory(tmp_path: Path) -> None:
    (tmp_path / "camera.py").write_text(CAMERA)
    camera = profile_env(Env(id="camera.py:Camera"), root=tmp_path, seconds=SHORT)
    [dqn] = [choice for choice in recommend(camera, THROUGHPUT).ranked if choice.name == "dqn"]
    size = dqn.config["algo"]["buffer_size"]
    assert 10_000 < size < 100_000
    assert size * 2 * 96 * 96 * 3 < BUFFER_BYTES


def test_every_reason_names_a_card_that_exists(profiles: dict[str, EnvProfile]) -> None:
    for profile in profiles.values():
        for choice in recommend(profile, THROUGHPUT).ranked:
            for reason in choice.reasons:
                assert not reason.card or find_card(reason.card)
                assert reason.document()["sources"]


def test_memory_is_recommended_only_if_the_state_is_hidden(profiles: dict[str, EnvProfile]) -> None:
    profile = profiles["CartPole-v1"]
    hidden = recommend(profile, THROUGHPUT, DataAtHand(is_partially_observable=True))
    points = {choice.name: choice.points for choice in hidden.ranked}
    plain = {choice.name: choice.points for choice in recommend(profile, THROUGHPUT).ranked}
    assert points["recurrent_ppo"] > points["ppo"]
    assert plain["recurrent_ppo"] < plain["ppo"]


def test_measured_values_are_those_of_the_environment(profiles: dict[str, EnvProfile]) -> None:
    cartpole = profiles["CartPole-v1"]
    assert cartpole.horizon == 500
    assert cartpole.rewards.density == 1.0
    assert profiles["MountainCar-v0"].rewards.density == 0.0
    assert 0 < cartpole.step_microseconds < 5000
    assert discount(cartpole) == 0.99
    assert cartpole.signals()["is_discrete"] == 1


SLOW = """
import time

import gymnasium as gym
import numpy as np

class Slow(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(3, np.float32), {}

    def step(self, action):
        time.sleep(0.05)
        self.steps += 1
        return np.full(3, self.steps / 1000, np.float32), 0.0, False, self.steps >= 1000, {}
"""


@pytest.fixture
def slow(tmp_path: Path) -> EnvProfile:
    (tmp_path / "slow.py").write_text(SLOW)
    return profile_env(Env(id="slow.py:Slow"), root=tmp_path, seconds=0.5)


def test_a_slow_environment_whose_end_was_not_seen_has_no_horizon_and_no_sparse_reward(slow: EnvProfile) -> None:
    advice = recommend(slow, THROUGHPUT)
    assert not slow.is_horizon_known
    assert not slow.rewards.is_density_known
    assert discount(slow) == 0.99
    assert advice.ranked[0].name == "sac"
    assert "reward-sparse-start" not in {reason.card for choice in advice.ranked for reason in choice.reasons}


def test_a_slow_environment_is_drafted_and_checked_without_whole_episodes(slow: EnvProfile, tmp_path: Path) -> None:
    """Ten episodes would take ten minutes."""
    del slow
    spec = draft_spec(Env(id="slow.py:Slow"), root=tmp_path, seconds=0.5)
    assert spec.mdp.horizon is None
    checked = check_spec(spec, root=tmp_path, seconds=0.5)
    assert checked.is_sound
    assert "reward terms" in dict(checked.unchecked)
    assert checked.case.episodes == ()
