"""Where an attempt came from: commit, uncommitted changes, untracked files, versions."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rlx.runs.provenance import code_hash, git_state, provenance, save_diff


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


def test_a_change_of_pages_and_configs_is_no_change_of_code(repository: Path) -> None:
    for name in ("README.md", "lab/configs/a.yaml", "train.py"):
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text("print(1)\n")
    subprocess.run(["git", "add", "."], cwd=repository, check=True)
    subprocess.run(["git", "commit", "-qm", "second"], cwd=repository, check=True)
    for name in ("README.md", "lab/configs/a.yaml"):
        (repository / name).write_text("edited")
    state = git_state(repository / "lab")
    assert state is not None
    assert state["diff_sha256"]
    assert state["code_diff_sha256"] is None
    (repository / "train.py").write_text("edited")
    assert (git_state(repository) or {})["code_diff_sha256"]


def test_the_code_hash_sees_untracked_code_and_nothing_that_a_run_writes(tmp_path: Path) -> None:
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs" / "mine.py").write_text("a = 1\n")
    before = code_hash(tmp_path)
    (tmp_path / "runs" / "x_001").mkdir(parents=True)
    (tmp_path / "runs" / "x_001" / "copy.py").write_text("")
    (tmp_path / "notes.md").write_text("")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_mine.py").write_text("")
    assert code_hash(tmp_path) == before
    (tmp_path / "envs" / "mine.py").write_text("a = 2\n")
    assert code_hash(tmp_path) != before


def test_the_uncommitted_diff_is_kept_once(repository: Path) -> None:
    (repository / "train.py").write_text("print(2)\n")
    for _ in range(2):
        save_diff(repository, repository / "runs" / "logs")
    (kept,) = (repository / "runs" / "logs").iterdir()
    assert "+print(2)" in kept.read_text()


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
