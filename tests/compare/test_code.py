"""Which commits are the same code."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx import tools
from rlx.compare.code import Codes


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    tools.git("init", "--quiet", folder=tmp_path)
    return tmp_path


def commit(folder: Path, name: str, text: str) -> dict[str, dict[str, str]]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    tools.git("add", name, folder=folder)
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    tools.git(*author, "commit", "--quiet", "-m", name, folder=folder)
    return {"git": {"commit": str(tools.git("rev-parse", "HEAD", folder=folder)).strip()}}


def test_commits_that_touch_no_code_are_the_same_code(repository: Path) -> None:
    first = commit(repository, "env.py", "a")
    pages = commit(repository, "README.md", "about")
    config = commit(repository, "project/configs/a.yaml", "seed: 1")
    tests = commit(repository, "tests/test_env.py", "assert True")
    code = commit(repository, "project/reward.py", "b")
    codes = Codes(repository / "project")
    assert (
        codes.name(first) == codes.name(pages) == codes.name(config) == codes.name(tests) == first["git"]["commit"][:12]
    )
    assert codes.name(code) == code["git"]["commit"][:12]
    assert codes.changed(codes.name(first), codes.name(code)) == "project/reward.py"


def test_an_uncommitted_diff_is_part_of_the_code(repository: Path) -> None:
    clean = commit(repository, "env.py", "a")
    codes = Codes(repository)
    dirty = codes.name({"git": {**clean["git"], "diff_sha256": "0123456789"}})
    assert dirty == f"{clean['git']['commit'][:12]}+01234567"
    assert codes.changed(codes.name(clean), dirty) == ""
    assert codes.name({"git": {**clean["git"], "diff_sha256": "0123456789", "code_diff_sha256": None}}) == codes.name(
        clean
    )


def test_an_unknown_commit_is_itself_and_no_repository_is_said(repository: Path) -> None:
    codes = Codes(repository)
    assert codes.name({"git": {"commit": "f" * 40}}) == "f" * 12
    assert codes.name({}) == codes.name({"git": None, "code_sha256": None}) == "no git"
    assert codes.changed("no git", "f" * 12) == ""


def test_the_hash_of_the_files_tells_apart_what_git_does_not(repository: Path) -> None:
    codes = Codes(repository)
    assert codes.name({"code_sha256": "a" * 64}) == "code aaaaaaaa"
    assert codes.changed("code aaaaaaaa", "code bbbbbbbb") == ""
    tracked = commit(repository, "env.py", "a")
    first = codes.name({**tracked, "code_sha256": "a" * 64})
    assert first == codes.name({**tracked, "code_sha256": "a" * 64}) == tracked["git"]["commit"][:12]
    untracked = codes.name({**tracked, "code_sha256": "b" * 64})
    assert untracked == f"{first}~bbbbbbbb"
    assert codes.changed(first, untracked) == ""


def test_many_changed_files_are_counted(repository: Path) -> None:
    first = commit(repository, "env.py", "a")
    for number in range(7):
        last = commit(repository, f"part_{number}.py", "b")
    codes = Codes(repository)
    shown = codes.changed(codes.name(first), codes.name(last))
    assert shown == "part_0.py, part_1.py, part_2.py, part_3.py, part_4.py and 2 more"
