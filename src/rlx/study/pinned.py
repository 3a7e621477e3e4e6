"""The pinned commit beside the files that a task was read from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rlx import tools
from rlx.study import task as tasks
from rlx.study.task import Task

PLAIN = "100"
"""How the mode of a file begins, which is neither a link, a folder nor another repository."""


def others(task: Task, commit: str, root: Path) -> tuple[str, ...]:
    """Name the files that a task was read from and that a commit has otherwise, or not at all.

    None where the task is stale, which is mended first, and none that git does not keep.
    """
    names = tuple(dict.fromkeys(fact.file for fact in task.facts))
    if not names or any(tasks.stale(task, root)):
        return ()
    here = (tools.git("hash-object", "--", *names, folder=root) or "").split()
    there = _entries(commit, names, root)
    kept = _kept([name for name in names if name not in there], root)
    return tuple(
        name
        for name, blob in zip(names, here, strict=False)
        if (name in kept if name not in there else there[name][0].startswith(PLAIN) and there[name][1] != blob)
    )


def _entries(commit: str, names: Sequence[str], root: Path) -> dict[str, tuple[str, str]]:
    """Return mode and hash of what a commit has under these names."""
    told = (tools.git("ls-tree", "-z", commit, "--", *names, folder=root) or "").split("\0")
    rows = [row.partition("\t") for row in told if row]
    return {name: (about.split()[0], about.split()[2]) for about, _, name in rows}


def _kept(names: Sequence[str], root: Path) -> frozenset[str]:
    """Return those of the files that git keeps, or would with the next commit: none that are ignored."""
    listing = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--")
    told = tools.git(*listing, *names, folder=root) if names else None
    return frozenset((told or "").split("\0"))
