"""Trying a sandbox out: a program in a box attempts what it must not be able to do, and what happened is reported."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rlx.sandbox import mounts, seccomp
from rlx.sandbox.box import (
    NO_KEYRINGS,
    NO_LIMITS,
    NO_SET_ID,
    UNCHANGEABLE,
    Box,
    Enforced,
    in_force,
    system_reads,
)
from rlx.sandbox.program import kill, start

_MOST_SECONDS = 20.0
FORBIDDEN = {
    "read": "reading a hidden file",
    "list": "listing a hidden folder",
    "link_out": "reading through a symbolic link",
    "write": "writing outside",
    "write_through": "writing through a symbolic link",
    "hard_link": "linking a hidden file into its own folder",
    "environment": "reading another process's environment",
    "tcp": "a TCP connection",
    "udp": "a UDP packet",
    "unix": "a Unix socket reached by its path",
    "abstract": "an abstract Unix socket",
    "signal": "a signal to its starter",
    "limits": "limits for its starter",
    "times": "changing the times of a hidden file",
    "mode": "changing the mode of a hidden file",
    "set_id": "making a set-user-id program",
    "key": "a key in a keyring of the account",
    "device": "making a device file",
    "shared_memory": "shared memory that others see",
    "system_v": "System V shared memory that others see",
    "survive": "a process that outlives it",
}
"""What the program attempts and must fail at."""
ALLOWED = {
    "own_file": "writing in its own folder",
    "program": "running a program",
    "own_child": "a signal to its child",
    "own_memory": "shared memory",
}
"""What a box must leave working, or nothing could be trained in it."""

KEYS = 0x52000000
"""Where the keys of the System V segments that are tried begin."""
PROGRAM = (
    f"KEYS = {KEYS}"
    r"""
import ctypes, json, os, resource, signal, socket, stat, subprocess, sys, time
own, hidden, port, path, name, starter = sys.argv[1:7]
calls = json.loads(sys.argv[7])
libc = ctypes.CDLL(None, use_errno=True)
memory = "/dev/shm/" + name
def tried(action):
    try:
        action()
        return True
    except OSError:
        return False
def reads(path):
    with open(path) as stream: stream.read(1)
def writes(path):
    with open(path, "a") as stream: stream.write("x")
def called(function, *arguments):
    found = function(*arguments)
    if found < 0: raise OSError(ctypes.get_errno(), "")
    return found
def makes_key():
    if "add_key" in calls:
        key = called(libc.syscall, calls["add_key"], b"user", name.encode(), b"x", 1, -4)
        called(libc.syscall, calls["keyctl"], 15, key, 5)
def limits(pid):
    resource.prlimit(pid, resource.RLIMIT_CORE, resource.prlimit(pid, resource.RLIMIT_CORE))
def through(link, action):
    os.symlink(hidden + "/secret", own + "/" + link)
    action(own + "/" + link)
def connects(family, kind, address):
    with socket.socket(family, kind) as one:
        one.settimeout(2)
        one.connect(address)
        one.send(b"x")
def has_child():
    child = subprocess.Popen(["sleep", "60"])
    child.terminate()
    child.wait()
def leaves_a_child():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for stream in (0, 1, 2): os.close(stream)
            with open(own + "/left", "w") as stream: stream.write(str(os.getpid()))
            time.sleep(600)
        os._exit(0)
    while not (os.path.exists(own + "/left") and os.path.getsize(own + "/left")): time.sleep(0.001)
