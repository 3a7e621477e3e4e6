"""Who is running: a process known by host, boot, pid and start time, never by pid alone.

What is not covered: a process on another host is only known by its heartbeat.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Process:
    """The identity of a process; `place` is where its pid means something (host, boot, pid namespace)."""

    place: str
    pid: int
    started: str

    def document(self) -> dict[str, Any]:
        return asdict(self)


def current() -> Process:
    """Return the identity of this process."""
    return identify(os.getpid())


def identify(pid: int) -> Process:
    """Return the identity of a process of this machine."""
    return Process(place=place(), pid=pid, started=_start_time(pid) or "")


def from_document(document: object) -> Process | None:
    """Read an identity back; None where the document holds none."""
    if not isinstance(document, dict):
        return None
    try:
        return Process(place=str(document["place"]), pid=int(document["pid"]), started=str(document["started"]))
    except (KeyError, TypeError, ValueError):
        return None


def is_alive(process: Process) -> bool | None:
    """Say whether a process still runs; None where that cannot be told from this machine."""
    if process.place != place():
        return None
    return _start_time(process.pid) == process.started


@lru_cache(maxsize=1)
def place() -> str:
    """Return host, boot id and pid namespace: two equal places see the same pids."""
    return f"{os.uname().nodename} {boot_id()} {_pid_namespace()}"


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Return the kernel's id of this boot, or nothing where it has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _start_time(pid: int) -> str | None:
    """Return the start time in clock ticks since boot; None for a process that is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None if Path("/proc/self/stat").exists() else _start_time_without_proc(pid)
    fields = stat[stat.rfind(")") + 2 :].split()
    return None if fields[0] in ("Z", "X") else fields[19]


def _start_time_without_proc(pid: int) -> str | None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "unknown"
