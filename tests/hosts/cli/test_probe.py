"""`rlx probe` as it is called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.evaluate.linear import GOOD, make_run, register


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    register(monkeypatch)
    (tmp_path / "rlx.toml").touch()
    make_run(tmp_path, "cartpole", {0: GOOD, 1: GOOD, 2: GOOD})
    return tmp_path


def test_prints_every_value_the_range_and_what_was_not_tested(root: Path, cli: Callable[..., Any]) -> None:
    answer = cli("probe", "cartpole_001", "attr:gravity=9.8,12,5000", "--episodes", "2")
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()
    assert lines[0] == "cartpole_001: 3 seeds × 2 episodes of CartPole-v1 at each value"
    assert lines[1].split()[0] == "attr:gravity"
    assert lines[2].startswith("9.8 (nominal)")
    assert lines[3].split()[0] == "12"
    assert lines[4].split()[-1] == "no"
    assert lines[5].startswith("feasible: 9.8 to 12 (keeps 80% of the gain")
    assert any("combinations with other parameters were not tested" in line for line in lines)
    assert "a cliff between 12 and 5,000" in answer.out
    assert "stored: runs/cartpole_001/probes/attr_gravity_" in answer.out
    picture = next(line for line in lines if line.startswith("picture: ")).removeprefix("picture: ")
    with Image.open(picture) as image:
        assert image.width > 800


def test_json_is_complete(root: Path, cli: Callable[..., Any]) -> None:
    data = cli("probe", "cartpole_001:best", "attr:gravity=12", "attr:length=0.5,1", "--episodes", "1", "--json").data
    gravity, length = data["probes"]
    assert (data["schema"], gravity["nominal"], gravity["feasible"]) == (1, 9.8, {"low": 9.8, "high": 12})
    assert [point["value"] for point in length["points"]] == [0.5, 1]
    assert gravity["seeds"]["0"]["checkpoint"] == "best"
    assert (root / gravity["file"]).is_file()
    assert Path(data["picture"]).is_file()


def test_a_value_the_environment_refuses_is_a_row(root: Path, cli: Callable[..., Any]) -> None:
    answer = cli("probe", "cartpole_001", "max_episode_steps=-3,20,500", "--episodes", "1", "--share", "0.01")
    assert answer.code == 0, answer.err
    row = next(line for line in answer.out.splitlines() if line.startswith("−3"))
    assert "refused: " in row


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["attr:gravty=1,2"], 2, "did you mean `gravity`?"),
        (["gravity=1,2"], 2, "takes no argument `gravity`"),
        (["gravity"], 2, "not a parameter with values"),
        (["attr:gravity=1:2"], 2, "not a range"),
        (["attr:gravity=1,2", "--share", "0"], 2, "between 0 and 1"),
        (["attr:gravity=1,2", "--episodes", "0"], 2, "must be at least 1"),
        (["attr:gravity=1,2", "--out", "p.txt"], 2, "cannot write a picture"),
    ],
)
def test_what_cannot_be_probed_is_refused_in_one_line(
    root: Path, cli: Callable[..., Any], words: list[str], code: int, said: str
) -> None:
    answer = cli("probe", "cartpole_001", *words)
    assert answer.code == code
    assert said in answer.err


def test_an_unknown_run_is_not_found(root: Path, cli: Callable[..., Any]) -> None:
    assert cli("probe", "carpole_001", "attr:gravity=1").code == 3
