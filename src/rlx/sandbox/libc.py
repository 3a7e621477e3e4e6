"""Calls of C library functions, with errors as exceptions."""

from __future__ import annotations

import ctypes
import os


def call(name: str, *arguments: object) -> int:
    """Call a C library function and return its result. Raise OSError if it fails."""
    libc = ctypes.CDLL(None, use_errno=True)
    # ctypes passes a Python integer as 32 bits, but system calls and prctl read longs.
    words = (ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments)
    result: int = getattr(libc, name)(*words)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
    return result
