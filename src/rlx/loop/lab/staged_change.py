"""What an agent changed: its files next to the head's, the patch between them, and the keys of its training file."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx import files
from rlx.errors import Refused
from rlx.launch.git import worktree
from rlx.launch.study_jobs.candidate_check import changed_lines
from rlx.loop.lab.lab_folder import SURFACE, Lab
from rlx.loop.lab.training_file import read_training, training_changes, with_training
from rlx.study.candidate.candidate_experiment import changes_of
from rlx.study.candidate.config_changes import apply_changes
from rlx.study.candidate.diff_scope import FileChange
from rlx.study.study_folder import Study
from rlx.study.task import infer_task

OWN = (".git", ".rlx", "runs", "__pycache__")
"""Folders that are never part of a change."""
MOST_BYTES = 20_000_000
MOST_FILES = 2_000


@dataclass(frozen=True)
class StagedChange:
    """A change against the head: its files, as a patch, and as config keys."""

    changes: tuple[FileChange, ...]
    keys: dict[str, Any]
    patch: bytes

    @property
    def lines(self) -> int:
        return changed_lines(self.patch)


@contextlib.contextmanager
def head_tree(study: Study) -> Iterator[Path]:
    """Write the files of the study's head into a temporary folder."""
    contract = study.contract()
    assert contract.baseline is not None
    head = study.state().head
    patch = None if head == "baseline" else study.patch(head)
    with tempfile.TemporaryDirectory(prefix="rlx-head-") as folder:
        tree = Path(folder) / "tree"
        worktree.write_tree(study.root, contract.baseline.commit, tree, patch=patch)
        yield tree


@contextlib.contextmanager
def changed_tree(study: Study, change: StagedChange) -> Iterator[Path]:
    """Write the head's files with a change into a temporary folder."""
    with head_tree(study) as tree:
        for one in change.changes:
            path = tree / one.path
            if one.after is None:
                path.unlink(missing_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(one.after)
        yield tree


def stage_change(lab: Lab, tree: Path) -> StagedChange:
    """Compare a folder with the lab's head. Nothing of the folder is executed."""
    changes = changed_files(lab, tree)
    path = tree / SURFACE[1]
    source = files.read_bytes(path) if path.is_file() and not path.is_symlink() else b""
    return StagedChange(changes, _keys(lab.study, source), worktree.patch_text(changes))


def changed_files(lab: Lab, tree: Path) -> tuple[FileChange, ...]:
    """Return the files in which a folder differs from the lab's head."""
    with head_tree(lab.study) as head:
        before = _contents(head)
    after = _contents(tree)
    changes = []
    for path in sorted({*before, *after}):
        if before.get(path) != after.get(path):
            mode_before, old = before.get(path, (None, None))
            mode_after, new = after.get(path, (None, None))
            changes.append(FileChange(path, old, new, mode_before, mode_after))
    return tuple(changes)


def _keys(study: Study, source: bytes) -> dict[str, Any]:
    """Return the config keys that a training file changes from the head's."""
    task = study.task()
    state = study.state()
    base = infer_task.baseline_values(task, study.root)
    below = apply_changes(base, changes_of(study.chain(state.head)))
    training = read_training(source.decode(errors="replace"), file=SURFACE[1])
    return training_changes(below, with_training(base, training), file=SURFACE[1])


def _contents(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Return git's mode and the content of every file below a folder; links are not followed."""
    found: dict[str, tuple[str, bytes]] = {}
    size = 0
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in OWN]
        links = [name for name in folders if (Path(here) / name).is_symlink()]
        for name in (*names, *links):
            path = Path(here) / name
            status = path.lstat()
            if name in OWN:
                continue
            size += status.st_size
            if size > MOST_BYTES or len(found) > MOST_FILES:
                raise Refused(f"{path.name}: the folder holds too much to be one change", hint="remove large files")
            relative = path.relative_to(folder).as_posix()
            if stat.S_ISLNK(status.st_mode):
                found[relative] = ("120000", os.fsencode(path.readlink()))
            elif stat.S_ISREG(status.st_mode):
                mode = "100755" if status.st_mode & stat.S_IXUSR else "100644"
                found[relative] = (mode, files.read_bytes(path))
            else:
                raise Refused(f"{relative} is not a regular file", hint="remove it")
    return found


def surface_of(tree: Path) -> list[bytes]:
    """Return the content of the two files."""
    return [(tree / name).read_bytes() for name in SURFACE]


def restore_surface(lab: Lab, tree: Path) -> list[bytes]:
    """Set the two files of a folder to the head's, after their change was recorded; return their content."""
    with head_tree(lab.study) as head:
        for name in SURFACE:
            shutil.copyfile(head / name, tree / name)
    return surface_of(tree)
