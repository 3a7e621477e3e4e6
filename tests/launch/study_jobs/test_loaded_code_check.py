"""Modules in scope that ran from anywhere but the worktree are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rlx import files
from rlx.launch.study_jobs.loaded_code_check import (
    differing_installations,
    edited,
    loaded_from_elsewhere,
    module_names,
)
from rlx.runs.loaded_modules import Module
from rlx.runs.run import Run


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for root in (tmp_path, tmp_path / ".rlx" / "worktrees" / "c001"):
        (root / "src" / "pkg" / "tasks").mkdir(parents=True)
        for package in ("src/pkg", "src/pkg/tasks"):
            (root / package / "__init__.py").write_text("")
        (root / "src" / "pkg" / "tasks" / "reward.py").write_text("")
        (root / "train.py").write_text("")
    return tmp_path / ".rlx" / "worktrees" / "c001"


SCOPE = ("src/pkg/tasks/reward.py", "src/pkg/__init__.py", "train.py", "configs/reward.yaml")


def names(tree: Path, root: Path, *modules: tuple[str, Path]) -> list[str]:
    record = [Module(name, file, None) for name, file in modules]
    return [says.split()[0] for says in loaded_from_elsewhere(record, tree, root, SCOPE)]


def test_what_was_loaded_from_the_worktree_is_fine(tree: Path, tmp_path: Path) -> None:
    reward = tree / "src" / "pkg" / "tasks" / "reward.py"
    assert names(tree, tmp_path, ("pkg.tasks.reward", reward), ("train", tree / "train.py")) == []


def test_an_editable_install_of_the_project_is_named(tree: Path, tmp_path: Path) -> None:
    reward = tmp_path / "src" / "pkg" / "tasks" / "reward.py"
    assert names(tree, tmp_path, ("pkg.tasks.reward", reward)) == ["pkg.tasks.reward"]
    assert names(tree, tmp_path, ("renamed_module", reward)) == ["renamed_module"]
    (said,) = loaded_from_elsewhere([Module("pkg.tasks.reward", reward, None)], tree, tmp_path, SCOPE)
    assert said == f"pkg.tasks.reward (src/pkg/tasks/reward.py) was loaded from {reward}"


def test_an_installed_or_built_copy_is_known_by_its_name(tree: Path, tmp_path: Path) -> None:
    site = Path("/usr/lib/python3/site-packages")
    built = tmp_path / "build" / "lib" / "pkg" / "tasks" / "reward.cpython-311-x86_64-linux-gnu.so"
    found = names(tree, tmp_path, ("pkg", site / "pkg/__init__.py"), ("pkg.tasks.reward", built))
    assert found == ["pkg", "pkg.tasks.reward"]


def test_what_is_not_in_scope_may_come_from_anywhere(tree: Path, tmp_path: Path) -> None:
    installed = Path("/usr/lib/python3/site-packages")
    assert names(tree, tmp_path, ("pkg.tasks", installed / "pkg/tasks/__init__.py"),
                 ("numpy", installed / "numpy/__init__.py"), ("reward", Path("/usr/lib/reward.py"))) == []  # fmt: skip


def test_a_file_of_the_project_itself_never_stands_in_for_the_worktrees(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "local_notes.py").write_text("")
    other = tmp_path / "src" / "pkg" / "tasks" / "__init__.py"
    assert names(tree, tmp_path, ("pkg.tasks", other), ("local_notes", tmp_path / "local_notes.py")) == ["pkg.tasks"]


def test_the_names_of_a_file_begin_where_its_packages_begin(tree: Path) -> None:
    assert module_names("src/pkg/tasks/reward.py", tree) == ("src.pkg.tasks.reward", "pkg.tasks.reward")
    assert module_names("src/pkg/__init__.py", tree) == ("src.pkg", "pkg")
    assert module_names("train.py", tree) == ("train",)
    assert module_names("configs/reward.yaml", tree) == ()


def test_a_module_that_was_another_file_when_it_ran_is_named(tree: Path) -> None:
    reward, train = tree / "src/pkg/tasks/reward.py", tree / "train.py"
    now = files.sha256(reward.read_bytes())
    ran = [Module("pkg.tasks.reward", reward, now), Module("train", train, "0" * 64)]
    assert edited(ran, tree) == ("train ran from another train.py than was checked",)
    reward.unlink()
    assert [says.split()[0] for says in edited(ran, tree)] == ["pkg.tasks.reward", "train"]


def recorded(
    make_run: Callable[..., Run], name: str, *, sha256: str, version: str = "1.0", python: str = "3.11"
) -> Run:
    """Return a run whose job loaded an installed algorithm."""
    run = make_run(name, seeds={0: [1.0]})
    folder = run.seeds[0].folder / "loaded"
    folder.mkdir()
    modules = {"algorithm": {"file": "/venv/site-packages/algorithm.py", "sha256": sha256}}
    interpreter = {"executable": "/venv/bin/python", "version": python, "distributions": {"algorithm": version}}
    (folder / "1.json").write_bytes(files.encode({"schema": 1, "python": interpreter, "modules": modules}))
    return run


def test_an_installed_file_that_differs_between_the_sides_is_named(
    make_run: Callable[..., Run], tmp_path: Path
) -> None:
    base = recorded(make_run, "base", sha256="a")
    assert differing_installations([base], [recorded(make_run, "same", sha256="a")], root=tmp_path) == ()
    (problem,) = differing_installations([base], [recorded(make_run, "edited", sha256="b")], root=tmp_path)
    assert problem == "/venv/site-packages/algorithm.py was changed between the trainings of both sides"
    other = recorded(make_run, "other", sha256="a", version="2.0", python="3.12")
    assert differing_installations([base], [other], root=tmp_path) == (
        "the interpreters differ: /venv/bin/python (3.11) and /venv/bin/python (3.12)",
        "algorithm differs: 1.0 and 2.0 were installed",
    )
