"""A system-call filter for everything that Landlock does not cover: sockets, keyrings, limits, set-user-id programs.

- Sockets: refused for every family, or for all except Unix sockets. io_uring is refused too, because it opens sockets
  without a call of `socket`. `socketpair` stays allowed: its two ends are connected only to each other.
- Kernel keyrings: they belong to the account and outlive the process.
- System V memory, queues and semaphores: they belong to the account, unless the process has its own IPC namespace.

The filter is a BPF program, see seccomp(2). It reads the call's number and arguments, jumps forward, and ends with a
return instruction that allows the call or lets it fail.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

from rlx.sandbox import libc

# prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program)
_SET_SECCOMP = 22
_FILTER_MODE = 2

# BPF operations: load a word, compare and jump, return.
_LOAD = 0x20
_IF_EQUAL = 0x15
_IF_AT_LEAST = 0x35
_IF_ANY_BIT = 0x45
_RETURN = 0x06
# Values of the return instruction; the error number is added to _FAIL.
_ALLOW = 0x7FFF0000
_FAIL = 0x00050000

# Offsets in `struct seccomp_data`. Each argument has 8 bytes, the low half first.
_NUMBER_AT = 0
_ARCHITECTURE_AT = 4
_ARGUMENTS_AT = 16

_EPERM = 1
_EACCES = 13
_ENOSYS = 38
_UNIX_FAMILY = 1
_SET_ID_BITS = 0o6000
_X32_BIT = 0x40000000  # x86_64 offers the same calls a second time, under other numbers
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# Numbers of the filtered calls, by machine. A machine that is not listed has no filter.
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
# Calls that fail as on an older kernel without them: programs can do without.
_ABSENT_CALLS = ("io_uring_setup", "openat2", "add_key", "request_key", "keyctl")
_SYSTEM_V_CALLS = ("shmget", "semget", "msgget", "mq_open")
# Calls that set a file's mode, by the argument that holds it. (openat2 has it in memory, and is absent.)
_MODE_CALLS = {
    1: ("chmod", "fchmod", "creat", "mknod"),
    2: ("fchmodat", "fchmodat2", "open", "mknodat"),
    3: ("openat",),
}
# Operation, instructions to skip if the test is true, instructions to skip if it is false, value.
Instruction = tuple[int, int, int, int]


def is_possible() -> bool:
    """Return whether this machine can have the filter."""
    return sys.platform.startswith("linux") and os.uname().machine in CALLS


def restrict(*, network: bool, unix_sockets: bool, has_own_ipc: bool) -> None:
    """Filter the calls of this thread and its children. `no_new_privs` must be set before. Raises OSError."""
    program = _program(os.uname().machine, network=network, unix_sockets=unix_sockets, has_own_ipc=has_own_ipc)
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    memory = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(memory))
    libc.call("prctl", _SET_SECCOMP, _FILTER_MODE, header, 0, 0)


def _program(machine: str, *, network: bool, unix_sockets: bool, has_own_ipc: bool) -> list[Instruction]:
    numbers = CALLS[machine]
    # First refuse calls by another architecture's or ABI's numbers: they would slip through the tests below.
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_IF_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        _fail(_ENOSYS),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_IF_AT_LEAST, 0, 1, _X32_BIT),
        _fail(_ENOSYS),
    ]
    absent = list(_ABSENT_CALLS)
    if not has_own_ipc:
        absent += _SYSTEM_V_CALLS
    for name in absent:
        program += _for_call(numbers[name], [_fail(_ENOSYS)])
    if not network:
        decision = [_fail(_EACCES)]
        if unix_sockets:
            decision = [(_LOAD, 0, 0, _low_half(0)), (_IF_EQUAL, 0, 1, _UNIX_FAMILY), _ALLOWED, *decision]
        program += _for_call(numbers["socket"], decision)
    for argument, names in _MODE_CALLS.items():
        has_set_id = (_IF_ANY_BIT, 0, 1, _SET_ID_BITS)
        decision = [(_LOAD, 0, 0, _low_half(argument)), has_set_id, _fail(_EPERM), _ALLOWED]
        for name in numbers.keys() & names:
            program += _for_call(numbers[name], decision)
    program += _for_call(numbers["prlimit64"], _OWN_LIMITS_ONLY)
    return [*program, _ALLOWED]


def _for_call(number: int, decision: list[Instruction]) -> list[Instruction]:
    """Return instructions that decide about one call. The decision must end with a return: it loads over the number."""
    return [(_IF_EQUAL, 0, len(decision), number), *decision]


def _low_half(argument: int) -> int:
    return _ARGUMENTS_AT + 8 * argument


def _fail(error: int) -> Instruction:
    return (_RETURN, 0, 0, _FAIL | error)


_ALLOWED: Instruction = (_RETURN, 0, 0, _ALLOW)
# prlimit64(pid, resource, new, old) is allowed if the pid is 0 (itself), or if `new` is NULL (it only reads).
# An address has two halves, which are tested one after the other.
_OWN_LIMITS_ONLY: list[Instruction] = [
    (_LOAD, 0, 0, _low_half(0)),
    (_IF_EQUAL, 4, 0, 0),
    (_LOAD, 0, 0, _low_half(2)),
    (_IF_EQUAL, 0, 3, 0),
    (_LOAD, 0, 0, _low_half(2) + 4),
    (_IF_EQUAL, 0, 1, 0),
    _ALLOWED,
    _fail(_EPERM),
]
