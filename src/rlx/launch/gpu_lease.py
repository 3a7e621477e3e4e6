"""Which GPUs of this machine other seeds use: a seed takes the free ones first, whichever run it belongs to.

A supervisor holds one lock per GPU and seed, in a folder of this user that all projects share. The locks end with the
supervisor. If every GPU is in use, the one with the fewest seeds is shared: nothing waits.
Not covered: other users, and programs that rlx did not start.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlx import files

MOST_SEEDS = 16
"""How many seeds of one GPU are counted."""


@dataclass(frozen=True)
class GpuLease:
    """The GPUs of one seed, such as `0` or `0,1`, and the locks that tell other supervisors about them."""

    gpus: str | None
    locks: tuple[int, ...] = ()

    def end(self) -> None:
        """Let other seeds have the GPUs."""
        for descriptor in self.locks:
            os.close(descriptor)


def take(places: Sequence[str | None]) -> GpuLease:
    """Take the place whose GPUs the fewest other seeds use; the first of several."""
    if not any(places):
        return GpuLease(places[0])
    try:
        folder = files.user_temporary_folder("rlx-gpus")
        with files.locked(folder / "choose"):
            place = min(dict.fromkeys(places), key=lambda place: _seeds_on(place, folder))
            return GpuLease(place, tuple(_lock(gpu, folder) for gpu in (place or "").split(",")))
    except OSError:  # no place for locks here: the seeds of one run still get different GPUs
        return GpuLease(places[0])


def _seeds_on(place: str | None, folder: Path) -> int:
    """Count the seeds that use the GPUs of a place; the busiest of its GPUs counts."""
    busiest = 0
    for gpu in (place or "").split(","):
        locked = 0
        for number in range(MOST_SEEDS):
            path = _file(gpu, number, folder)
            if path.exists() and _is_locked(path):
                locked += 1
        busiest = max(busiest, locked)
    return busiest


def _is_locked(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _lock(gpu: str, folder: Path) -> int:
    """Lock the first free file of a GPU and return its descriptor; the last one is shared by all others."""
    for number in range(MOST_SEEDS):
        path = _file(gpu, number, folder)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        if number < MOST_SEEDS - 1:
            os.close(descriptor)
    return descriptor


def _file(gpu: str, number: int, folder: Path) -> Path:
    return folder / f"{re.sub(r'[^A-Za-z0-9-]', '_', gpu)[:80]}.{number}"
