"""Where the project is, and whose a candidate's worktree is."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.errors import Refused
from rlx.runs import project


@pytest.fixture
def worktree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a worktree that holds a whole project of its own, and a study that its candidate made up."""
    monkeypatch.delenv("RLX_ROOT", raising=False)
    folder = tmp_path / ".rlx" / "tasks" / "pole" / "studies" / "faster" / "worktrees" / "c001"
    (folder / "configs").mkdir(parents=True)
    (folder / ".rlx" / "tasks" / "pole" / "studies" / "forged" / "worktrees" / "c001").mkdir(parents=True)
    for place in (tmp_path, folder, folder / ".rlx" / "tasks" / "pole" / "studies" / "forged" / "worktrees" / "c001"):
        (place / project.MARKER).touch()
    (folder / "configs" / "pole.yaml").touch()
    return folder


def test_a_worktree_belongs_to_the_project_it_lies_in_whatever_it_holds(worktree: Path, tmp_path: Path) -> None:
    forged = worktree / ".rlx" / "tasks" / "pole" / "studies" / "forged" / "worktrees" / "c001"
    for here in (worktree, worktree / "configs", worktree / ".rlx", forged):
        assert project.root(here) == tmp_path
        assert project.owned(here)[1][:3] == ("pole", "studies", "faster")
        assert project.worktree(here) == worktree
    assert project.worktree(tmp_path) is None
    assert project.owned(tmp_path) == (None, ())


def test_the_code_that_is_meant_in_a_worktree_is_the_worktree_s(
    worktree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(worktree / "configs")
    assert (project.root(), project.tree()) == (tmp_path, worktree)
    assert project.root_of(Path("pole.yaml")) == worktree
    monkeypatch.chdir(tmp_path)
    assert (project.root(), project.tree()) == (tmp_path, tmp_path)


def test_a_config_in_a_worktree_is_not_trained_by_itself(worktree: Path) -> None:
    with pytest.raises(Refused, match="worktree of c001") as refused:
        project.refuse_worktree(worktree / "configs" / "pole.yaml")
    assert refused.value.hint == "rlx check candidate c001"


def test_without_a_marker_the_folder_with_tasks_is_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLX_ROOT", raising=False)
    below = tmp_path / "src" / "courier"
    below.mkdir(parents=True)
    assert project.root(below) == below
    (tmp_path / ".rlx" / "tasks").mkdir(parents=True)
    assert project.root(below) == tmp_path, "a repository that never heard of rlx has its tasks at its top"


def test_a_disk_shared_with_a_computer_that_knows_no_moments_of_birth_has_one_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.mark_own(tmp_path)
    (tmp_path / "copy" / ".rlx").mkdir(parents=True)
    mark = (tmp_path / project.OWN_MARK).read_bytes()
    (tmp_path / "copy" / project.OWN_MARK).write_bytes(mark)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(project, "_birth_nanoseconds", lambda _: None)
        assert project.is_own(tmp_path)
        assert not project.is_own(tmp_path / "copy")
        project.mark_own(tmp_path)
    assert (tmp_path / project.OWN_MARK).read_bytes() == mark
    (tmp_path / project.OWN_MARK).write_text(f"{tmp_path.stat().st_ino:x}")  # where moments are known, it takes both
    assert project.is_own(tmp_path) == (project.folder_identity(tmp_path) == f"{tmp_path.stat().st_ino:x}")
