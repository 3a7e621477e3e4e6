"""The files of a repository: those that git tracks or would add."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from rlx import external_programs

NOT_CODE = (".git", ".rlx", "runs", "__pycache__", "node_modules", "site-packages")
MOST_FILES = 50_000


def files_in(root: Path) -> tuple[str, ...]:
    """Return the files that git tracks or would add; without git, all files outside hidden folders and runs."""
    listed = external_programs.git("ls-files", "-z", "--cached", "--others", "--exclude-standard", folder=root)
    if listed is not None:
        return tuple(name for name in listed.split("\0") if name)
    return tuple(_walked(root))


def _walked(root: Path) -> Iterator[str]:
    count = 0
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in NOT_CODE and not name.startswith(".")]
        for name in names:
            count += 1
            if count > MOST_FILES:
                return
            yield Path(folder, name).relative_to(root).as_posix()
