"""What the kernel does not limit for all processes of a program together: looked at from outside, again and again."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from rlx.sandbox.family import descendants


@dataclass(frozen=True)
class Caps:
    """The most a program may have in all: processes, resident memory, and files in `folder`."""

    processes: int
    memory_bytes: int
    folder: Path
    folder_bytes: int


@dataclass(frozen=True)
class Breach:
    """A cap that a program has passed: its name, and what was seen."""

    name: str
    says: str


def breach(pid: int, caps: Caps) -> Breach | None:
    """Say which cap a started program has passed, if any."""
    below = descendants(pid)
    if len(below) > caps.processes:
        return Breach("processes", f"{len(below)} processes, {caps.processes} are allowed")
    memory = sum(map(_resident_bytes, below))
    if memory > caps.memory_bytes:
        return Breach("memory", f"{memory} bytes of memory, {caps.memory_bytes} are allowed")
    size = folder_bytes(caps.folder)
    if size > caps.folder_bytes:
        return Breach("disk", f"{size} bytes of files, {caps.folder_bytes} are allowed")
    return None


def folder_bytes(folder: Path) -> int:
    """Return the bytes that the files below a folder take on disk; what vanishes meanwhile does not count."""
    total = 0
    for here, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{here}/{name}").st_blocks * 512
    return total


def _resident_bytes(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/statm").read_bytes().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")  # without what is shared with other processes
