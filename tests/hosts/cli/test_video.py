"""`rlx video` as it is called."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rlx.hosts.cli.main import call
from tests.evaluate.linear import POOR, make_run, register


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    register(monkeypatch)
    monkeypatch.setenv("RLX_ROOT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path, "cartpole", {2: POOR, 5: POOR})
    return tmp_path


def test_films_the_first_seeds_best_into_the_run(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["video", "cartpole_001", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["seed"], data["checkpoint"], len(data["episodes"])) == (2, "best", 1)
    assert Path(data["file"]) == root / "runs/cartpole_001/videos/seed_2_best.mp4"
    assert Path(data["file"]).stat().st_size > 1000


def test_says_where_the_film_is_and_what_the_policy_scored(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["video", "cartpole_001:latest", "--seed", "5", "--episodes", "2", "--format", "gif", "--out", "a/film"]
    assert call(argv) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"video: {Path('a/film.gif')}"
    assert lines[1] == "policy: cartpole_001, seed 5, latest"
    assert lines[2].startswith("return: ")
    assert (root / "a/film.gif").read_bytes()[:6] == b"GIF89a"


def test_a_loose_checkpoint_is_filmed_here(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(root / "runs/cartpole_001/seed_2/checkpoints/best", root / "mine")
    assert call(["video", "mine"]) == 0
    assert (root / "mine.mp4").is_file()
    assert "policy: mine" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["video", "cartpole_001", "--out", "film.avi"], 2, "end the name in .mp4 or .gif"),
        (["video", "cartpole_001", "--out", "film.gif", "--format", "mp4"], 2, "is not a mp4"),
        (["video", "cartpole_001", "--episodes", "0"], 2, "at least one episode"),
        (["video", "cartpole_001:step_1"], 3, "it has: best, latest"),
    ],
)
@pytest.mark.usefixtures("root")
def test_bad_input_is_one_line_with_a_hint(
    capsys: pytest.CaptureFixture[str], argv: list[str], code: int, words: str
) -> None:
    assert call(argv) == code
    assert words in capsys.readouterr().err
