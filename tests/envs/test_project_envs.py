from __future__ import annotations

from pathlib import Path

from rlx.envs.project_envs import own_envs

SOURCE = '''
raise RuntimeError("never imported")
import gymnasium, gymnasium as gym
from gymnasium import Env
class One(gymnasium.Env):
    """The first.

    More.
    """
class Two(Env[int, int]): ...
class Three(Two): ...
class Robot(gym.envs.mujoco.MujocoEnv): ...
class Many(gymnasium.vector.VectorEnv): ...
class Helper: ...
'''


def test_finds_classes_without_importing(tmp_path: Path) -> None:
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs" / "b.py").write_text(SOURCE)
    (tmp_path / "envs" / "a.py").write_text("def broken(:\n")
    (tmp_path / "envs" / "c.py").write_bytes(b"\xff\xfe\x00")
    found = own_envs(tmp_path)
    assert [env.id for env in found] == [f"envs/b.py:{name}" for name in ("One", "Two", "Three", "Robot")]
    assert found[0].summary == "The first."


def test_a_project_without_envs_has_none(tmp_path: Path) -> None:
    assert own_envs(tmp_path) == []
