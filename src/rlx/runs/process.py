"""The identity of a process: host, boot, pid and start time, never the pid alone.

Not covered: a process on another host is known by its heartbeat only.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Process:
    """The identity of a process; its pid is valid within `place` (host, boot, pid namespace)."""

    place: str
    pid: int
    started: str

    def document(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def host(self) -> str:
        """The name of the host that the process ran on."""
        return self.place.partition(" ")[0]


_outside: dict[int, Process] = {}


def current() -> Process:
    """Return the identity of this process, as others know it."""
    return _outside.get(os.getpid()) or identify(os.getpid())


def call_current(known: Process) -> None:
    """Let others know this process, which has a PID namespace of its own, by the process that stands for it outside."""
    _outside[os.getpid()] = known


def identify(pid: int) -> Process:
    """Return the identity of a process on this machine."""
    return Process(place=place(), pid=pid, started=_start_time(pid) or "")


def from_document(document: object) -> Process | None:
    """Read an identity; None if the document does not hold one."""
    if not isinstance(document, dict):
        return None
    try:
        return Process(place=str(document["place"]), pid=int(document["pid"]), started=str(document["started"]))
    except (KeyError, TypeError, ValueError):
        return None


def is_alive(process: Process) -> bool | None:
    """Return whether a process still runs; None if this machine cannot know."""
    if process.place != place():
        return None
    return _start_time(process.pid) == process.started


@lru_cache(maxsize=1)
def place() -> str:
    """Return host, boot id and pid namespace: two equal places see the same pids."""
    return f"{os.uname().nodename} {boot_id()} {_pid_namespace()}"


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Return the kernel's id of this boot; empty if there is none."""
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
    """Return the start time in clock ticks since boot; None if the process is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        if Path("/proc/self/stat").exists():
            return None
        return _start_time_without_proc(pid)
    fields = stat[stat.rfind(")") + 2 :].split()
    if fields[0] in ("Z", "X"):
        return None
    return fields[19]


def _start_time_without_proc(pid: int) -> str | None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "unknown"
