"""The pinned commit has what the task was read from, or it is said what it has otherwise."""

from __future__ import annotations

from pathlib import Path

from rlx import external_programs, files
from rlx.launch.git.worktree import snapshot
from rlx.study.contract import baseline_commit
from rlx.study.task.task import Fact, Task
from tests.study.papers import commit, contract_of, foreign_repo, foreign_task, rlx_repo, rlx_task, write

LIFT = "envs/lift.py"


def read_from(root: Path, *names: str) -> Task:
    """Return a task that was read from these files as they lie."""
    facts = [Fact(what="x", file=name, line=1, sha256=files.sha256((root / name).read_bytes())) for name in names]
    return rlx_task(root).model_copy(update={"facts": tuple(facts)})


def test_a_commit_that_has_all_as_it_was_read_has_nothing_otherwise(tmp_path: Path) -> None:
    sha = rlx_repo(tmp_path)
    assert baseline_commit.differing_files(rlx_task(tmp_path), sha, tmp_path) == ()


def test_files_that_changed_or_came_after_it_are_named_committed_or_not(tmp_path: Path) -> None:
    sha = rlx_repo(tmp_path)
    write(tmp_path, LIFT, "X = 1\n")
    write(tmp_path, "envs/new.py", "X = 2\n")
    task = read_from(tmp_path, LIFT, "envs/physics.py", "envs/new.py")
    assert baseline_commit.differing_files(task, sha, tmp_path) == (LIFT, "envs/new.py")
    newer = commit(tmp_path)
    assert baseline_commit.differing_files(task, sha, tmp_path) == (LIFT, "envs/new.py")
    assert baseline_commit.differing_files(task, newer, tmp_path) == ()


def test_links_files_that_git_ignores_and_other_line_ends_are_none_of_them(tmp_path: Path) -> None:
    rlx_repo(tmp_path)
    write(tmp_path, ".gitignore", "made.py\n")
    write(tmp_path, ".gitattributes", "crlf.py text eol=crlf\n")
    write(tmp_path, "made.py", "X = 1\n")
    (tmp_path / "crlf.py").write_bytes(b"X = 1\r\n")
    (tmp_path / "link.py").symlink_to(LIFT)
    sha = commit(tmp_path)
    assert baseline_commit.differing_files(read_from(tmp_path, "made.py", "crlf.py", "link.py"), sha, tmp_path) == ()


def test_a_stale_task_is_read_again_first(tmp_path: Path) -> None:
    sha = rlx_repo(tmp_path)
    task = rlx_task(tmp_path)
    write(tmp_path, LIFT, "X = 1\n")
    assert baseline_commit.differing_files(task, sha, tmp_path) == ()


def told_of(root: Path, commit: str, task: Task) -> list[str]:
    return list(baseline_commit.notes(contract_of(task, root, commit), task, root))


def test_what_a_snapshot_pins_beyond_what_git_tracks_is_counted(tmp_path: Path) -> None:
    sha = rlx_repo(tmp_path)
    task = rlx_task(tmp_path)
    assert told_of(tmp_path, sha, task) == []
    write(tmp_path, LIFT, "X = 1\n")
    assert told_of(tmp_path, snapshot(tmp_path), task) == [], "a tracked file that was changed is code"
    write(tmp_path, "data/one.bin", "x" * 1_500_000)
    write(tmp_path, "data/two.bin", "y" * 1_000_000)
    (says,) = told_of(tmp_path, snapshot(tmp_path), task)
    assert says == "the snapshot also pins 2 files that git does not track (2.5 MB)"
    with (tmp_path / "data" / "large.bin").open("wb") as file:
        file.truncate(60_000_000)
    (says,) = told_of(tmp_path, snapshot(tmp_path), task)
    assert ".gitignore" in says


def test_submodules_are_said_to_be_empty_in_jobs_with_what_helps(tmp_path: Path) -> None:
    sha = foreign_repo(tmp_path)
    external_programs.git("update-index", "--add", "--cacheinfo", f"160000,{sha},libs/sim", folder=tmp_path)
    (tmp_path / "libs" / "sim").mkdir(parents=True)
    who = ("-c", "user.name=someone", "-c", "user.email=someone@example.org")
    external_programs.git(*who, "commit", "-qm", "a submodule", folder=tmp_path)
    head = (external_programs.git("rev-parse", "HEAD", folder=tmp_path) or "").strip()
    (says,) = told_of(tmp_path, head, foreign_task(tmp_path))
    assert "submodules are empty folders in jobs (`libs/sim`)" in says
    assert f"rlx study amend first -s 'hardware.reads=[\"{tmp_path.resolve()}/libs/sim\"]'" in says
    assert f"PYTHONPATH={tmp_path.resolve()}/libs/sim" in says
