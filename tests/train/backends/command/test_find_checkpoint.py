"""Which of the files that a program leaves behind is its checkpoint."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rlx.train.backends.command.find_checkpoint import NewCheckpoint


def leave(path: Path, *, at: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(str(at))
    os.utime(path, ns=(at, at))
    return path


def left(root: Path, template: str = "{out}/*/model_*.pt") -> NewCheckpoint:
    return NewCheckpoint(template, {"out": str(root / "out"), "seed": "3"}, root)


def test_of_a_pattern_the_newest_match_that_is_new_counts(tmp_path: Path) -> None:
    leave(tmp_path / "out/old/model_900.pt", at=9 * 10**9)
    found = left(tmp_path)
    assert found.new() is None
    leave(tmp_path / "out/2026-01-01_10-00-00/model_2.pt", at=2 * 10**9)
    last = leave(tmp_path / "out/2026-01-01_10-00-00/model_10.pt", at=2 * 10**9)
    leave(tmp_path / "out/2026-01-01_10-00-00/other.pt", at=8 * 10**9)
    assert found.new() == last


def test_a_file_that_is_written_again_is_new_and_one_that_stays_is_not(tmp_path: Path) -> None:
    leave(tmp_path / "out/a/model_1.pt", at=10**9)
    found = left(tmp_path)
    assert "model_1.pt existed before it started" in found.explain()
    assert found.new() is None
    assert leave(tmp_path / "out/a/model_1.pt", at=2 * 10**9) == found.new()


def test_a_path_is_taken_by_the_letter_and_a_folder_with_brackets_is_no_pattern(tmp_path: Path) -> None:
    root = tmp_path / "run[1]"
    for template in ("{out}/net_{seed}.npz", "out/*.npz"):
        found = left(root, template)
        assert leave(root / "out/net_3.npz", at=10**9) == found.new()
        (root / "out/net_3.npz").unlink()


@pytest.mark.parametrize(
    ("there", "says"),
    [
        (None, "out does not exist"),
        ("out/tb/events.1", "out has tb/events.1"),
    ],
)
def test_what_is_near_is_named(tmp_path: Path, there: str | None, says: str) -> None:
    if there:
        leave(tmp_path / there, at=10**9)
    assert left(tmp_path).explain().endswith(says)


def test_without_a_template_nothing_is_left(tmp_path: Path) -> None:
    assert left(tmp_path, "").new() is None
