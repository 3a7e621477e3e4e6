"""Apply a sandbox's rules to the current process, for good. The rules are plain data that can be sent as JSON."""

from __future__ import annotations

import ctypes
import os
import resource

from rlx.sandbox import landlock, libc, namespaces, seccomp

TYPE_CHECKING = False  # the reaper starts faster without `typing`
if TYPE_CHECKING:
    from typing import Any

    KernelRules = dict[str, Any]

# chown, dac_override, fowner, fsetid: they concern files, which Landlock and read-only mounts guard.
_FILE_CAPABILITIES = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4
_CAPABILITY_VERSION = 0x20080522


def apply_rules(rules: KernelRules) -> None:
    """Restrict this process and its future children for good, by the rules that `SandboxSpec.kernel_rules` returns.

    The order matters. Mounts and /proc need rights that Landlock takes away. Landlock sets `no_new_privs`, which the
    system-call filter needs. Capabilities go last, because all other steps may need them.
    Raises OSError if the kernel refuses a step.
    """
    _set_limits(rules)
    if not rules["is_enforced"]:
        return
    if rules["namespaces"]:
        writes = [path for path, bits in rules["rights"].items() if bits & landlock.MAKE_REG]
        namespaces.enter(
            rules["folders"], writes, shared_memory=rules["shared_memory"], hidden=rules["hidden"],
            own_network=rules["own_network"],
        )  # fmt: skip
        if rules.get("shows_own_processes"):
            namespaces.show_own_processes()
    has_network = rules["network"] or rules["own_network"]
    landlock.restrict(rules["rights"], has_network=has_network)
    if seccomp.is_possible():
        seccomp.restrict(network=has_network, unix_sockets=rules["unix_sockets"], has_own_ipc=rules["namespaces"])
    _drop_capabilities()


def _set_limits(rules: KernelRules) -> None:
    limits = dict(rules["limits"])
    if rules["processes"] is not None and os.getuid() != 0:  # the kernel does not count root's processes
        limits["NPROC"] = _count_tasks(os.getuid()) + rules["processes"]
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        _, hard = resource.getrlimit(kind)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(kind, (value, value))


def _count_tasks(uid: int) -> int:
    """Return how many processes and threads an account has: RLIMIT_NPROC counts all of them together."""
    count = 0
    for name in os.listdir("/proc"):  # noqa: PTH208  importing pathlib would double the reaper's start-up time
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid:  # noqa: PTH116
                count += len(os.listdir(f"/proc/{name}/task"))  # noqa: PTH208
        except OSError:
            continue
    return count


def _drop_capabilities() -> None:
    """Keep only root's capabilities that concern files. Because of `no_new_privs`, no exec restores the others.

    Other accounts have capabilities only inside their user namespace, and keep none.
    """
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    # Two blocks (low and high capability numbers) of three words: effective, permitted, inheritable.
    current = (ctypes.c_uint32 * 6)()
    libc.call("capget", header, current)
    kept = 0
    if os.geteuid() == 0:
        kept = current[1] & _FILE_CAPABILITIES
    libc.call("capset", header, (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0))
