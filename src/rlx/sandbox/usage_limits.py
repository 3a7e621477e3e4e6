"""Limits that the kernel does not enforce for all processes of a program together, measured from outside."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from rlx.sandbox.process_tree import descendants


@dataclass(frozen=True)
class UsageLimits:
    """How much a program and all its children may use: processes, resident memory, and disk space in `folder`."""

    processes: int
    memory_bytes: int
    folder: Path
    folder_bytes: int


@dataclass(frozen=True)
class ExceededLimit:
    """A limit that a program has exceeded: `processes`, `memory` or `disk`, and the usage in words."""

    name: str
    usage: str


def exceeded_limit(pid: int, limits: UsageLimits) -> ExceededLimit | None:
    """Return the first limit that a started program exceeds, if any. It counts the descendants of `pid`."""
    children = descendants(pid)
    usage = (
        ("processes", "processes", len(children), limits.processes),
        ("memory", "bytes of memory", sum(map(_resident_bytes, children)), limits.memory_bytes),
        ("disk", "bytes of files", folder_bytes(limits.folder), limits.folder_bytes),
    )
    for name, unit, used, allowed in usage:
        if used > allowed:
            return ExceededLimit(name, f"{used} {unit}, {allowed} are allowed")
    return None


def folder_bytes(folder: Path) -> int:
    """Return the bytes that the files below a folder take on disk. A file that vanishes meanwhile does not count."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{path}/{name}").st_blocks * 512
    return total


def _resident_bytes(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/statm").read_bytes().split()
    except OSError:
        return 0
    resident, shared = int(fields[1]), int(fields[2])
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")  # shared pages would count once per process
