"""The stored trainings: packed in bench/diagnose/runs.jsonl.xz, and newer ones loose next to it."""

from __future__ import annotations

import fcntl
import lzma
from pathlib import Path
from typing import Any

from labelled.cases import Case, cases
from rlx import files

HERE = Path(__file__).parent.parent
PACKED = HERE / "runs.jsonl.xz"
LOOSE = HERE / ".runs.jsonl"


def rows(packed: Path = PACKED, loose: Path = LOOSE) -> dict[Case, dict[str, Any]]:
    """Return the newest line of every case that has one of its present plan."""
    lines = lzma.decompress(packed.read_bytes()) if packed.is_file() else b""
    stored = {(row["case"], row["plan"]): row for row in (*files.rows_in(lines), *files.read_rows(loose))}
    return {case: stored[case.name, case.plan] for case in cases() if (case.name, case.plan) in stored}


def add(row: dict[str, Any], loose: Path = LOOSE) -> None:
    """Append a training's line."""
    files.append_line(loose, files.encode(row))


def pack(packed: Path = PACKED, loose: Path = LOOSE) -> int:
    """Move every line that counts into the packed file and return their number; trainings may be running."""
    with loose.open("a+b") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)  # as those do who append
        kept = sorted(rows(packed, loose).values(), key=lambda row: str(row["case"]))  # neighbours resemble each other
        files.write_atomic(packed, lzma.compress(b"".join(files.encode(row) + b"\n" for row in kept), preset=9))
        stream.truncate(0)
    return len(kept)
