"""Landlock: which files, TCP ports and processes this process can still reach; restricted for good, children too.

See landlock(7). Everything handled is denied but what a rule allows. ABI 4 added TCP, 5 device ioctls, 6 signals and
abstract sockets; what an older kernel lacks is left out here and named by `box.not_covered`.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_SYM = (
    1 << bit for bit in (4, 5, 7, 8, 9, 10, 12)
)
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
READ = EXECUTE | READ_FILE | READ_DIR
WRITE = (
    READ
    | WRITE_FILE
    | REMOVE_DIR
    | REMOVE_FILE
    | MAKE_DIR
    | MAKE_REG
    | MAKE_SOCK
    | MAKE_FIFO
    | MAKE_SYM
    | REFER
    | TRUNCATE
)
DEVICE = READ_FILE | READ_DIR | WRITE_FILE | IOCTL_DEV
OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
TCP, SCOPES = 0b11, 0b11
TCP_ABI, SIGNALS_ABI = 4, 6
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38


def abi() -> int:
    """Return the version of Landlock that this kernel offers; 0 where it has none."""
    if not sys.platform.startswith("linux"):
        return 0
    found: int = ctypes.CDLL(None).syscall(CREATE_RULESET, None, 0, 1)
    return max(0, found)


def restrict(rights: dict[str, int], *, has_network: bool) -> None:
    """Deny this thread and its children every file but those under `rights` (path → bits), and TCP unless told.

    Raises OSError; then nothing is in force.
    """
    version = abi()
    handled = _handled(version)
    tcp = 0 if has_network or version < TCP_ABI else TCP
    scopes = SCOPES if version >= SIGNALS_ABI else 0
    attributes = struct.pack("QQQ", handled, tcp, scopes)[: 24 if version >= 6 else 16 if version >= TCP_ABI else 8]
    ruleset = _called(CREATE_RULESET, ctypes.c_char_p(attributes), len(attributes), 0)
    try:
        for path, wanted in rights.items():
            _allow(ruleset, path, wanted & handled)
        forbid_new_privileges()
        _called(RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def forbid_new_privileges() -> None:
    """Give up what set-user-id programs and file capabilities could grant."""
    if ctypes.CDLL(None, use_errno=True).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs cannot be set")


def _handled(version: int) -> int:
    bits = 13 if version < 2 else 14 if version < 3 else 15 if version < 5 else 16
    return (1 << bits) - 1


def _allow(ruleset: int, path: str, rights: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        rule = struct.pack("=Qi", rights if is_folder else rights & OF_A_FILE, descriptor)
        _called(ADD_RULE, ruleset, _PATH_BENEATH, ctypes.c_char_p(rule), 0)
    finally:
        os.close(descriptor)


def _called(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(number, *arguments)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"Landlock system call {number}: {os.strerror(error)}")
    return result
