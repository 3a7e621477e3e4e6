"""Finds the checkpoint that a training program wrote: the newest new match of a path or pattern."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from pathlib import Path

from rlx.number_format import listed
from rlx.train.backends.command.argv import fill

Stamp = tuple[int, int, int]
MOST_LOOKED_AT = 1000


class NewCheckpoint:
    """The files that match a template such as `{out}/*/model_*.pt`. Create it before the program starts.

    Files that exist then are old. The newest new file counts; among equally new files, the one with the highest
    numbers in its name.
    """

    def __init__(self, template: str, places: Mapping[str, str], root: Path) -> None:
        escaped = {name: glob.escape(value) for name, value in places.items()}
        self._pattern = os.path.join(glob.escape(str(root)), fill(template, escaped))  # noqa: PTH118
        self.place = str(root / fill(template, places)) if template else ""
        self._before = self._stamps()

    def new(self) -> Path | None:
        """Return the newest match that is new or was changed since the program started."""
        stamps = self._stamps()
        new = [path for path, stamp in stamps.items() if self._before.get(path) != stamp]
        return max(new, key=lambda path: (stamps[path][0], _numbers(path)), default=None)

    def explain(self) -> str:
        """Return a sentence about the files that exist instead of a new one."""
        if self._before:
            return f"{listed([path.name for path in self._before])} existed before it started"
        folder = Path(self.place).parent
        while glob.has_magic(str(folder)) and folder != folder.parent and not folder.is_dir():
            folder = folder.parent
        if not folder.is_dir():
            return f"{folder} does not exist"
        files = [str(path.relative_to(folder)) for path in _below(folder)]
        return f"{folder} has {listed(files)}" if files else f"{folder} is empty"

    def _stamps(self) -> dict[Path, Stamp]:
        if not self.place:
            return {}
        stamps = {Path(path): _stamp(path) for path in glob.glob(self._pattern, recursive=True)}  # noqa: PTH207
        return {path: stamp for path, stamp in stamps.items() if stamp is not None}


def _stamp(path: str) -> Stamp | None:
    """Return values that change when a file is replaced."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


def _numbers(path: Path) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", path.name)]


def _below(folder: Path) -> list[Path]:
    """Return the first files below a folder."""
    files: list[Path] = []
    for here, _, names in os.walk(folder):
        files += [Path(here, name) for name in names]
        if len(files) > MOST_LOOKED_AT:
            break
    return sorted(files)
