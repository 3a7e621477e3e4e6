"""An errand: a long command of rlx's own that runs detached, so that whoever asked may leave and ask again.

The same words name the same errand: asking while it runs, or after it ended, starts nothing. Everything is in
`.rlx/errands/<hash>/`, and may be deleted when it ended.
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
_children: list[subprocess.Popen[bytes]] = []
"""Those that this process started: kept until they ended, so that none stays a zombie."""


@dataclass(frozen=True)
class Errand:
    """One command by its words (without `rlx`), in a project."""

    root: Path
    argv: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return self.root / ".rlx" / "errands" / files.sha256(files.encode(list(self.argv)))[:16]

    @property
    def is_running(self) -> bool:
        holder = process.from_document(self._record().get("process"))
        return holder is not None and bool(process.is_alive(holder))

    @property
    def is_known(self) -> bool:
        return bool(self._record())

    def result(self) -> dict[str, Any] | None:
        """Return the JSON it printed; None where it runs, or ended without a word."""
        path = self.folder / "out.json"
        if self.is_running or not path.is_file() or not path.stat().st_size:
            return None
        document: dict[str, Any] = files.read_json(path)
        return document

    def forget(self) -> None:
        """Let the same words be a new errand; what it said is gone."""
        with files.locked(self.folder / "errand.json"):
            if not self.is_running:
                (self.folder / "errand.json").unlink(missing_ok=True)

    @property
    def log(self) -> Path:
        """What it told beside its result."""
        return self.folder / "log.txt"

    def _record(self) -> dict[str, Any]:
        path = self.folder / "errand.json"
        document: dict[str, Any] = files.read_json(path) if path.is_file() else {}
        return document


def start(argv: Sequence[str], *, root: Path, again: bool = False) -> Errand:
    """Start the command unless it runs, or ended before and is not asked for again."""
    errand = Errand(root, tuple(argv))
    errand.folder.mkdir(parents=True, exist_ok=True)
    with files.locked(errand.folder / "errand.json"):
        if not errand.is_running and (again or not errand.is_known):
            _spawn(errand)
    return errand


def _spawn(errand: Errand) -> None:
    with (errand.folder / "out.json").open("wb") as out, errand.log.open("wb") as log:
        started = subprocess.Popen(
            [sys.executable, "-m", "rlx", *_as_json(errand.argv)],
            cwd=errand.root,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=log,
            start_new_session=True,
        )
    _children[:] = [child for child in (*_children, started) if child.poll() is None]
    holder = process.identify(started.pid)
    record = {"schema": SCHEMA, "argv": list(errand.argv), "process": holder.document(), "time": time.time()}
    files.write_json(errand.folder / "errand.json", record)


def _as_json(argv: Sequence[str]) -> list[str]:
    """Ask for JSON, before the words that are no options."""
    place = list(argv).index("--") if "--" in argv else len(argv)
    return [*argv[:place], "--json", *argv[place:]]
