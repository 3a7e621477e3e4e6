"""A writable working folder for a program that writes into its current folder: it has links to the project's files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

NOT_LINKED = (".git", ".rlx", "runs")
"""Folders of the project that a program must not see, or that it usually writes."""


def link_project(root: Path, folder: Path, *, written: Iterable[str] = ()) -> Path:
    """Make a folder with a link to every entry of the project, except those that the program writes."""
    folder.mkdir(parents=True, exist_ok=True)
    skipped = {*NOT_LINKED, *written}
    for entry in sorted(root.iterdir()):
        link = folder / entry.name
        if entry.name not in skipped and not link.exists():
            link.symlink_to(entry)
    return folder


def written_names(cwd: str, places: Iterable[str]) -> set[str]:
    """Return the first parts of the places below a working folder, such as `logs` in `{out}/work/logs/*.pt`."""
    return {place.removeprefix(f"{cwd}/").partition("/")[0] for place in places if place.startswith(f"{cwd}/")}
