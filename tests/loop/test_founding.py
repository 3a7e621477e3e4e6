"""How tasks and studies come into being in real repositories, and what is said where they cannot."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rlx.errors import NotFound, Refused
from rlx.loop.founding import Wishes, find_task, new_study, new_task, refresh_task
from rlx.study import task as tasks

CONFIG = "env: {id: CartPole-v1}\nalgo: {name: ppo, total_timesteps: 64}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "pole.yaml").write_text(CONFIG)
    (tmp_path / "rlx.toml").write_text("schema = 1\n")
    return tmp_path


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True)


def test_a_study_outside_of_git_or_before_the_first_commit_is_refused_with_what_to_type(root: Path) -> None:
    config = root / "configs" / "pole.yaml"
    with pytest.raises(Refused, match="not in a git repository") as refused:
        new_study(root, "faster", Wishes(), config=config)
    assert refused.value.hint is not None
    assert refused.value.hint.startswith("git init")
    git(root, "init", "-q")
    with pytest.raises(Refused, match="has no commit yet"):
        new_study(root, "faster", Wishes(), config=config)


def test_a_stale_task_begins_no_study_until_it_is_read_again(root: Path) -> None:
    config = root / "configs" / "pole.yaml"
    new_task(root, "pole", config=config)
    config.write_text(CONFIG.replace("64", "128"))
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "as it is")
    with pytest.raises(Refused, match="the file is another now") as refused:
        new_study(root, "faster", Wishes(), task="pole")
    assert refused.value.hint == "rlx task refresh pole"
    refresh_task(root, "pole")
    assert not list(tasks.stale(find_task(root, "pole"), root))
    assert new_study(root, "faster", Wishes(), task="pole")["study"] == "faster"


def test_a_task_that_is_not_there_is_not_found(root: Path) -> None:
    with pytest.raises(NotFound, match="there is no task here"):
        find_task(root, None)
    new_task(root, "pole", config=root / "configs" / "pole.yaml")
    with pytest.raises(NotFound, match="no task `pol`"):
        find_task(root, "pol")


def test_what_rlx_writes_stays_out_of_the_project_s_git(root: Path) -> None:
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "as it is")
    new_task(root, "pole", config=root / "configs" / "pole.yaml")
    (root / "runs" / "pole_001").mkdir()
    (root / "runs" / "pole_001" / "metadata.json").write_text("{}")
    assert untracked(root) == ""


def test_a_runs_folder_of_somebody_else_is_left_alone(root: Path) -> None:
    (root / "runs").mkdir()
    (root / "runs" / "notes.txt").write_text("mine")
    new_task(root, "pole", config=root / "configs" / "pole.yaml")
    assert [path.name for path in (root / "runs").iterdir()] == ["notes.txt"]


def untracked(root: Path) -> str:
    words = ["git", "-C", str(root), "status", "--porcelain"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout
