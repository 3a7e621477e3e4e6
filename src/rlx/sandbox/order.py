"""A box as plain data for the kernel, and the moment a process gives everything else up."""

from __future__ import annotations

import ctypes
import os
import resource

from rlx.sandbox import landlock, mounts, seccomp

TYPE_CHECKING = False  # as in the package: a keeper starts faster without `typing`
if TYPE_CHECKING:
    from typing import TypedDict

    class Order(TypedDict):
        """`rights` are paths with Landlock's bits, `limits` are names of rlimits (`FSIZE`) with their values.

        `folders` are places with the folder that stands there for this process alone, in namespaces of its own.
        """

        is_enforced: bool
        namespaces: bool
        shared_memory: bool
        folders: dict[str, str]
        rights: dict[str, int]
        network: bool
        unix_sockets: bool
        limits: dict[str, int]
        processes: int | None


_KEPT_CAPABILITIES = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4
"""Of root: chown, dac_override, fowner, fsetid. They concern files, which Landlock and read-only mounts guard."""
_CAPABILITY_VERSION = 0x20080522


def give_up(order: Order) -> None:
    """Give up, for good, what the order does not allow. Raises OSError where the kernel refuses."""
    _limit(order)
    if not order["is_enforced"]:
        return
    if order["namespaces"]:
        writes = [path for path, bits in order["rights"].items() if bits & landlock.MAKE_REG]
        mounts.own(order["folders"], writes, shared_memory=order["shared_memory"])
    landlock.restrict(order["rights"], has_network=order["network"])
    if seccomp.is_possible():
        seccomp.restrict(network=order["network"], unix_sockets=order["unix_sockets"], has_own_ipc=order["namespaces"])
    _drop_capabilities()


def _limit(order: Order) -> None:
    limits = dict(order["limits"])
    if order["processes"] is not None and os.getuid() != 0:  # the kernel does not count root's
        limits["NPROC"] = _tasks_of(os.getuid()) + order["processes"]
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        _, hard = resource.getrlimit(kind)
        allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (allowed, allowed))


def _tasks_of(uid: int) -> int:
    """Return how many processes and threads an account has: the kernel's limit is over all of them together."""
    count = 0
    for name in os.listdir("/proc"):  # noqa: PTH208  pathlib would be half of a keeper's start
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid:  # noqa: PTH116
                count += len(os.listdir(f"/proc/{name}/task"))  # noqa: PTH208
        except OSError:
            continue
    return count


def _drop_capabilities() -> None:
    """Keep, as root, only the capabilities that concern files; no exec brings the others back (no_new_privs).

    Others have some only in a user namespace of their own, and keep none.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "capset"):
        return
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    current = (ctypes.c_uint32 * 6)()
    libc.capget(header, current)
    kept = current[1] & _KEPT_CAPABILITIES if os.geteuid() == 0 else 0
    if libc.capset(header, (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0)):
        raise OSError(ctypes.get_errno(), "capabilities cannot be given up")
