"""The code of a run is what its environment, algorithm and policy import, not every file of the project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlx.compare.code_version import CodeVersions
from rlx.evaluate.code_files import code_files, code_identity

ENV = """
from physics import GRAVITY
import gymnasium
class Ball(gymnasium.Env): ...
"""
CONFIG: dict[str, Any] = {"env": {"id": "envs/ball.py:Ball", "wrappers": [{"shaping.py:Bonus": {"weight": 1}}]}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in {
        "envs/ball.py": ENV,
        "envs/physics.py": "GRAVITY = 9.81",
        "shaping.py": "",
        "notes.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_only_imported_files_and_models_count(root: Path) -> None:
    assert set(code_files(CONFIG, root=root) or {}) == {"envs/ball.py", "envs/physics.py", "shaping.py"}
    (root / "robot.xml").write_text("<mujoco/>")
    assert "robot.xml" in (code_files(CONFIG, root=root) or {})
    assert code_files({"env": {"id": "CartPole-v1"}}, root=root) == {
        "robot.xml": code_files(CONFIG, root=root)["robot.xml"]
    }  # type: ignore[index]


def test_the_code_of_a_command_is_the_whole_project(root: Path) -> None:
    assert code_files({"backend": "command", "env": {"id": "command"}}, root=root) is None


def test_a_new_helper_changes_nothing_and_an_imported_file_is_named(root: Path) -> None:
    codes = CodeVersions(root)
    before = codes.name(code_identity(CONFIG, root=root))
    (root / "notebook_helper.py").write_text("import this")
    assert codes.name(code_identity(CONFIG, root=root)) == before
    (root / "envs" / "physics.py").write_text("GRAVITY = 1.62")
    after = codes.name(code_identity(CONFIG, root=root))
    assert after != before
    assert codes.changed(before, after) == "envs/physics.py"
