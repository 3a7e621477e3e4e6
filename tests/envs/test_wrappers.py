from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rlx.config.schema import Env
from rlx.envs.make import inspect, make_env
from rlx.envs.wrappers import WRAPPERS
from rlx.errors import ConfigError, NotFound


class Camera(gymnasium.Env[Any, Any]):
    """Shows a random picture and two numbers."""

    def __init__(self, with_numbers: bool = False) -> None:
        image = spaces.Box(0, 255, (20, 30, 3), np.uint8)
        self.with_numbers = with_numbers
        numbers = spaces.Box(-1, 1, (2,), np.float32)
        self.observation_space = spaces.Dict(image=image, numbers=numbers) if with_numbers else image
        self.action_space = spaces.Box(-2, 2, (1,), np.float32)

    def _look(self) -> Any:
        image = self.np_random.integers(0, 256, (20, 30, 3), dtype=np.uint8)
        return {"image": image, "numbers": np.zeros(2, np.float32)} if self.with_numbers else image

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self._look(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self._look(), 10.0, False, False, {}


def wrapped(env_id: str, *wrappers: Any, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    return make_env(Env(id=env_id, wrappers=list(wrappers), kwargs=kwargs), root=Path.cwd())


@pytest.fixture(autouse=True)
def _camera() -> Any:
    gymnasium.register("rlx/Camera-v0", entry_point=Camera, max_episode_steps=50)
    yield
    gymnasium.registry.pop("rlx/Camera-v0")


@pytest.mark.parametrize(
    ("env_id", "wrapper", "shape"),
    [
        ("CartPole-v1", {"frame_stack": {"size": 3}}, (3, 4)),
        ("CartPole-v1", "time_aware", (5,)),
        ("CartPole-v1", {"delay": {"steps": 2}}, (4,)),
        ("CartPole-v1", {"reshape": {"shape": [2, 2]}}, (2, 2)),
        ("CartPole-v1", {"sticky_actions": {"probability": 0.5}}, (4,)),
        ("Taxi-v4", "one_hot", (500,)),
        ("Blackjack-v1", "flatten", (45,)),
        ("MountainCar-v0", "rescale_observation", (2,)),
        ("rlx/Camera-v0", "grayscale", (20, 30)),
        ("rlx/Camera-v0", {"resize": {"shape": [8, 6]}}, (8, 6, 3)),
        ("rlx/Camera-v0", {"max_skip": {"skip": 2}}, (20, 30, 3)),
        ("rlx/Camera-v0", "flatten", (1800,)),
        ("CartPole-v1", {"name": "FrameStackObservation", "kwargs": {"stack_size": 2}}, (2, 4)),
    ],
    ids=str,
)
def test_observations_fit_the_space_that_a_wrapper_declares(env_id: str, wrapper: Any, shape: tuple[int, ...]) -> None:
    env = wrapped(env_id, wrapper)
    observation, _ = env.reset(seed=0)
    assert env.observation_space.shape == np.asarray(observation).shape == shape
    assert env.observation_space.contains(observation)
    assert env.observation_space.contains(env.step(env.action_space.sample())[0])


def test_a_discrete_observation_becomes_one_hot() -> None:
    observation, _ = wrapped("FrozenLake-v1", "one_hot").reset(seed=0)
    assert observation.tolist() == [1.0] + [0.0] * 15


def test_one_hot_of_a_vector_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        wrapped("CartPole-v1", "one_hot")
    assert caught.value.hint == "use `flatten`"


def test_actions_are_rescaled_and_clipped() -> None:
    assert wrapped("Pendulum-v1", "rescale_action").action_space.high.tolist() == [1.0]  # type: ignore[attr-defined]
    env = wrapped("Pendulum-v1", "clip_action")
    env.reset(seed=0)
    env.step(np.array([99.0], np.float32))
    assert env.unwrapped.last_u == 2.0  # type: ignore[attr-defined]


def test_rewards_are_clipped_and_scaled_in_the_order_given() -> None:
    env = wrapped("rlx/Camera-v0", {"clip_reward": {"min": -1, "max": 4}}, {"scale_reward": {"scale": 0.5}})
    env.reset(seed=0)
    assert env.step(np.zeros(1, np.float32))[1] == 2.0


def test_repeated_actions_add_up_and_stop_at_the_end() -> None:
    env = wrapped("rlx/Camera-v0", {"time_limit": {"max_steps": 3}}, {"action_repeat": {"repeat": 2}})
    env.reset(seed=0)
    outcomes = [env.step(np.zeros(1, np.float32))[1:4] for _ in range(2)]
    assert outcomes == [(20.0, False, False), (10.0, False, True)]


def test_discretised_actions_and_filtered_keys_and_types() -> None:
    assert wrapped("Pendulum-v1", {"discretize_action": {"bins": 5}}).action_space == spaces.Discrete(5)
    assert isinstance(
        wrapped("MountainCar-v0", {"discretize_observation": {"bins": 4}}).observation_space, spaces.Discrete
    )
    env = wrapped("rlx/Camera-v0", {"filter": {"keys": ["numbers"]}}, with_numbers=True)
    assert list(env.observation_space.spaces) == ["numbers"]  # type: ignore[attr-defined]
    assert wrapped("CartPole-v1", {"dtype": {"dtype": "float64"}}).observation_space.dtype == np.float64


def test_a_time_limit_replaces_the_registered_one(tmp_path: Path) -> None:
    for steps in (3, 900):
        env = Env(id="CartPole-v1", wrappers=["clip_reward", {"time_limit": {"max_steps": steps}}])
        assert inspect(env, root=tmp_path).horizon == steps
    longer = wrapped("CartPole-v1", {"time_limit": {"max_steps": 900}})
    assert longer.spec is not None
    assert longer.spec.max_episode_steps == 900


@pytest.mark.parametrize("steps", [0, -1, "many", 2.5])
def test_an_impossible_time_limit_is_refused(steps: Any) -> None:
    with pytest.raises(ConfigError, match="time_limit"):
        wrapped("CartPole-v1", {"time_limit": {"max_steps": steps}})


def test_a_wrapper_from_the_projects_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import gymnasium\n\nclass Bonus(gymnasium.RewardWrapper):\n"
        "    def __init__(self, env, bonus=1.0):\n        super().__init__(env)\n        self.bonus = bonus\n"
        "    def reward(self, reward):\n        return reward + self.bonus\n\ndef wrong(env):\n    return None\n"
    )
    env = make_env(Env(id="CartPole-v1", wrappers=[{"mine.py:Bonus": {"bonus": 4.0}}]), root=tmp_path)
    env.reset(seed=0)
    assert env.step(0)[1] == 5.0
    with pytest.raises(ConfigError, match="takes no argument `bonnus`"):
        make_env(Env(id="CartPole-v1", wrappers=[{"mine.py:Bonus": {"bonnus": 4.0}}]), root=tmp_path)
    with pytest.raises(ConfigError, match="made a NoneType"):
        make_env(Env(id="CartPole-v1", wrappers=["mine.py:wrong"]), root=tmp_path)
    with pytest.raises(NotFound, match="has no `Bonos`"):
        make_env(Env(id="CartPole-v1", wrappers=["mine.py:Bonos"]), root=tmp_path)


def test_an_unknown_wrapper_names_the_one_that_was_meant() -> None:
    with pytest.raises(ConfigError) as caught:
        wrapped("CartPole-v1", "framestack")
    assert caught.value.hint == "did you mean `frame_stack`?"


def test_a_wrong_argument_of_a_wrapper_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        wrapped("CartPole-v1", {"frame_stack": {"sise": 4}})
    assert caught.value.message == "wrapper `frame_stack` takes no argument `sise`"
    assert caught.value.hint == "did you mean `size`? it takes size, padding"


def test_a_wrapper_that_does_not_fit_says_why() -> None:
    with pytest.raises(ConfigError, match="making wrapper `rescale_action` raised TypeError"):
        wrapped("CartPole-v1", "rescale_action")


@pytest.mark.parametrize("name", ["normalize_observation", "NormalizeReward"])
def test_running_normalisation_points_at_the_config_key(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        wrapped("CartPole-v1", name)
    assert (caught.value.hint or "").startswith("set `env.normalize.")


def test_every_wrapper_says_what_it_does() -> None:
    assert all(wrapper.__doc__ for wrapper in WRAPPERS.values())


class Walker(Camera):
    """Names its reward terms in its own way."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        info = {"reward_forward": np.float32(2.0), "reward_ctrl": -0.5, "note": "fine"}
        return self._look(), 1.5, False, False, info


@pytest.fixture
def _walker() -> Any:
    gymnasium.register("rlx/Walker-v0", entry_point=Walker, max_episode_steps=50)
    yield
    gymnasium.registry.pop("rlx/Walker-v0")


@pytest.mark.usefixtures("_walker")
def test_reward_terms_are_declared_by_the_names_that_infos_have() -> None:
    env = wrapped("rlx/Walker-v0", {"reward_terms": {"forward": "reward_forward", "control": "reward_ctrl"}})
    env.reset(seed=0)
    info = env.step(env.action_space.sample())[4]
    assert info["reward_terms"] == {"forward": 2.0, "control": -0.5}
    assert info["reward_ctrl"] == -0.5


@pytest.mark.usefixtures("_walker")
@pytest.mark.parametrize(("key", "what"), [("reward_froward", "has nothing"), ("note", "has a str")])
def test_a_declared_term_that_infos_do_not_have_is_named(key: str, what: str) -> None:
    env = wrapped("rlx/Walker-v0", {"reward_terms": {"forward": key}})
    env.reset(seed=0)
    with pytest.raises(ConfigError, match=f"info {what} under `{key}`") as caught:
        env.step(env.action_space.sample())
    assert caught.value.hint == "its numbers: reward_forward, reward_ctrl"


def test_mujocos_terms_can_be_declared() -> None:
    pytest.importorskip("mujoco")
    env = wrapped("HalfCheetah-v5", {"reward_terms": {"forward": "reward_forward", "control": "reward_ctrl"}})
    env.reset(seed=0)
    _, reward, _, _, info = env.step(env.action_space.sample())
    env.close()
    assert sum(info["reward_terms"].values()) == pytest.approx(reward)


@pytest.mark.usefixtures("_walker")
def test_the_terms_of_repeated_actions_add_up_to_their_reward() -> None:
    names = {"forward": "reward_forward", "control": "reward_ctrl"}
    env = wrapped("rlx/Walker-v0", {"reward_terms": names}, {"action_repeat": {"repeat": 3}})
    env.reset(seed=0)
    _, reward, _, _, info = env.step(env.action_space.sample())
    assert info["reward_terms"] == {"forward": 6.0, "control": -1.5}
    assert reward == 4.5


@pytest.mark.usefixtures("_walker")
def test_terms_named_outside_of_repeated_actions_are_refused() -> None:
    with pytest.raises(ConfigError, match="last step's terms only") as caught:
        wrapped("rlx/Walker-v0", {"action_repeat": {"repeat": 3}}, {"reward_terms": {"forward": "reward_forward"}})
    assert "before `action_repeat`" in (caught.value.hint or "")
