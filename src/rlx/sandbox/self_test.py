"""The self-test of the sandbox: a sandboxed program attempts everything that it must not be able to do."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rlx.errors import Refused
from rlx.sandbox import namespaces, seccomp
from rlx.sandbox.popen import PIPE, SandboxedCommand, run
from rlx.sandbox.spec import DOCTOR_HINT, Enforcement, SandboxSpec, require_enforcement, system_reads

_MOST_SECONDS = 20.0
# Attempts that must fail: in words, and the promises of an `Enforcement` of which any one forbids the attempt. One
# without promises is always forbidden.
FORBIDDEN: Mapping[str, tuple[str, frozenset[str]]] = {
    key: (words, frozenset(promises))
    for key, words, *promises in (
        ("read", "reading a hidden file"),
        ("list", "listing a hidden folder"),
        ("link_out", "reading through a symbolic link"),
        ("write", "writing outside"),
        ("write_through", "writing through a symbolic link"),
        ("hard_link", "linking a hidden file into its own folder"),
        ("environment", "reading another process's environment"),
        ("tcp", "a TCP connection", "tcp", "sockets"),
        ("udp", "a UDP packet", "sockets"),
        ("unix", "a Unix socket reached by its path", "sockets"),
        ("abstract", "an abstract Unix socket", "sockets", "signals"),
        ("signal", "a signal to its starter", "signals"),
        ("limits", "limits for its starter", "limits"),
        ("times", "changing the times of a hidden file", "attributes"),
        ("mode", "changing the mode of a hidden file", "attributes"),
        ("set_id", "making a set-user-id program", "set_id"),
        ("key", "a key in a keyring of the account", "keyrings"),
        ("device", "making a device file"),
        ("shared_memory", "shared memory that others see", "own memory"),
        ("system_v", "System V shared memory that others see", "attributes", "keyrings"),
        ("survive", "a process that outlives it"),
    )
}
# Attempts that must succeed, or nothing could be trained in a sandbox.
ALLOWED = {
    "own_file": "writing in its own folder",
    "program": "running a program",
    "own_child": "a signal to its child",
    "own_memory": "shared memory",
}

# The first key of the System V segments that the test makes; each process adds its pid.
KEYS = 0x52000000
PROGRAM = (
    f"KEYS = {KEYS}"
    r"""
import ctypes, fcntl, json, os, resource, signal, socket, stat, subprocess, sys, time
own, hidden, port, path, name, starter = sys.argv[1:7]
calls = json.loads(sys.argv[7])
libc = ctypes.CDLL(None, use_errno=True)
memory = "/dev/shm/" + name
def succeeds(action):
    try:
        action()
        return True
    except OSError:
        return False
def read(path):
    with open(path) as stream: stream.read(1)
def write(path):
    with open(path, "a") as stream: stream.write("x")
def call(function, *arguments):
    result = function(*arguments)
    if result < 0: raise OSError(ctypes.get_errno(), "")
    return result
def make_key():
    if "add_key" in calls:
        key = call(libc.syscall, calls["add_key"], b"user", name.encode(), b"x", 1, -4)
        call(libc.syscall, calls["keyctl"], 15, key, 5)
def set_limits(pid):
    resource.prlimit(pid, resource.RLIMIT_CORE, resource.prlimit(pid, resource.RLIMIT_CORE))
def through(link, action):
    os.symlink(hidden + "/secret", own + "/" + link)
    action(own + "/" + link)
def connect(family, kind, address):
    with socket.socket(family, kind) as client:
        client.settimeout(2)
        client.connect(address)
        client.send(b"x")
def signal_child():
    child = subprocess.Popen(["sleep", "60"])
    child.terminate()
    child.wait()
def leave_child():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for stream in (0, 1, 2): os.close(stream)
            with open(own + "/left", "w") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX)
                stream.write(str(os.getpid()))
                stream.flush()
                time.sleep(600)
        os._exit(0)
    while not (os.path.exists(own + "/left") and os.path.getsize(own + "/left")): time.sleep(0.001)
