"""Namespaces of its own: what a process and its children see of files and of shared memory is theirs alone.

Everything but what may be written is mounted read-only there, for Landlock does not guard modes, times, owners and
attributes of files; shared memory, System V's too, is empty at first and seen by nobody else, and folders stand in the
place of others. As root by a mount namespace, else by one inside a user namespace of its own, which some distributions
forbid.
"""

from __future__ import annotations

import ctypes
import os
import struct
from functools import lru_cache

SHARED_MEMORY = "/dev/shm"  # noqa: S108  a device, not a temporary folder
_NEW_MOUNTS, _NEW_IPC, _NEW_USER = 0x00020000, 0x08000000, 0x10000000
_NO_SUID, _NO_DEVICES, _BIND, _RECURSIVE, _SLAVE = 1 << 1, 1 << 2, 1 << 12, 1 << 14, 1 << 19
_SET_ATTRIBUTES, _HERE, _WITH_ALL_BELOW, _READ_ONLY = 442, -100, 0x8000, 1


def is_possible() -> bool:
    """Say whether this account may have such namespaces here, by trying it in a child."""
    return _is_possible(os.geteuid())


@lru_cache(maxsize=4)
def _is_possible(_account: int) -> bool:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            own({}, [], shared_memory=os.path.isdir(SHARED_MEMORY))  # noqa: PTH112  as in the package: light
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def own(folders: dict[str, str], writes: list[str], *, shared_memory: bool) -> None:
    """Move this process of one thread into namespaces where only `writes` are not read-only.

    There folders stand in the place of others (place → folder), and shared memory is empty. Raises OSError.
    """
    user, group = os.geteuid(), os.getegid()
    try:
        _called("unshare", _NEW_MOUNTS | _NEW_IPC)
    except PermissionError:
        _called("unshare", _NEW_USER | _NEW_MOUNTS | _NEW_IPC)
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as stream:  # noqa: PTH123
                stream.write(text)
    _called("mount", None, b"/", None, _RECURSIVE | _SLAVE, None)  # what is mounted here stays here
    if shared_memory:
        _called("mount", b"tmpfs", SHARED_MEMORY.encode(), b"tmpfs", _NO_SUID | _NO_DEVICES, b"mode=1777")
    for place, folder in folders.items():
        _bind(folder, place)
    for path in writes:
        _bind(path, path)
    _set_attributes("/", setting=_READ_ONLY)
    for path in writes:
        _set_attributes(path, clearing=_READ_ONLY)
    os.chdir(os.getcwd())  # noqa: PTH109  by its path: the folder itself lies below what was mounted there


def _bind(folder: str, place: str) -> None:
    _called("mount", os.fsencode(folder), os.fsencode(place), None, _BIND | _RECURSIVE, None)


def _set_attributes(path: str, *, setting: int = 0, clearing: int = 0) -> None:
    attributes = struct.pack("QQQQ", setting, clearing, 0, 0)
    flags = _WITH_ALL_BELOW if setting else 0
    _called("syscall", _SET_ATTRIBUTES, _HERE, os.fsencode(path), flags, attributes, len(attributes))


def _called(name: str, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*(ctypes.c_long(one) if isinstance(one, int) else one for one in arguments)):
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
