"""`rlx eval` as it is called."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.evaluate.linear import GOOD, POOR, make_run, register

from rlx.hosts.cli.main import call
from rlx.runs.run import Run


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    register(monkeypatch)
    monkeypatch.setenv("RLX_ROOT", str(tmp_path))
    make_run(tmp_path, "cartpole", {0: GOOD, 1: POOR})
    return tmp_path


def test_prints_each_seed_and_the_random_policy(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["eval", "cartpole_001", "--episodes", "4"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].split() == ["seed", "checkpoint", "step", "n", "mean", "std", "min", "max"]
    assert lines[1].split() == ["0", "latest", "1,024", "4", "500", "0", "500", "500"]
    assert lines[3].startswith("random policy")
    assert "seed 1: " in err
    (kept,) = {document["fingerprint"] for document in Run(root / "runs/cartpole_001").evaluations()}
    assert f"kept: runs/cartpole_001/eval/{kept}/" in lines


def test_json_is_complete(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["eval", "cartpole_001:best", "--seed", "1", "--episodes", "2", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["run"], data["env"]) == (1, "cartpole_001", "CartPole-v1")
    (row,) = data["seeds"]
    assert (row["seed"], row["checkpoint"], row["n"]) == (1, "best", 2)
    assert (root / row["file"]).is_file()
    assert data["random"]["n"] == 2


def test_a_loose_checkpoint_is_printed_and_not_kept(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(root / "runs/cartpole_001/seed_0/checkpoints/best", root / "mine")
    assert call(["eval", str(root / "mine"), "--episodes", "2"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[1].split()[:5] == ["–", "mine", "1,024", "2", "500"]
    assert "kept" not in out
    assert not (root / "runs/cartpole_001/eval").exists()


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["eval", "cartpole_009"], 3, "did you mean `cartpole_001`?"),
        (["eval", "cartpole_001:step_7"], 3, "it has: best, latest"),
        (["eval", "cartpole_001", "--episodes", "0"], 2, "at least one episode"),
        (["eval", "cartpole_001", "--seed", "8"], 3, "its seeds: 0, 1"),
        (["eval", "cartpole_001", "--like", "nothing"], 3, "no run `nothing`"),
    ],
)
def test_bad_input_is_one_line_with_a_hint(
    root: Path, capsys: pytest.CaptureFixture[str], argv: list[str], code: int, words: str
) -> None:
    assert call(argv) == code
    assert words in capsys.readouterr().err


def test_an_env_file_that_was_deleted_is_named(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_run(root, "own", {0: GOOD}, env={"id": "envs/gone.py:World"})
    assert call(["eval", "own_001"]) == 3
    assert "envs/gone.py" in capsys.readouterr().err