found = {
    "read": tried(lambda: reads(hidden + "/secret")),
    "list": tried(lambda: os.listdir(hidden)),
    "link_out": tried(lambda: through("one", reads)),
    "write": tried(lambda: writes(hidden + "/new")),
    "write_through": tried(lambda: through("two", writes)),
    "hard_link": tried(lambda: (os.link(hidden + "/secret", own + "/three"), reads(own + "/three"))),
    "environment": tried(lambda: reads("/proc/" + starter + "/environ")),
    "tcp": tried(lambda: connects(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(port)))),
    "udp": tried(lambda: connects(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", int(port)))),
    "unix": tried(lambda: connects(socket.AF_UNIX, socket.SOCK_STREAM, path)),
    "abstract": tried(lambda: connects(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + name)),
    "signal": tried(lambda: os.kill(int(starter), 0)),
    "limits": tried(lambda: limits(int(starter))),
    "times": tried(lambda: os.utime(hidden + "/secret")),
    "mode": tried(lambda: os.chmod(hidden + "/secret", 0o600)),
    "set_id": tried(lambda: (writes(own + "/set"), os.chmod(own + "/set", 0o4700))),
    "key": tried(makes_key),
    "device": tried(lambda: os.mknod(own + "/device", stat.S_IFCHR | 0o600, os.makedev(1, 3))),
    "own_file": tried(lambda: writes(own + "/file")),
    "program": tried(lambda: subprocess.run(["/bin/sh", "-c", ":"], check=True)),
    "own_child": tried(has_child),
    "own_memory": not os.path.isdir("/dev/shm") or tried(lambda: writes(memory)),
}
tried(lambda: called(libc.shmget, int(name.rpartition("-")[2]) + KEYS, 64, 0o1600))
leaves_a_child()
print(json.dumps(found))
"""
)


@lru_cache(maxsize=2)
def probe(*, may_go_unenforced: bool = False) -> Enforced:
    """Try out, once a process, what a box without network enforces here (a tenth of a second).

    Refuses where something that should be denied succeeded, or something that must work did not.
    """
    from rlx.errors import Refused

    with tempfile.TemporaryDirectory(prefix="rlx-probe-") as folder:
        own, hidden = Path(folder).resolve() / "own", Path(folder).resolve() / "hidden"
        own.mkdir()
        hidden.mkdir()
        (hidden / "secret").write_text("secret")
        box = Box(reads=system_reads(), writes=(own,), shared_memory=True)
        found = in_force(box, may_go_unenforced=may_go_unenforced)
        if not found.is_enforced:
            return found
        seen = _tried(box, own, hidden)
    wrong = [says for key, says in FORBIDDEN.items() if seen[key] and _is_promised(key, found)]
    wrong += [f"{says} failed" for key, says in ALLOWED.items() if not seen[key]]
    if wrong:
        raise Refused(
            f"the sandbox does not hold: {', '.join(wrong)}", hint="rlx doctor says what this kernel enforces"
        )
    denied = tuple(f"{says}: denied" for key, says in FORBIDDEN.items() if not seen[key])
    return replace(found, enforced=(*found.enforced, *denied), is_probed=True)


def probed(box: Box, *, may_go_unenforced: bool = False) -> Enforced:
    """Return what is in force for a box, with what the trial of a box without network saw denied."""
    found = in_force(box, may_go_unenforced=may_go_unenforced)
    tried = probe(may_go_unenforced=may_go_unenforced)
    if not found.is_enforced or box.network:
        return found
    is_left = {FORBIDDEN["unix"]: box.unix_sockets}
    denied = tuple(
        says for says in tried.enforced if says.endswith(": denied") and not is_left.get(says.removesuffix(": denied"))
    )
    return replace(found, enforced=(*found.enforced, *denied), is_probed=True)


def _is_promised(key: str, found: Enforced) -> bool:
    """Say whether an attempt had to fail: older kernels and machines without the filter promise less."""
    promised = {
        "tcp": "no TCP" in found.enforced or "no sockets" in found.enforced,
        "udp": "no sockets" in found.enforced,
        "unix": "no sockets" in found.enforced,
        "abstract": "no sockets" in found.enforced or "no signals to processes outside" in found.enforced,
        "signal": "no signals to processes outside" in found.enforced,
        "limits": NO_LIMITS in found.enforced,
        "times": UNCHANGEABLE in found.enforced,
        "mode": UNCHANGEABLE in found.enforced,
        "set_id": NO_SET_ID in found.enforced,
        "key": NO_KEYRINGS in found.enforced,
        "shared_memory": "shared memory of its own" in found.enforced,
        "system_v": UNCHANGEABLE in found.enforced or NO_KEYRINGS in found.enforced,
    }
    return promised.get(key, True)


def _tried(box: Box, own: Path, hidden: Path) -> Mapping[str, Any]:
    with _listening(hidden) as (port, path, name):
        argv = [
            sys.executable,
            "-I",
            "-S",
            "-c",
            PROGRAM,
            str(own),
            str(hidden),
            str(port),
            path,
            name,
            str(os.getpid()),
            json.dumps(seccomp.CALLS.get(os.uname().machine, {})),
        ]
        process = start(
            argv, box, env={"PATH": "/usr/bin:/bin"}, cwd=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            told, talk = process.communicate(timeout=_MOST_SECONDS)
        finally:
            kill(process)
    seen: dict[str, Any] = json.loads(told) if told else {}
    if not seen:
        from rlx.errors import Refused

        last = talk.decode("utf-8", "replace").strip().splitlines()[-1:] or [f"exit {process.returncode}"]
        raise Refused(
            f"nothing runs in the sandbox: {last[0]}", hint="is the interpreter installed in an unusual place?"
        )
    left = int((own / "left").read_text())
    return {
        **seen,
        "survive": _lives(left),
        "shared_memory": _is_taken(Path(mounts.SHARED_MEMORY, name)),
        "system_v": _is_there(name),
    }


def _is_taken(path: Path) -> bool:
    """Say whether a file is there, and take it away."""
    with contextlib.suppress(OSError):
        path.unlink()
        return True
    return False


def _is_there(name: str) -> bool:
    """Say whether the System V segment of a trial is there, and take it away."""
    libc, key = ctypes.CDLL(None), KEYS + int(name.rpartition("-")[2])
    found = libc.shmget(key, 0, 0)
    return bool(found >= 0 and libc.shmctl(found, 0, None) == 0)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextlib.contextmanager
def _listening(folder: Path) -> Iterator[tuple[int, str, str]]:
    """Offer sockets that a program outside a box could reach."""
    name = f"rlx-probe-{os.getpid()}"
    with contextlib.ExitStack() as open_ones:
        inet = open_ones.enter_context(socket.socket())
        inet.bind(("127.0.0.1", 0))
        unix, abstract = (open_ones.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)  # the path itself may be longer than a socket's can be
        open_ones.callback(os.close, place)
        unix.bind(f"/proc/self/fd/{place}/socket")
        abstract.bind(f"\0{name}")
        for one in (inet, unix, abstract):
            one.listen()
        yield inet.getsockname()[1], str(folder / "socket"), name
