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
    (tmp_path / "rlx.toml").touch()
    make_run(tmp_path, "cartpole", {2: POOR, 5: POOR})
    return tmp_path


def test_films_the_first_seeds_best_into_the_run(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["video", "cartpole_001", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    (film,) = data["films"]
    assert (data["seed"], data["checkpoint"], len(film["episodes"])) == (2, "best", 1)
    assert Path(film["file"]) == root / "runs/cartpole_001/videos/cartpole_001_seed_2_best.mp4"
    assert Path(film["file"]).stat().st_size > 1000
    assert film["sheet"] is None


def test_says_where_the_film_is_and_what_the_policy_scored(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["video", "cartpole_001:latest", "--seed", "5", "--episodes", "2", "--format", "gif", "--out", "a/film"]
    assert call(argv) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"video: {Path('a/film.gif')}"
    assert lines[1] == "policy: cartpole_001, seed 5, latest"
    assert lines[2].startswith("return: ")
    assert (root / "a/film.gif").read_bytes()[:6] == b"GIF89a"


def test_films_the_best_the_median_and_the_worst_of_the_protocols_episodes(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["video", "cartpole_001:latest", "--which", "all", "--episodes", "5", "--gif", "--sheet", "--overlay"]
    assert call([*argv, "--json"]) == 0
    printed = capsys.readouterr()
    films = json.loads(printed.out)["films"]
    assert "playing 5 episodes to choose from" in printed.err
    returns = [film["episodes"][0]["return"] for film in films]
    assert returns == sorted(returns, reverse=True)
    assert returns[0] > returns[-1]
    assert [Path(film["file"]).name for film in films] == [
        f"cartpole_001_seed_2_latest_{which}_episode.gif" for which in ("best", "median", "worst")
    ]
    assert all(film["chosen"] == film["episodes"][0] for film in films)
    assert all(Path(film["sheet"]).read_bytes()[:4] == b"\x89PNG" for film in films)

    assert call(["eval", "cartpole_001", "--episodes", "5", "--seed", "2"]) == 0
    capsys.readouterr()
    assert (
        call(["video", "cartpole_001:latest", "--which", "worst", "--episodes", "5", "--steps", "3", "-o", "w.mp4"])
        == 0
    )
    printed = capsys.readouterr()
    assert "playing" not in printed.err
    assert f"episode: the worst of 5 by return (seed {films[2]['chosen']['seed']})" in printed.out
    assert f"note: the last {films[2]['episodes'][0]['length'] - 3} steps are not in the film" in printed.out
    assert (root / "w.mp4").is_file()


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
        (["video", "cartpole_001", "--episodes", "0"], 2, "must be at least 1"),
        (["video", "cartpole_001", "--steps", "0"], 2, "must be at least 1"),
        (["video", "cartpole_001", "--which", "first"], 2, "invalid choice"),
        (["video", "cartpole_001", "--out", "rlx.toml/film.mp4"], 2, "hint: name another file with --out"),
        (["video", "cartpole_001:step_1"], 3, "it has: best, latest"),
    ],
)
@pytest.mark.usefixtures("root")
def test_bad_input_is_one_line_with_a_hint(
    capsys: pytest.CaptureFixture[str], argv: list[str], code: int, words: str
) -> None:
    assert call(argv) == code
    assert words in capsys.readouterr().err


def test_another_kind_of_file_is_refused_before_anything_is_played(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["video", "cartpole_001", "--out", "x.avi"]) == 2
    printed = capsys.readouterr().err
    assert "x.avi: rlx does not write this video format" in printed
    assert "filming" not in printed
