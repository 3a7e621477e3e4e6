"""A system-call filter that leaves no way to the network: Landlock knows TCP only.

`socket` is refused for every family (but Unix sockets where told), io_uring too, which opens sockets past the filter.
`socketpair` stays: its two ends are connected to each other.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

_SET_SECCOMP, _FILTER_MODE = 22, 2
_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16
_REFUSED, _ABSENT = 13, 38  # EACCES, ENOSYS
_UNIX = 1
_IO_URING_SETUP = 425
_OTHER_ABI = 0x40000000  # x32: the same calls under other numbers
MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""The audit architecture and the number of `socket` on the machines this filter is written for."""


def is_possible() -> bool:
    """Say whether the filter can be put in force here."""
    return sys.platform.startswith("linux") and os.uname().machine in MACHINES


def forbid_sockets(*, but_unix: bool) -> None:
    """Refuse new sockets to this thread and its children; privileges must have been given up. Raises OSError."""
    architecture, socket = MACHINES[os.uname().machine]
    program = _program(architecture, socket, but_unix=but_unix)
    code = b"".join(struct.pack("HBBI", *one) for one in program)
    memory = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(memory))
    if ctypes.CDLL(None, use_errno=True).prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.c_char_p(header), 0, 0):
        raise OSError(ctypes.get_errno(), "the system-call filter cannot be set")


def _program(architecture: int, socket: int, *, but_unix: bool) -> list[tuple[int, int, int, int]]:
    """Return the filter as (operation, jump if true, jump if false, value); jumps count the instructions skipped."""
    return [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_IF_EQUAL, 0, 8, architecture),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_JUMP_IF_AT_LEAST, 6, 0, _OTHER_ABI),
        (_JUMP_IF_EQUAL, 5, 0, _IO_URING_SETUP),
        (_JUMP_IF_EQUAL, 0, 2, socket),
        (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
        (_JUMP_IF_EQUAL, 0, 1, _UNIX if but_unix else 0xFFFF),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _FAIL | _REFUSED),
        (_RETURN, 0, 0, _FAIL | _ABSENT),
    ]
