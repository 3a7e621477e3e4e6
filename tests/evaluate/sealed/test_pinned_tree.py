"""A pinned tree is a copy that notices every change, and that never leads out of itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rlx.errors import EvidenceInvalid, FileDamaged, NotFound, Refused
from rlx.evaluate.sealed.pinned_tree import PinnedTree, pin_tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    left_out = (".git/config", ".rlx/x", "runs/r/metrics", "envs/__pycache__/one.pyc", ".venv/bin/python")
    for name in ("envs/one.py", "envs/deep/two.py", "run.sh", "envs/runs/kept", *left_out):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "run.sh").chmod(0o755)
    (folder / "link.py").symlink_to("envs/one.py")
    (folder / "folder").symlink_to("envs/deep")
    return folder


def test_copies_the_tree_without_what_is_not_the_repositorys(tree: Path, tmp_path: Path) -> None:
    pinned = pin_tree(tree, tmp_path / "study" / "evaluator")
    assert sorted(pinned.content) == [
        "envs/deep/two.py",
        "envs/one.py",
        "envs/runs/kept",
        "folder",
        "link.py",
        "run.sh",
    ]
    assert pinned.content["folder"] == "link:envs/deep"
    assert (tmp_path / "study" / "evaluator" / "folder" / "two.py").read_text() == "envs/deep/two.py"
    assert (pinned.folder / "run.sh").stat().st_mode & 0o777 == 0o555
    assert (pinned.folder / "envs/one.py").stat().st_mode & 0o777 == 0o444
    pinned.verify()


def test_opens_as_it_was_pinned(tree: Path, tmp_path: Path) -> None:
    pinned = pin_tree(tree, tmp_path / "evaluator")
    again = PinnedTree.open(tmp_path / "evaluator", sha256=pinned.sha256)
    again.verify()
    assert again == pinned
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_same_tree_has_the_same_hash_wherever_it_is(tree: Path, tmp_path: Path) -> None:
    assert pin_tree(tree, tmp_path / "a").sha256 == pin_tree(tree, tmp_path / "b").sha256


def edit(path: Path) -> None:
    path.chmod(0o644)
    path.write_text("x")


def replace_by_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def replace_by_file(path: Path) -> None:
    path.unlink()
    path.write_text("envs/one.py")


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def add(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("x")


CHANGES: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "changed": ("envs/one.py", edit, "was changed"),
    "missing": ("envs/one.py", Path.unlink, "is missing"),
    "extra": ("sitecustomize.py", add, "was not pinned"),
    "extra below": ("envs/__pycache__/one.pyc", add, "was not pinned"),
    "link for file": ("envs/one.py", replace_by_link, "was or became a link"),
    "other link": ("link.py", replace_by_link, "was changed"),
    "file for link": ("link.py", replace_by_file, "was or became a link"),
    "mode": ("envs/one.py", lambda path: path.chmod(0o755), "has another mode"),
    "pipe": ("envs/one.py", replace_by_pipe, "is neither a file nor a link"),
    "folder": ("envs/one.py", replace_by_folder, "is missing"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_notices_every_kind_of_change_and_names_it(tree: Path, tmp_path: Path, kind: str) -> None:
    path, change, said = CHANGES[kind]
    pinned = pin_tree(tree, tmp_path / "evaluator")
    change(pinned.folder / path)
    with pytest.raises(EvidenceInvalid, match=f"evaluator/{path} {said}"):
        pinned.verify()


def test_a_rewritten_manifest_is_refused(tree: Path, tmp_path: Path) -> None:
    pinned = pin_tree(tree, tmp_path / "evaluator")
    manifest = tmp_path / "evaluator.json"
    text = manifest.read_text()
    manifest.write_text(text.replace(pinned.content["envs/one.py"], "0" * 64))
    with pytest.raises(EvidenceInvalid, match="not the manifest that was pinned"):
        PinnedTree.open(pinned.folder)
    (tree / "envs/one.py").write_text("other")
    other = pin_tree(tree, tmp_path / "other")
    manifest.write_text((tmp_path / "other.json").read_text())
    assert PinnedTree.open(pinned.folder).sha256 == other.sha256
    with pytest.raises(EvidenceInvalid, match="not the manifest that was pinned"):
        PinnedTree.open(pinned.folder, sha256=pinned.sha256)
    manifest.write_text("{}")
    with pytest.raises(FileDamaged):
        PinnedTree.open(pinned.folder)


def test_another_tree_does_not_take_the_place_of_a_pinned_one(tree: Path, tmp_path: Path) -> None:
    before = pin_tree(tree, tmp_path / "evaluator")
    assert pin_tree(tree, tmp_path / "evaluator") == before
    (tree / "envs/one.py").write_text("other")
    with pytest.raises(Refused, match="already pinned"):
        pin_tree(tree, tmp_path / "evaluator")


@pytest.mark.parametrize("leads", ["/etc/passwd", "../outside", "runs/r/metrics", "absent"])
def test_refuses_a_link_that_leads_out_of_the_copy(tree: Path, tmp_path: Path, leads: str) -> None:
    (tree / "out").symlink_to(leads)
    with pytest.raises(Refused, match="out links to"):
        pin_tree(tree, tmp_path / "evaluator")
    assert not (tmp_path / "evaluator").exists()


def test_refuses_what_is_no_file(tree: Path, tmp_path: Path) -> None:
    os.mkfifo(tree / "pipe")
    with pytest.raises(Refused, match="pipe is neither"):
        pin_tree(tree, tmp_path / "evaluator")


def test_nothing_pinned_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        PinnedTree.open(tmp_path / "evaluator")


def test_a_private_copy_can_be_written(tree: Path, tmp_path: Path) -> None:
    pinned = pin_tree(tree, tmp_path / "evaluator")
    pinned.copy(tmp_path / "private")
    (tmp_path / "private" / "envs/one.py").write_text("mine")
    assert (tmp_path / "private" / "folder" / "two.py").read_text() == "envs/deep/two.py"
    assert os.access(tmp_path / "private" / "run.sh", os.X_OK)
    pinned.verify()
