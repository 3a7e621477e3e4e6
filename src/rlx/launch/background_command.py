"""A long rlx command that runs in the background, so that the caller can leave and ask again later.

A command is identified by its words. Asking for the same words while it runs, or after it ended, starts nothing.
Everything is in `.rlx/errands/<hash>/`, which can be deleted when the command has ended.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx import files
from rlx.runs import process

SCHEMA = 1
# The commands that this process started and that still run. They are kept, so that none stays a zombie.
_children: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class BackgroundCommand:
    """One command by its words (without `rlx`), in a project."""

    root: Path
    argv: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return self.root / ".rlx" / "errands" / files.sha256(files.encode(list(self.argv)))[:16]

    @property
    def log(self) -> Path:
        """The file with everything that it printed besides its result."""
        return self.folder / "log.txt"

    @property
    def is_running(self) -> bool:
        child = process.from_document(self._record().get("process"))
        return child is not None and bool(process.is_alive(child))

    @property
    def is_known(self) -> bool:
        return bool(self._record())

    def result(self) -> dict[str, Any] | None:
        """Return the JSON that it printed; None if it still runs, or ended without a result."""
        path = self.folder / "out.json"
        if self.is_running or not path.is_file() or not path.stat().st_size:
            return None
        document: dict[str, Any] = files.read_json(path)
        return document

    def forget(self) -> None:
        """Delete the record, so that the same words start a new command."""
        with files.locked(self.folder / "errand.json"):
            if not self.is_running:
                (self.folder / "errand.json").unlink(missing_ok=True)

    def _record(self) -> dict[str, Any]:
        document: dict[str, Any] = {}
        if (self.folder / "errand.json").is_file():
            document = files.read_json(self.folder / "errand.json")
        return document


def start(argv: Sequence[str], *, root: Path, again: bool = False) -> BackgroundCommand:
    """Start the command unless it runs, or has ended and `again` is not set."""
    command = BackgroundCommand(root, tuple(argv))
    command.folder.mkdir(parents=True, exist_ok=True)
    with files.locked(command.folder / "errand.json"):
        if not command.is_running and (again or not command.is_known):
            _spawn(command)
    return command


def _spawn(command: BackgroundCommand) -> None:
    words = list(command.argv)
    end_of_options = words.index("--") if "--" in words else len(words)
    words.insert(end_of_options, "--json")
    with (command.folder / "out.json").open("wb") as out, command.log.open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "rlx", *words], cwd=command.root, stdin=subprocess.DEVNULL, stdout=out,
            stderr=log, start_new_session=True,
        )  # fmt: skip
    _children[:] = [other for other in (*_children, child) if other.poll() is None]
    identity = process.identify(child.pid).document()
    record = {"schema": SCHEMA, "argv": list(command.argv), "process": identity, "time": time.time()}
    files.write_json(command.folder / "errand.json", record)
