"""Which study is meant, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.loop.study.new_study import new_study
from rlx.study.study_folder import find_study
from tests.loop.told import WISHES, Told, typed


def test_in_a_candidate_s_worktree_its_own_study_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLX_ROOT", raising=False)
    root = tmp_path / "lab"
    told = Told(root)
    identity = told.checked(0.01)
    new_study(root, "other", WISHES, task="pole")
    assert find_study(root).name == "other"
    tree = told.study.worktree(identity)
    assert typed(tree, "rlx next")["study"] == "faster"
    assert typed(tree / "configs", "rlx status")["study"] == "faster"
    assert typed(tree, "rlx status other")["study"] == "other"
    answer = typed(tree, f"rlx check candidate {identity}")
    assert answer["ok"]
    assert " --study" not in answer["command"]
    assert typed(root, f"rlx check candidate {identity} --study faster")["command"].endswith(" --study faster")


def test_a_study_that_a_candidate_writes_into_its_worktree_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RLX_ROOT", raising=False)
    told = Told(tmp_path / "lab")
    tree = told.study.worktree(told.checked(0.01))
    forged = Told(tmp_path / "elsewhere")
    forged.study.ledger.append("escalated", why="forged")
    (tmp_path / "elsewhere" / ".rlx").rename(tree / ".rlx")
    assert typed(tree, "rlx status")["events"] == told.state.rows
    inside = tree / ".rlx" / "tasks" / "pole" / "studies" / "faster"
    assert typed(inside, "rlx status")["events"] == told.state.rows


def test_a_config_in_a_worktree_is_trained_by_its_study_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLX_ROOT", raising=False)
    told = Told(tmp_path / "lab")
    tree = told.study.worktree(told.checked(0.01))
    for command in ("rlx train configs/pole.yaml", "rlx noise configs/pole.yaml"):
        refused = typed(tree, command, code=4)
        assert refused["hint"] == "rlx check candidate c001"
    assert not (tree / "runs").exists()
