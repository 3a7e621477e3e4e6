"""Namespaces: give a process and its children their own view of the file system and of shared memory.

- Everything that may not be written is mounted read-only, because Landlock does not guard a file's mode, times, owner
  and attributes.
- Shared memory, System V's included, starts empty and no other process sees it.
- Private folders are mounted over other ones, and hidden folders show only what the sandbox lists.
- Its processes have numbers of their own: when the first one ends, the kernel kills all of them.

Root gets a mount namespace. Other accounts get one inside a user namespace, which some distributions forbid.
"""

from __future__ import annotations

import os
import struct
from functools import lru_cache

from rlx.sandbox import libc

SHARED_MEMORY = "/dev/shm"  # noqa: S108  a device, not a temporary folder

# Flags of unshare(2).
_NEW_MOUNTS = 0x00020000
_NEW_IPC = 0x08000000
_NEW_USER = 0x10000000
_NEW_PIDS = 0x20000000
_NEW_NETWORK = 0x40000000
# Requests of ioctl(2) on a network interface, and the flag that brings it up.
_GET_FLAGS = 0x8913
_SET_FLAGS = 0x8914
_UP = 1
# Flags of mount(2).
_NO_SUID = 1 << 1
_NO_DEVICES = 1 << 2
_BIND = 1 << 12
_RECURSIVE = 1 << 14
_SLAVE = 1 << 19
# Arguments of mount_setattr(2), which the C library does not wrap.
_MOUNT_SETATTR = 442
_CURRENT_FOLDER = -100
_RECURSIVE_ATTRIBUTES = 0x8000
_READ_ONLY = 1


def is_possible() -> bool:
    """Return whether this account may have such namespaces here, by trying it in a child."""
    return _is_possible(os.geteuid())


@lru_cache(maxsize=4)
def _is_possible(_account: int) -> bool:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            enter({}, [], shared_memory=os.path.isdir(SHARED_MEMORY))  # noqa: PTH112  pathlib is slow to import
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def has_own_network() -> bool:
    """Return whether this account may have a network of its own, by trying it in a child."""
    return _has_own_network(os.geteuid())


@lru_cache(maxsize=4)
def _has_own_network(_account: int) -> bool:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            enter({}, [], shared_memory=False, own_network=True)
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def enter(
    folders: dict[str, str],
    writes: list[str],
    *,
    shared_memory: bool,
    hidden: dict[str, list[str]] | None = None,
    own_network: bool = False,
) -> None:
    """Move this single-threaded process into namespaces in which everything except `writes` is read-only.

    `folders` maps a place to the folder that this process sees there. `shared_memory` gives it an empty /dev/shm.
    `hidden` maps a folder to the only paths below it that this process sees: names, links and sizes of all others are
    gone. `own_network` gives it a network with a loopback device only: its processes can connect to each other, and to
    nothing else. Raises OSError.
    """
    kinds = _NEW_MOUNTS | _NEW_IPC
    if own_network:
        kinds |= _NEW_NETWORK
    _unshare(kinds)
    if own_network:
        _start_loopback()
    # From here on, mounts made in this namespace do not reach the one outside.
    libc.call("mount", None, b"/", None, _RECURSIVE | _SLAVE, None)
    if shared_memory:
        libc.call("mount", b"tmpfs", SHARED_MEMORY.encode(), b"tmpfs", _NO_SUID | _NO_DEVICES, b"mode=1777")
    for folder, kept in (hidden or {}).items():
        _hide(folder, kept)
    for place, folder in folders.items():
        _bind(folder, place)
    # Each writable path becomes a mount of its own, so that it can be writable below a read-only one.
    for path in writes:
        _bind(path, path)
    _set_attributes(b"/", _RECURSIVE_ATTRIBUTES, setting=_READ_ONLY)
    for path in writes:
        _set_attributes(os.fsencode(path), 0, clearing=_READ_ONLY)
    # The current folder is still the one below the new mounts: enter it again by its path.
    os.chdir(os.getcwd())  # noqa: PTH109


def _unshare(flags: int) -> None:
    """Move this process into new namespaces; an account without rights gets them inside a new user namespace."""
    user = os.geteuid()
    group = os.getegid()
    try:
        libc.call("unshare", flags)
    except PermissionError:
        libc.call("unshare", _NEW_USER | flags)
        # The account keeps its own number inside; the kernel demands `setgroups: deny` before a group map.
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as stream:  # noqa: PTH123
                stream.write(text)


def separate_children() -> bool:
    """Give the future children of this process a PID namespace; return False if this account may have none.

    The first child is its init: when that ends, the kernel kills all other processes in it, however fast they fork.
    The calling process can start no threads any more.
    """
    if not can_separate_children():  # an attempt that fails halfway would leave this process without its account
        return False
    _unshare(_NEW_PIDS)
    return True


@lru_cache(maxsize=4)
def _can_separate(_account: int) -> bool:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _unshare(_NEW_PIDS)
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def can_separate_children() -> bool:
    """Return whether this account may have PID namespaces here, by trying it in a child."""
    return _can_separate(os.geteuid())


def show_own_processes() -> bool:
    """Let /proc show only the processes of this PID namespace. Some containers forbid that: then it shows all."""
    try:
        libc.call("mount", b"proc", b"/proc", b"proc", _NO_SUID | _NO_DEVICES, None)
    except OSError:
        return False
    return True


def can_show_own_processes() -> bool:
    """Return whether a process here may have a PID namespace with its own /proc, by trying it in a child."""
    return _can_show(os.geteuid())


@lru_cache(maxsize=4)
def _can_show(_account: int) -> bool:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if separate_children():
                init = os.fork()
                if init == 0:
                    enter({}, [], shared_memory=False)
                    os._exit(0 if show_own_processes() else 1)
                code = os.waitpid(init, 0)[1]
        finally:
            os._exit(int(code != 0))
    return os.waitpid(child, 0)[1] == 0


def _hide(folder: str, kept: list[str]) -> None:
    """Cover a folder with an empty one, in which only the kept paths appear at their places."""
    opened = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in kept}
    libc.call("mount", b"tmpfs", os.fsencode(folder), b"tmpfs", _NO_SUID | _NO_DEVICES, b"mode=755")
    for path, descriptor in opened.items():
        is_folder = os.path.isdir(f"/proc/self/fd/{descriptor}")  # noqa: PTH112
        parent = path if is_folder else os.path.dirname(path)  # noqa: PTH120
        os.makedirs(parent, exist_ok=True)  # noqa: PTH103
        if not is_folder:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))
        _bind(f"/proc/self/fd/{descriptor}", path)
        os.close(descriptor)


def _start_loopback() -> None:
    import fcntl
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack_from("H", fcntl.ioctl(connection, _GET_FLAGS, request), 16)[0]
        fcntl.ioctl(connection, _SET_FLAGS, struct.pack("16sH14x", b"lo", flags | _UP))


def _bind(folder: str, place: str) -> None:
    libc.call("mount", os.fsencode(folder), os.fsencode(place), None, _BIND | _RECURSIVE, None)


def _set_attributes(path: bytes, flags: int, *, setting: int = 0, clearing: int = 0) -> None:
    attributes = struct.pack("QQQQ", setting, clearing, 0, 0)
    libc.call("syscall", _MOUNT_SETATTR, _CURRENT_FOLDER, path, flags, attributes, len(attributes))
