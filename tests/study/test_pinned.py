"""The pinned commit has what the task was read from, or it is said what it has otherwise."""

from __future__ import annotations

from pathlib import Path

from rlx import files
from rlx.study import pinned
from rlx.study.task import Fact, Task
from tests.study.papers import commit, rlx_repo, rlx_task, write

LIFT = "envs/lift.py"


def read_from(root: Path, *names: str) -> Task:
    """Return a task that was read from these files as they lie."""
    facts = [Fact(what="x", file=name, line=1, sha256=files.sha256((root / name).read_bytes())) for name in names]
    return rlx_task(root).model_copy(update={"facts": tuple(facts)})


def test_a_commit_that_has_all_as_it_was_read_has_nothing_otherwise(tmp_path: Path) -> None:
    sha = rlx_repo(tmp_path)
    assert pinned.others(rlx_task(tmp_path), sha, tmp_path) == ()


def test_files_that_changed_or_came_after_it_are_named_committed_or_not(tmp_path: Path) -> None:
    sha = rlx_repo(tmp_path)
    write(tmp_path, LIFT, "X = 1\n")
    write(tmp_path, "envs/new.py", "X = 2\n")
    task = read_from(tmp_path, LIFT, "envs/physics.py", "envs/new.py")
    assert pinned.others(task, sha, tmp_path) == (LIFT, "envs/new.py")
    newer = commit(tmp_path)
    assert pinned.others(task, sha, tmp_path) == (LIFT, "envs/new.py")
    assert pinned.others(task, newer, tmp_path) == ()


def test_links_files_that_git_ignores_and_other_line_ends_are_none_of_them(tmp_path: Path) -> None:
    rlx_repo(tmp_path)
    write(tmp_path, ".gitignore", "made.py\n")
    write(tmp_path, ".gitattributes", "crlf.py text eol=crlf\n")
    write(tmp_path, "made.py", "X = 1\n")
    (tmp_path / "crlf.py").write_bytes(b"X = 1\r\n")
    (tmp_path / "link.py").symlink_to(LIFT)
    sha = commit(tmp_path)
    assert pinned.others(read_from(tmp_path, "made.py", "crlf.py", "link.py"), sha, tmp_path) == ()


def test_a_stale_task_is_read_again_first(tmp_path: Path) -> None:
    sha = rlx_repo(tmp_path)
    task = rlx_task(tmp_path)
    write(tmp_path, LIFT, "X = 1\n")
    assert pinned.others(task, sha, tmp_path) == ()
