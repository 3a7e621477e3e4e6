"""Which commits are the same code."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx import external_programs
from rlx.compare.code_version import CodeVersions, CurrentCode
from tests.conftest import Project


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    external_programs.git("init", "--quiet", folder=tmp_path)
    return tmp_path


def commit(folder: Path, name: str, text: str) -> dict[str, dict[str, str]]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    external_programs.git("add", name, folder=folder)
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    external_programs.git(*author, "commit", "--quiet", "-m", name, folder=folder)
    return {"git": {"commit": str(external_programs.git("rev-parse", "HEAD", folder=folder)).strip()}}


def test_commits_that_touch_no_code_are_the_same_code(repository: Path) -> None:
    first = commit(repository, "env.py", "a")
    pages = commit(repository, "README.md", "about")
    config = commit(repository, "project/configs/a.yaml", "seed: 1")
    tests = commit(repository, "tests/test_env.py", "assert True")
    code = commit(repository, "project/reward.py", "b")
    codes = CodeVersions(repository / "project")
    assert (
        codes.name(first) == codes.name(pages) == codes.name(config) == codes.name(tests) == first["git"]["commit"][:12]
    )
    assert codes.name(code) == code["git"]["commit"][:12]
    assert codes.changed(codes.name(first), codes.name(code)) == "project/reward.py"


def test_an_uncommitted_diff_is_part_of_the_code(repository: Path) -> None:
    clean = commit(repository, "env.py", "a")
    codes = CodeVersions(repository)
    dirty = codes.name({"git": {**clean["git"], "diff_sha256": "0123456789"}})
    assert dirty == f"{clean['git']['commit'][:12]}+01234567"
    assert codes.changed(codes.name(clean), dirty) == ""
    assert codes.name({"git": {**clean["git"], "diff_sha256": "0123456789", "code_diff_sha256": None}}) == codes.name(
        clean
    )


def test_an_unknown_commit_is_itself_and_no_repository_is_said(repository: Path) -> None:
    codes = CodeVersions(repository)
    assert codes.name({"git": {"commit": "f" * 40}}) == "f" * 12
    assert codes.name({}) == codes.name({"git": None, "code_sha256": None}) == "no git"
    assert codes.changed("no git", "f" * 12) == ""


def test_the_hash_of_the_files_tells_apart_what_git_does_not(repository: Path) -> None:
    codes = CodeVersions(repository)
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
    codes = CodeVersions(repository)
    shown = codes.changed(codes.name(first), codes.name(last))
    assert shown == "part_0.py, part_1.py, part_2.py, part_3.py, part_4.py and 2 more"


def test_a_commit_that_is_an_option_of_git_reaches_no_command_line(repository: Path) -> None:
    known = commit(repository, "env.py", "a")
    codes = CodeVersions(repository)
    stranger = {"git": {"commit": "--output=a"}}
    assert codes.name(stranger) == "--output=a"
    assert codes.changed(codes.name(stranger), codes.name(known)) == ""
    assert not (repository / "a").exists()


@pytest.mark.slow
def test_a_notebook_helper_does_not_cost_the_seeds_of_a_run(project: Project) -> None:
    project.write("reward.py", "import gymnasium\nclass Halve(gymnasium.RewardWrapper):\n"
                  "    def reward(self, reward):\n        return reward / 2\n")  # fmt: skip
    config = project.config(env={"id": "CartPole-v1", "wrappers": ["reward.py:Halve"]})
    project.rlx("train", config, "--seeds", "1")
    (name,) = project.runs()
    project.write("helper.py", "x = 1")
    assert CurrentCode(project.root).changes(project.run(name)) == []
    project.write("reward.py", (project.root / "reward.py").read_text().replace("/ 2", "/ 3"))
    (change,) = CurrentCode(project.root).changes(project.run(name))
    assert "reward.py" in change
    assert CurrentCode(project.root, is_reuse=True).changes(project.run(name)) == []
    refused = project.rlx("train", "--more", name, "--seeds", "1", code=4)
    assert "reward.py" in refused.stderr
