"""The descendants of a process, whatever session they moved to, and their end.

Linux only (/proc): elsewhere a process has no known descendants, and its group is all that can be killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time

_SET_CHILD_SUBREAPER = 36
_PAUSE_SECONDS = 0.002
PATIENCE_SECONDS = 10.0


def adopt() -> bool:
    """Become the parent of every orphan among this process's descendants; False where the kernel cannot."""
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def descendants(pid: int, *, spare: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Return the living descendants of a process, parents first; without `spare` and what is below those."""
    children: dict[int, list[int]] = {}
    for child, parent, state in _processes():
        if state not in "ZX" and child not in spare:
            children.setdefault(parent, []).append(child)
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return tuple(found)


def reap(pid: int, *, spare: tuple[int, ...] = ()) -> int:
    """Kill every descendant of a process (not itself), whatever session it moved to; return how many there were.

    `spare` and what is below those live on. Orphans of a process that has ended are below the nearest ancestor that
    adopted them: after a worker's death reap yourself, sparing the other workers. Raises TimeoutError where some do
    not die.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    killed: set[int] = set()
    while found := descendants(pid, spare=spare):
        for one in found:
            send(one, signal.SIGSTOP)  # first, so that none can fork away from the list
        if set(found) == set(descendants(pid, spare=spare)):
            for one in found:
                send(one, signal.SIGKILL)
            killed.update(found)
        _bury(pid, spare)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {', '.join(map(str, found))} do not die")
        time.sleep(_PAUSE_SECONDS)
    _bury(pid, spare)
    return len(killed)


def _bury(pid: int, spare: tuple[int, ...]) -> None:
    """Collect this process's own dead children, but not the spared ones: somebody waits for those."""
    if pid != os.getpid():
        return
    for child, parent, state in _processes():
        if parent == pid and state == "Z" and child not in spare:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)


def send(pid: int, number: int) -> None:
    """Signal a process that may be gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _processes() -> list[tuple[int, int, str]]:
    """Return pid, parent and state of every process that can be seen."""
    found = []
    try:
        names = os.listdir("/proc")  # noqa: PTH208  pathlib would be half of a keeper's start
    except FileNotFoundError:
        return []
    for name in names:
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stream:  # noqa: PTH123
                content = stream.read()
                fields = content[content.rfind(b")") + 2 :].split(None, 2)
                found.append((int(name), int(fields[1]), fields[0].decode()))
    return found
