"""A system-call filter for what Landlock does not know: sockets, keyrings, limits of others, set-user-id programs.

Sockets are refused for every family (but Unix ones where told), with io_uring, which opens sockets past the filter;
`socketpair` stays: its two ends are connected to each other. Kernel keyrings outlive a process and are the account's;
so are System V's shared memory, queues and semaphores, for a process without a namespace of its own.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

_SET_SECCOMP, _FILTER_MODE = 22, 2
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_NOT_PERMITTED, _REFUSED, _ABSENT = 1, 13, 38  # EPERM, EACCES, ENOSYS
_UNIX = 1
_SET_ID_BITS = 0o6000
_OTHER_ABI = 0x40000000  # x32: the same calls under other numbers
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CALLS = {
    "x86_64": {
        "socket": 41, "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240, "add_key": 248, "request_key": 249,
        "keyctl": 250, "prlimit64": 302, "chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "open": 2,
        "creat": 85, "openat": 257, "mknod": 133, "mknodat": 259, "openat2": 437, "io_uring_setup": 425,
    },
    "aarch64": {
        "socket": 198, "shmget": 194, "semget": 190, "msgget": 186, "mq_open": 180, "add_key": 217, "request_key": 218,
        "keyctl": 219, "prlimit64": 261, "fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "openat": 56, "mknodat": 33,
        "openat2": 437, "io_uring_setup": 425,
    },
}  # fmt: skip
"""The numbers of the calls that are filtered, on the machines that this is written for."""
_GONE = ("io_uring_setup", "openat2", "add_key", "request_key", "keyctl")
"""Calls that programs do without: they are absent on older kernels."""
_OF_SYSTEM_V = ("shmget", "semget", "msgget", "mq_open")
_MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "open": 2, "openat": 3, "mknod": 1,
          "mknodat": 2}  # fmt: skip
"""Which argument is the mode of a file."""
Instruction = tuple[int, int, int, int]


def is_possible() -> bool:
    """Say whether the filter can be put in force here."""
    return sys.platform.startswith("linux") and os.uname().machine in CALLS


def restrict(*, network: bool, unix_sockets: bool, has_own_ipc: bool) -> None:
    """Filter the calls of this thread and its children; privileges must have been given up. Raises OSError."""
    program = _program(os.uname().machine, network=network, unix_sockets=unix_sockets, has_own_ipc=has_own_ipc)
    code = b"".join(struct.pack("HBBI", *one) for one in program)
    memory = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(memory))
    if ctypes.CDLL(None, use_errno=True).prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.c_char_p(header), 0, 0):
        raise OSError(ctypes.get_errno(), "the system-call filter cannot be set")


def _program(machine: str, *, network: bool, unix_sockets: bool, has_own_ipc: bool) -> list[Instruction]:
    """Return the filter as (operation, jump if true, jump if false, value); jumps count the instructions skipped."""
    calls = CALLS[machine]
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_IF_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        _failing(_ABSENT),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_IF_AT_LEAST, 0, 1, _OTHER_ABI),
        _failing(_ABSENT),
    ]
    for name in (*_GONE, *(() if has_own_ipc else _OF_SYSTEM_V)):
        program += _of(calls[name], [_failing(_ABSENT)])
    if not network:
        allowed = [(_LOAD, 0, 0, _low(0)), (_IF_EQUAL, 0, 1, _UNIX), _ALLOWED] if unix_sockets else []
        program += _of(calls["socket"], [*allowed, _failing(_REFUSED)])
    for name, argument in _MODES.items():
        test = [(_LOAD, 0, 0, _low(argument)), (_IF_ANY_BIT, 0, 1, _SET_ID_BITS), _failing(_NOT_PERMITTED), _ALLOWED]
        program += _of(calls[name], test) if name in calls else []
    program += _of(calls["prlimit64"], _FOR_ITSELF)
    return [*program, _ALLOWED]


def _of(number: int, then: list[Instruction]) -> list[Instruction]:
    """Return what is done with one call; the last of it decides."""
    return [(_IF_EQUAL, 0, len(then), number), *then]


def _low(argument: int) -> int:
    return _ARGUMENTS_AT + 8 * argument


def _failing(error: int) -> Instruction:
    return (_RETURN, 0, 0, _FAIL | error)


_ALLOWED: Instruction = (_RETURN, 0, 0, _ALLOW)
_FOR_ITSELF: list[Instruction] = [  # pid 0, or no new limits: half by half, for an address has two
    (_LOAD, 0, 0, _low(0)),
    (_IF_EQUAL, 4, 0, 0),
    (_LOAD, 0, 0, _low(2)),
    (_IF_EQUAL, 0, 3, 0),
    (_LOAD, 0, 0, _low(2) + 4),
    (_IF_EQUAL, 0, 1, 0),
    _ALLOWED,
    _failing(_NOT_PERMITTED),
]
