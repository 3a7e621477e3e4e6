"""`rlx stress` as it is called, on policies written by hand and on one that was trained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.conftest import Project
from tests.evaluate.linear import GOOD, make_run, register


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    register(monkeypatch)
    (tmp_path / "rlx.toml").touch()
    make_run(tmp_path, "cartpole", {0: GOOD, 1: GOOD, 2: GOOD})
    return tmp_path


def test_prints_the_worst_first_and_from_where_it_is_brittle(root: Path, cli: Callable[..., Any]) -> None:
    answer = cli("stress", "cartpole_001", "noise=0.01", "delay=8,20", "--only", "--episodes", "2")
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()
    assert lines[0].startswith("cartpole_001: 3 seeds × 2 episodes of CartPole-v1; undisturbed 500, random policy ")
    assert [line.split()[0] for line in lines[2:5]] == ["delay", "delay", "noise"]
    assert lines[2].split()[-1] == "brittle"
    assert lines[5].startswith("brittle: delay from 8 steps")
    assert "note: each condition was tested alone: combinations were not tested" in lines
    assert "stored: runs/cartpole_001/stress/stress_" in answer.out
    with Image.open(lines[-1].removeprefix("picture: ")) as image:
        assert image.width > 800


def test_corners_are_the_extremes_of_all_factors_together(root: Path, cli: Callable[..., Any]) -> None:
    words = ("attr:gravity=9.8,12", "attr:length=0.5,0.6", "--only", "--corners", "--episodes", "1", "--json")
    data = cli("stress", "cartpole_001", *words).data
    corners = {one["strength"] for one in data["conditions"] if one["name"] == "corner"}
    assert len(data["conditions"]) == 8
    assert "attr:gravity=12, attr:length=0.6" in corners
    assert len(corners) == 4


def test_json_is_complete(root: Path, cli: Callable[..., Any]) -> None:
    data = cli("stress", "cartpole_001", "noise=0", "attr:gravity=9.8", "--only", "--episodes", "1", "--json").data
    assert (data["schema"], data["run"], data["limit"]) == (1, "cartpole_001", 0.2)
    assert {one["name"]: one["drop"] for one in data["conditions"]} == {"noise": 0.0, "attr:gravity": 0.0}
    assert not any(one["brittle"] for one in data["conditions"])
    assert (root / data["file"]).is_file()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["noize"], "did you mean `noise`?"),
        (["noise=-1"], "at least 0"),
        (["--only"], "--only needs at least one condition"),
        (["attr:gravity=1,2", "--corners"], "the corners of 1 factors"),
        (["--limit", "0"], "above 0"),
        (["--episodes", "0"], "must be at least 1"),
        (["--out", "p.txt"], "cannot write a picture"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    root: Path, cli: Callable[..., Any], words: list[str], said: str
) -> None:
    answer = cli("stress", "cartpole_001", *words)
    assert answer.code == 2
    assert said in answer.err


def test_a_trained_run_is_stressed_and_probed(project: Project) -> None:
    project.rlx("train", project.config(eval={"every": 1024, "episodes": 1}), "--seeds", "2")
    stressed = project.rlx("stress", "tiny_001", "attr:gravity=5", "--episodes", "2")
    for name in ("noise", "offset", "frozen", "delay", "repeat", "attr:gravity"):
        assert name in stressed.stdout
    assert "left out: dropout" in stressed.stdout
    probed = project.rlx("probe", "tiny_001", "attr:gravity=5,15", "--episodes", "2")
    assert "feasible: " in probed.stdout
    assert "2 training seeds: rlx cannot say how other seeds would do" in probed.stdout
