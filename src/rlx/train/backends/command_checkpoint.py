"""The checkpoint that a training program leaves behind: a path or a pattern, and which match of it is new."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from pathlib import Path

from rlx.runs.reader import listed
from rlx.train.backends.command_argv import fill

Stamp = tuple[int, int, int]
MOST_LOOKED_AT = 1000


class Left:
    """What fits a template such as `{out}/*/model_*.pt`; made before the program begins, so that old files are known.

    Of several that are new the newest counts, and of those of one moment the one with the highest numbers in its name.
    """

    def __init__(self, template: str, places: Mapping[str, str], root: Path) -> None:
        self._is_pattern = glob.has_magic(template)
        safe = {name: glob.escape(value) for name, value in places.items()} if self._is_pattern else places
        base = glob.escape(str(root)) if self._is_pattern else str(root)
        self._where = os.path.join(base, fill(template, safe))  # noqa: PTH118  a pattern is no path
        self.place = str(root / fill(template, places)) if template else ""
        self._before = self._stamps()

    def new(self) -> Path | None:
        """Return the newest match that was not there, or was another, when the program began."""
        found = [(stamp, path) for path, stamp in self._stamps().items() if self._before.get(path) != stamp]
        return max(found, key=lambda one: (one[0][0], _numbers(one[1])))[1] if found else None

    def explain(self) -> str:
        """Say what is there instead of something new."""
        if self._before:
            return f"{listed([path.name for path in self._before])} was there before it began"
        folder = Path(self.place).parent
        while glob.has_magic(str(folder)) and folder != folder.parent and not folder.is_dir():
            folder = folder.parent
        there = [str(path.relative_to(folder)) for path in _below(folder)]
        return (
            f"{folder} has {listed(there)}"
            if there
            else f"{folder} {'is empty' if folder.is_dir() else 'is not there'}"
        )

    def _stamps(self) -> dict[Path, Stamp]:
        if not self.place:
            return {}
        paths = glob.glob(self._where, recursive=True) if self._is_pattern else [self._where]  # noqa: PTH207  absolute
        return {Path(path): stamp for path in paths if (stamp := _stamp(path)) is not None}


def _stamp(path: str) -> Stamp | None:
    """Return what tells a file from one that was there before."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


def _numbers(path: Path) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", path.name)]


def _below(folder: Path) -> list[Path]:
    """Return files below a folder, not too many."""
    found: list[Path] = []
    for here, _, names in os.walk(folder):
        found += [Path(here, name) for name in names]
        if len(found) > MOST_LOOKED_AT:
            break
    return sorted(found)
