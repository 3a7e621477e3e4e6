"""Worlds with other constants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rlx.config.schema import Env
from rlx.envs.make import make_env
from rlx.envs.parameter_wrappers import attribute_of
from rlx.errors import ConfigError


def made(tmp_path: Path, env_id: str, **wrapper: object):
    return make_env(Env.model_validate({"id": env_id, "wrappers": [wrapper]}), root=tmp_path)


def test_an_attribute_is_set_and_set_again_after_every_reset(tmp_path: Path) -> None:
    env = made(tmp_path, "CartPole-v1", set_attributes={"gravity": 20})
    assert env.unwrapped.gravity == 20.0  # type: ignore[attr-defined]
    assert isinstance(env.unwrapped.gravity, float)  # type: ignore[attr-defined]
    env.unwrapped.gravity = 1.0  # type: ignore[attr-defined]
    env.reset(seed=0)
    assert env.unwrapped.gravity == 20.0  # type: ignore[attr-defined]


def test_another_gravity_is_another_world(tmp_path: Path) -> None:
    def third(gravity: float) -> np.ndarray:
        env = made(tmp_path, "CartPole-v1", set_attributes={"gravity": gravity})
        env.reset(seed=0)
        return np.array([env.step(1)[0] for _ in range(3)][-1])

    assert not np.allclose(third(9.8), third(20.0))
    assert (third(9.8) == third(9.8)).all()


def test_an_attribute_that_is_absent_is_refused_with_the_one_that_was_meant(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="CartPoleEnv has no attribute `gravty`") as raised:
        made(tmp_path, "CartPole-v1", set_attributes={"gravty": 1})
    assert raised.value.hint == "did you mean `gravity`?"
    with pytest.raises(ConfigError, match=r"has no attribute `physics\.gravity`"):
        made(tmp_path, "CartPole-v1", set_attributes={"physics.gravity": 1})


def test_only_numbers_flags_and_words_can_be_set(tmp_path: Path) -> None:
    env = make_env(Env(id="CartPole-v1"), root=tmp_path)
    assert attribute_of(env, "kinematics_integrator") == "euler"
    assert attribute_of(env, "tau") == 0.02
    with pytest.raises(ConfigError, match="is a Box"):
        attribute_of(env, "observation_space")


def test_attributes_of_a_world_in_arrays_are_found(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import numpy as np\nfrom gymnasium import spaces\nfrom gymnasium.vector import AutoresetMode, VectorEnv\n"
        "class Own(VectorEnv):\n"
        "    metadata = {'autoreset_mode': AutoresetMode.SAME_STEP}\n"
        "    def __init__(self, num_envs=1):\n"
        "        self.num_envs, self.wind = num_envs, 1.0\n"
        "        self.single_observation_space = spaces.Box(-1, 1, (2,), np.float32)\n"
        "        self.single_action_space = spaces.Discrete(2)\n"
        "        self.observation_space = spaces.Box(-1, 1, (num_envs, 2), np.float32)\n"
        "        self.action_space = spaces.MultiDiscrete([2] * num_envs)\n"
    )
    env = made(tmp_path, "own.py:Own", set_attributes={"wind": 4})
    assert attribute_of(env, "wind") == 4.0


def test_the_numbers_of_a_mujoco_model_are_multiplied(tmp_path: Path) -> None:
    pytest.importorskip("mujoco")
    plain = make_env(Env(id="Hopper-v5"), root=tmp_path)
    heavy = made(tmp_path, "Hopper-v5", scale_model={"body_mass": 2, "opt.gravity": 0.5, "opt.timestep": 0.5})
    before, after = plain.unwrapped.model, heavy.unwrapped.model  # type: ignore[attr-defined]
    np.testing.assert_allclose(after.body_mass, 2 * before.body_mass)
    np.testing.assert_allclose(after.opt.gravity, 0.5 * before.opt.gravity)
    assert after.opt.timestep == pytest.approx(0.5 * before.opt.timestep)


def test_a_model_that_is_absent_or_has_no_such_numbers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="CartPoleEnv has no MuJoCo model"):
        made(tmp_path, "CartPole-v1", scale_model={"body_mass": 2})
    pytest.importorskip("mujoco")
    with pytest.raises(ConfigError, match="no numbers `body_mas`") as raised:
        made(tmp_path, "Hopper-v5", scale_model={"body_mas": 2})
    assert raised.value.hint == "did you mean `body_mass`?"
