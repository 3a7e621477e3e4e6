"""Places of its own: shared memory and folders that only this process and its children see there.

As root by a mount namespace, else by one inside a user namespace of its own, which some distributions forbid.
"""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache

SHARED_MEMORY = "/dev/shm"  # noqa: S108  a device, not a temporary folder
_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000
_NO_SUID, _NO_DEVICES, _BIND, _RECURSIVE, _SLAVE = 1 << 1, 1 << 2, 1 << 12, 1 << 14, 1 << 19


@lru_cache(maxsize=1)
def is_possible() -> bool:
    """Say whether this account may have such places here, by trying it in a child."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            own({}, shared_memory=os.path.isdir(SHARED_MEMORY))  # noqa: PTH112  as in the package: light
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0


def own(folders: dict[str, str], *, shared_memory: bool) -> None:
    """Put folders in the place of others (place → folder), and an empty shared memory, for this process of one thread.

    Raises OSError.
    """
    user, group = os.geteuid(), os.getegid()
    try:
        _called("unshare", _NEW_MOUNTS)
    except PermissionError:
        _called("unshare", _NEW_USER | _NEW_MOUNTS)
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as stream:  # noqa: PTH123
                stream.write(text)
    _called("mount", None, b"/", None, _RECURSIVE | _SLAVE, None)  # what is mounted here stays here
    if shared_memory:
        _called("mount", b"tmpfs", SHARED_MEMORY.encode(), b"tmpfs", _NO_SUID | _NO_DEVICES, b"mode=1777")
    for place, folder in folders.items():
        _called("mount", os.fsencode(folder), os.fsencode(place), None, _BIND, None)


def _called(name: str, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*(ctypes.c_ulong(one) if isinstance(one, int) else one for one in arguments)):
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
