"""What a fingerprint is taken over: the files and packages that define an environment."""

from __future__ import annotations

from pathlib import Path

from rlx.config.schema import Env
from rlx.envs.make import make_env
from rlx.evaluate.env_sources import Sources, find_sources

ENV = """
import gymnasium
import numpy as np

import physics
from rewards import shaped
from helpers import terms


class Own(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
"""

WRAPPER = """
import gymnasium


class Own(gymnasium.Wrapper):
    pass
"""


def sources(root: Path, env: Env) -> Sources:
    made = make_env(env, root=root)
    try:
        return find_sources(made, [env.id, *(wrapper.name for wrapper in env.wrappers)], root=root)
    finally:
        made.close()


def test_an_installed_environment_is_known_by_its_package(tmp_path: Path) -> None:
    found = sources(tmp_path, Env(id="CartPole-v1"))
    assert found.files == {}
    assert list(found.packages) == ["gymnasium"]


def test_own_environments_wrappers_and_what_they_import_are_known_by_hash(tmp_path: Path) -> None:
    for name, text in {
        "envs/world.py": ENV,
        "envs/physics.py": "from rewards import shaped\n",
        "rewards.py": "def shaped(): ...\n",
        "helpers/__init__.py": "",
        "helpers/terms.py": "import json\n",
        "wrappers/own.py": WRAPPER,
        "unrelated.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = sources(tmp_path, Env(id="envs/world.py:Own", wrappers=("wrappers/own.py:Own",)))  # type: ignore[arg-type]
    assert list(found.files) == [
        "envs/physics.py", "envs/world.py", "helpers/__init__.py", "helpers/terms.py", "rewards.py", "wrappers/own.py",
    ]  # fmt: skip


def test_a_factory_in_the_project_counts_though_the_class_is_installed(tmp_path: Path) -> None:
    (tmp_path / "factory.py").write_text(
        "import gymnasium\n\n\ndef make():\n    return gymnasium.make('CartPole-v1')\n"
    )
    assert list(sources(tmp_path, Env(id="factory.py:make")).files) == ["factory.py"]
