"""Find and kill all descendants of a process, even those that moved to another session.

Linux only: it reads /proc. On other systems a process has no known descendants, and only its group can be killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

from rlx.sandbox import libc

_SET_CHILD_SUBREAPER = 36
_PAUSE_SECONDS = 0.002
PATIENCE_SECONDS = 10.0


def adopt_orphans() -> bool:
    """Become the parent of every orphan among this process's descendants. Return False if the system cannot do it."""
    is_linux = sys.platform.startswith("linux")
    if is_linux:
        libc.call("prctl", _SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return is_linux


def descendants(pid: int, *, spare: tuple[int, ...] = ()) -> tuple[int, ...]:
    """Return the living descendants of a process, parents first, without `spare` and their descendants."""
    children: dict[int, list[int]] = {}
    for child, parent, state in _processes():
        if state not in "ZX" and child not in spare:
            children.setdefault(parent, []).append(child)
    living: list[int] = []
    parents = [pid]
    while parents:
        below = children.get(parents.pop(), [])
        living += below
        parents += below
    return tuple(living)


def kill_group(group: int) -> None:
    """Kill every process of a group that is still there and is ours."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def kill_descendants(pid: int, *, spare: tuple[int, ...] = ()) -> int:
    """Kill every descendant of a process (not the process itself) and return how many there were.

    `spare` and their descendants live on. When a process ends, the kernel gives its orphans to the nearest ancestor
    that called `adopt_orphans`. So after a worker has died, call this on yourself and spare the other workers.
    Raises TimeoutError if some processes do not die.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    killed: set[int] = set()
    while living := descendants(pid, spare=spare):
        # With the init of a PID namespace, the kernel kills all others in it, even those that fork all the time.
        for process in living:
            if _is_init(process):
                send_signal(process, signal.SIGKILL)
                killed.add(process)
        # Stop all of them first. Kill only when a second look finds no newcomers: a running one could fork in between.
        for process in living:
            send_signal(process, signal.SIGSTOP)
        if set(living) == set(descendants(pid, spare=spare)):
            for process in living:
                send_signal(process, signal.SIGKILL)
            killed.update(living)
        _collect_dead_children(pid, spare)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {', '.join(map(str, living))} do not die")
        time.sleep(_PAUSE_SECONDS)
    _collect_dead_children(pid, spare)
    return len(killed)


def _collect_dead_children(pid: int, spare: tuple[int, ...]) -> None:
    """Collect this process's own dead children, except the spared ones: their exit codes belong to other code."""
    if pid != os.getpid():
        return
    for child, parent, state in _processes():
        if parent == pid and state == "Z" and child not in spare:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)


def _is_init(pid: int) -> bool:
    """Return whether a process is the first one of a PID namespace below this one."""
    try:
        with open(f"/proc/{pid}/status", "rb") as stream:  # noqa: PTH123
            lines = [line.split() for line in stream if line.startswith(b"NSpid:")]
    except OSError:
        return False
    return bool(lines) and len(lines[0]) > 2 and lines[0][-1] == b"1"


def send_signal(pid: int, number: int) -> None:
    """Send a signal to a process that may have ended."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _processes() -> list[tuple[int, int, str]]:
    """Return pid, parent's pid and state of every visible process."""
    processes = []
    try:
        names = os.listdir("/proc")  # noqa: PTH208  importing pathlib would double the reaper's start-up time
    except FileNotFoundError:
        return []
    for name in names:
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as stream:  # noqa: PTH123
                content = stream.read()
                # The program's name, in parentheses, can contain anything: the other fields follow the last `)`.
                fields = content[content.rfind(b")") + 2 :].split(None, 2)
                processes.append((int(name), int(fields[1]), fields[0].decode()))
    return processes
