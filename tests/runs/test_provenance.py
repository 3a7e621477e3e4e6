"""Where an attempt came from: commit, uncommitted changes, untracked files, versions."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rlx.runs.provenance import git_state, provenance


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for words in (["init", "-q"], ["config", "user.email", "a@b.c"], ["config", "user.name", "a"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    (tmp_path / "train.py").write_text("print(1)\n")
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", "commit", "-qm", "first"], cwd=tmp_path, check=True)
    return tmp_path


def test_a_clean_tree_is_its_commit(repository: Path) -> None:
    state = git_state(repository)
    assert state is not None
    assert len(state["commit"]) == 40
    assert not state["is_dirty"]
    assert state["diff_sha256"] is None


def test_a_change_and_a_new_file_are_seen(repository: Path) -> None:
    (repository / "train.py").write_text("print(2)\n")
    (repository / "reward.py").write_text("")
    (repository / "runs").mkdir()
    (repository / "runs" / "x.json").write_text("")
    state = git_state(repository)
    assert state is not None
    assert state["is_dirty"]
    assert state["diff_sha256"]
    assert state["untracked"] == ["reward.py"]


def test_outside_a_repository_there_is_no_git_state(tmp_path: Path) -> None:
    assert git_state(tmp_path) is None


def test_secrets_in_the_environment_are_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "hunter2")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    document = provenance(tmp_path)
    assert "hunter2" not in str(document)
    assert document["environment"]["OMP_NUM_THREADS"] == "1"
    assert document["versions"]["numpy"]
    assert document["cores"] == os.cpu_count()
