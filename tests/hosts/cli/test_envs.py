from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlx.hosts.cli.main import call

OWN = """
import gymnasium
from gymnasium import spaces


class Reach(gymnasium.Env):
    observation_space = spaces.Discrete(3)
    action_space = spaces.Discrete(2)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("RLX_ROOT", raising=False)
    (tmp_path / "rlx.toml").write_text("")
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs" / "reach.py").write_text(OWN)
    monkeypatch.chdir(tmp_path / "envs")
    return tmp_path


def test_prints_a_table_and_what_to_run_next(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["envs", "mountaincar"]) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0].split() == ["env", "observation", "action", "horizon", "threshold"]
    assert lines[1].split() == ["MountainCar-v0", "Box(2)", "Discrete(3)", "200", "−110"]
    assert lines[-1] == "next: rlx check env MountainCar-v0"
    assert shown.err == ""
    (project / "rlx.toml").unlink()
    assert call(["envs", "mountaincar"]) == 0
    assert capsys.readouterr().out.endswith("next: rlx init demo --env MountainCar-v0\n")


def test_the_projects_own_are_found_from_a_folder_inside_it(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["envs", "reach.py", "--trust", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == 1
    assert data["total"] == 1
    assert data["envs"] == [
        {
            "id": "envs/reach.py:Reach",
            "is_own": True,
            "observation": "Discrete(3)",
            "action": "Discrete(2)",
            "horizon": None,
            "threshold": None,
            "is_installed": True,
            "problem": None,
            "hint": None,
        }
    ]


def test_what_is_not_installed_stands_apart(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["envs", "phys2d/*"]) == 0
    assert capsys.readouterr().out == ("not installed: phys2d/CartPole-v1, phys2d/Pendulum-v0\n  pip install jax\n")


def test_what_cannot_be_made_says_why(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "envs" / "broken.py").write_text(OWN.replace("Reach", "Broken").replace("spaces.Discrete(3)", "None"))
    assert call(["envs", "broken", "--trust"]) == 0
    assert capsys.readouterr().out == (
        "cannot be made:\n  envs/broken.py:Broken: `envs/broken.py:Broken` has no `observation_space`\n"
    )


def test_nothing_found_is_exit_code_3_with_a_hint(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["envs", "Pendulom"]) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "error: no environment matches `Pendulom`\n\nhint: did you mean `Pendulum-v1`?\n"


def test_older_versions_are_shown_when_asked(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["envs", "cartpole-v0", "--all"]) == 0
    assert "CartPole-v0" in capsys.readouterr().out


def test_an_environment_of_a_project_in_which_nobody_trained_is_not_made(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "envs" / "loud.py").write_text("raise SystemExit(7)\n" + OWN.replace("Reach", "Loud"))
    assert call(["envs", "loud"]) == 0
    assert "not made: nobody has trained in this folder yet" in capsys.readouterr().out
