"""Landlock: restricts for good which files, TCP ports and processes this process and its children can reach.

See landlock(7). A ruleset lists the kinds of access that it handles. The kernel denies every handled access that no
rule allows. ABI 4 added TCP, ABI 5 device ioctls, ABI 6 signals and abstract sockets. This module leaves out what an
older kernel lacks, and `spec.not_covered` names the gap.
"""

from __future__ import annotations

import os
import stat
import struct
import sys

from rlx.sandbox import libc

# Numbers of the system calls: the same on every architecture.
CREATE_RULESET = 444
ADD_RULE = 445
RESTRICT_SELF = 446

# Access rights (LANDLOCK_ACCESS_FS_*). Bits 6 and 11 (make character and block devices) are never allowed.
EXECUTE = 1 << 0
WRITE_FILE = 1 << 1
READ_FILE = 1 << 2
READ_DIR = 1 << 3
REMOVE = 1 << 4 | 1 << 5  # folders, files
MAKE_REG = 1 << 8
MAKE = 1 << 7 | MAKE_REG | 1 << 9 | 1 << 10 | 1 << 12  # folders, files, sockets, pipes, symbolic links
REFER = 1 << 13
TRUNCATE = 1 << 14
IOCTL_DEV = 1 << 15

READ = EXECUTE | READ_FILE | READ_DIR
WRITE = READ | WRITE_FILE | TRUNCATE | REFER | REMOVE | MAKE
DEVICE = READ_FILE | READ_DIR | WRITE_FILE | IOCTL_DEV
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

TCP = 0b11  # bind, connect
SCOPES = 0b11  # abstract sockets, signals
TCP_ABI = 4
SIGNALS_ABI = 6
_PATH_BENEATH = 1
_SET_NO_NEW_PRIVILEGES = 38


def abi() -> int:
    """Return the version of Landlock that this kernel offers, or 0 if it has none."""
    if not sys.platform.startswith("linux"):
        return 0
    try:
        return libc.call("syscall", CREATE_RULESET, None, 0, 1)
    except OSError:
        return 0


def restrict(rights: dict[str, int], *, has_network: bool) -> None:
    """Deny this thread and its children every file that is not below a path of `rights` (path → access bits).

    Also denies TCP without `has_network`. If it raises OSError, nothing is in force.
    """
    version = abi()
    # One bit per file right that this kernel knows: REFER came with ABI 2, TRUNCATE with 3, IOCTL_DEV with 5.
    handled = (1 << 13 + (version >= 2) + (version >= 3) + (version >= 5)) - 1
    # A kernel refuses a longer struct than it knows, so each field is added only from its own ABI on.
    fields = [handled]
    if version >= TCP_ABI:
        fields.append(0 if has_network else TCP)
    if version >= SIGNALS_ABI:
        fields.append(SCOPES)
    attributes = struct.pack(f"{len(fields)}Q", *fields)
    ruleset = libc.call("syscall", CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for path, allowed in rights.items():
            _allow(ruleset, path, allowed & handled)
        # The kernel accepts a ruleset only from a process that cannot gain privileges by running a program.
        libc.call("prctl", _SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        libc.call("syscall", RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= FILE_RIGHTS  # the kernel refuses the rights of a folder on a file
        libc.call("syscall", ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)