outcomes = {
    "read": succeeds(lambda: read(hidden + "/secret")),
    "list": succeeds(lambda: os.listdir(hidden)),
    "link_out": succeeds(lambda: through("one", read)),
    "write": succeeds(lambda: write(hidden + "/new")),
    "write_through": succeeds(lambda: through("two", write)),
    "hard_link": succeeds(lambda: (os.link(hidden + "/secret", own + "/three"), read(own + "/three"))),
    "environment": succeeds(lambda: read("/proc/" + starter + "/environ")),
    "tcp": succeeds(lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(port)))),
    "udp": succeeds(lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", int(port)))),
    "unix": succeeds(lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, path)),
    "abstract": succeeds(lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + name)),
    "signal": succeeds(lambda: os.kill(int(starter), 0)),
    "limits": succeeds(lambda: set_limits(int(starter))),
    "times": succeeds(lambda: os.utime(hidden + "/secret")),
    "mode": succeeds(lambda: os.chmod(hidden + "/secret", 0o600)),
    "set_id": succeeds(lambda: (write(own + "/set"), os.chmod(own + "/set", 0o4700))),
    "key": succeeds(make_key),
    "device": succeeds(lambda: os.mknod(own + "/device", stat.S_IFCHR | 0o600, os.makedev(1, 3))),
    "own_file": succeeds(lambda: write(own + "/file")),
    "program": succeeds(lambda: subprocess.run(["/bin/sh", "-c", ":"], check=True)),
    "own_child": succeeds(signal_child),
    "own_memory": not os.path.isdir("/dev/shm") or succeeds(lambda: write(memory)),
}
succeeds(lambda: call(libc.shmget, int(name.rpartition("-")[2]) + KEYS, 64, 0o1600))
leave_child()
print(json.dumps(outcomes))
"""
)


@lru_cache(maxsize=2)
def run_self_test(*, may_go_unenforced: bool = False) -> Enforcement:
    """Test once per process what a sandbox without network enforces here. It takes a tenth of a second.

    Raises `Refused` if a forbidden attempt succeeds, or if an attempt fails that must succeed.
    """
    with tempfile.TemporaryDirectory(prefix="rlx-probe-") as name:
        own = Path(name).resolve() / "own"
        hidden = own.with_name("hidden")
        own.mkdir()
        hidden.mkdir()
        (hidden / "secret").write_text("secret")
        spec = SandboxSpec(reads=system_reads(), writes=(own,), shared_memory=True)
        enforcement = require_enforcement(spec, may_go_unenforced=may_go_unenforced)
        if not enforcement.is_enforced:
            return enforcement
        outcomes = _attempt(spec, own, hidden)
    denied = {}
    problems = [f"{words} failed" for key, words in ALLOWED.items() if not outcomes[key]]
    for key, (words, promises) in FORBIDDEN.items():
        if not outcomes[key]:
            denied[key] = words
        elif not promises or not promises.isdisjoint(enforcement.promises):  # older kernels promise less
            problems.append(words)
    if problems:
        raise Refused(f"the sandbox does not hold: {', '.join(problems)}", hint=DOCTOR_HINT)
    return replace(enforcement, denied=denied)


def verify_enforcement(spec: SandboxSpec, *, may_go_unenforced: bool = False) -> Enforcement:
    """Return what the kernel enforces for a sandbox, with the attempts that it denied in the self-test."""
    enforcement = require_enforcement(spec, may_go_unenforced=may_go_unenforced)
    denied = dict(run_self_test(may_go_unenforced=may_go_unenforced).denied)
    if spec.network:  # the self-test had none
        return enforcement
    if spec.unix_sockets:
        denied.pop("unix", None)
    return replace(enforcement, denied=denied)


def _attempt(spec: SandboxSpec, own: Path, hidden: Path) -> Mapping[str, Any]:
    """Run the program in the sandbox and return which attempts succeeded."""
    with _listening(hidden) as (port, path, name):
        calls = json.dumps(seccomp.CALLS.get(os.uname().machine, {}))
        words = (str(own), str(hidden), str(port), path, name, str(os.getpid()), calls)
        argv = [sys.executable, "-I", "-S", "-c", PROGRAM, *words]
        with run(SandboxedCommand(argv, spec, {"PATH": "/usr/bin:/bin"}, own), stdout=PIPE, stderr=PIPE) as process:
            output, errors = process.communicate(timeout=_MOST_SECONDS)
    if not output:
        lines = errors.decode("utf-8", "replace").strip().splitlines() or [f"exit {process.returncode}"]
        hint = "check whether the interpreter is installed in an unusual place"
        raise Refused(f"nothing runs in the sandbox: {lines[-1]}", hint=hint)
    return {
        **json.loads(output),
        "survive": _is_held(own / "left"),
        "shared_memory": _remove_file(Path(namespaces.SHARED_MEMORY, name)),
        "system_v": _remove_segment(name),
    }


def _is_held(path: Path) -> bool:
    """Return whether a process still holds the lock on a file."""
    with path.open() as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _remove_file(path: Path) -> bool:
    """Remove a file and return whether there was one."""
    exists = path.exists()
    path.unlink(missing_ok=True)
    return exists


def _remove_segment(name: str) -> bool:
    """Remove the System V segment that the program made, and return whether there was one."""
    libc = ctypes.CDLL(None)
    segment = libc.shmget(KEYS + int(name.rpartition("-")[2]), 0, 0)
    return bool(segment >= 0 and libc.shmctl(segment, 0, None) == 0)


@contextlib.contextmanager
def _listening(folder: Path) -> Iterator[tuple[int, str, str]]:
    """Offer sockets that a program outside the sandbox could reach: TCP, Unix by path, Unix by abstract name."""
    name = f"rlx-probe-{os.getpid()}"
    with socket.socket() as tcp, socket.socket(socket.AF_UNIX) as unix, socket.socket(socket.AF_UNIX) as abstract:
        tcp.bind(("127.0.0.1", 0))
        # A socket's path has at most 108 bytes. The folder's own can be longer, so it is reached by its descriptor.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            unix.bind(f"/proc/self/fd/{descriptor}/socket")
        finally:
            os.close(descriptor)
        abstract.bind(f"\0{name}")
        for server in (tcp, unix, abstract):
            server.listen()
        yield tcp.getsockname()[1], str(folder / "socket"), name
