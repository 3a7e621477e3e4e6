"""A box: what a process may read, write and use; and what of it is in force here."""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.errors import Refused
from rlx.sandbox import landlock, mounts, seccomp

if TYPE_CHECKING:
    from rlx.sandbox.order import Order

MECHANISM = "landlock"
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/etc", "/opt", "/nix/store", "/proc", "/sys")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "dri", "kfd", "nvidia*")
OPEN_FILES = 4096
UNCHANGEABLE = "times, modes and attributes of other files stay"
NO_KEYRINGS, NO_SET_ID, NO_LIMITS = "no keyrings", "no set-user-id programs", "no limits for other processes"
ABSENT_HINT = (
    "needs Linux ≥ 5.13 with Landlock (rlx doctor); `automation.sandbox: if available` goes without, and says so"
)


@dataclass(frozen=True)
class Box:
    """What a process may reach. Nothing else: `reads` usually begin with `system_reads()`.

    Paths must exist. `writes` may be read too, of `lists` only names are seen. `folders` are places, and what stands
    there for this process alone, where the account may have that; they may be written to. `shared_memory` is for
    programs that start others with `multiprocessing`, or share tensors. `memory_bytes` and `file_bytes` hold for each
    process and file, `cpu_seconds` for each process; `processes` are those it may have at once (root's are counted by
    nobody but whoever watches it). Without `network` there are no sockets but socket pairs, and Unix sockets where
    `unix_sockets` says.
    """

    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    lists: tuple[Path, ...] = ()
    folders: tuple[tuple[Path, Path], ...] = ()
    shared_memory: bool = False
    network: bool = False
    cpu_seconds: int | None = None
    memory_bytes: int | None = None
    file_bytes: int | None = None
    processes: int | None = None
    unix_sockets: bool = False

    def shows(self, path: Path) -> bool:
        """Say whether something inside can read a path: Landlock has no exceptions below what a box allows."""
        target = path.resolve()
        return any(target.is_relative_to(one.resolve()) for one in (*self.reads, *self.writes))

    def order(self, *, is_enforced: bool) -> Order:
        """Return the box as plain data for the kernel."""
        has_own = is_enforced and mounts.is_possible()
        return {
            "is_enforced": is_enforced,
            "namespaces": has_own,
            "shared_memory": has_own and self.shared_memory,
            "folders": {str(place): str(folder) for place, folder in self.folders if has_own},
            "rights": self._rights(),
            "network": self.network,
            "unix_sockets": self.unix_sockets,
            "limits": self._limits(),
            "processes": self.processes,
        }

    def _rights(self) -> dict[str, int]:
        rights: dict[str, int] = {}
        places = [place for place, _ in self.folders]
        shared = [path for path in (Path(mounts.SHARED_MEMORY),) if self.shared_memory and path.is_dir()]
        for paths, bits in (
            (self.reads, landlock.READ), (self.lists, landlock.READ_DIR), (_devices(), landlock.DEVICE),
            ((*self.writes, *places, *shared), landlock.WRITE),
        ):  # fmt: skip
            for path in paths:
                rights[str(path)] = rights.get(str(path), 0) | bits
        return rights

    def _limits(self) -> dict[str, int]:
        asked = {"CPU": self.cpu_seconds, "DATA": self.memory_bytes, "FSIZE": self.file_bytes}
        return {"CORE": 0, "NOFILE": OPEN_FILES, **{name: value for name, value in asked.items() if value is not None}}


@dataclass(frozen=True)
class Enforced:
    """What is in force for a process; `is_probed` where it was tried and not only asked for."""

    mechanism: str
    abi: int
    enforced: tuple[str, ...]
    not_covered: tuple[str, ...]
    is_probed: bool = False

    @property
    def is_enforced(self) -> bool:
        return self.mechanism != "none"

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {
            "mechanism": self.mechanism,
            "abi": self.abi,
            "probed": self.is_probed,
            "enforced": list(self.enforced),
            "not_covered": list(self.not_covered),
        }


def in_force(box: Box, *, may_go_unenforced: bool = False) -> Enforced:
    """Return what would be in force for a process in this box, or refuse where the kernel cannot enforce it."""
    version = landlock.abi()
    if version:
        return Enforced(MECHANISM, version, _enforced(box, version), not_covered(box, version))
    if not may_go_unenforced:
        raise Refused("this kernel has no Landlock: nothing would hold a program in its sandbox", hint=ABSENT_HINT)
    return Enforced("none", 0, _limited(box), ("files", "network", "signals", "other processes' memory"))


def _enforced(box: Box, version: int) -> tuple[str, ...]:
    has_filter = seccomp.is_possible()
    network = {
        "no sockets": not box.network and has_filter and not box.unix_sockets,
        "no sockets but Unix ones": not box.network and has_filter and box.unix_sockets,
        "no TCP": not box.network and version >= landlock.TCP_ABI,
    }
    return (
        "reads only what is listed",
        "writes only what is listed",
        "no tracing of processes outside",
        "no new privileges",
        *_owned(box),
        *((NO_KEYRINGS, NO_SET_ID, NO_LIMITS) if has_filter else ()),
        *(("no signals to processes outside",) if version >= landlock.SIGNALS_ABI else ()),
        *(says for says, holds in network.items() if holds),
        *_limited(box),
    )


def _owned(box: Box) -> tuple[str, ...]:
    """Return what the process has for itself, in namespaces of its own."""
    if not mounts.is_possible():
        return ()
    wanted = {"shared memory of its own": box.shared_memory, "folders of its own": bool(box.folders)}
    return (UNCHANGEABLE, *(says for says, holds in wanted.items() if holds))


def _limited(box: Box) -> tuple[str, ...]:
    asked = {
        f"{box.cpu_seconds} s of CPU a process": box.cpu_seconds,
        f"{box.memory_bytes} bytes of memory a process": box.memory_bytes,
        f"{box.file_bytes} bytes a file": box.file_bytes,
        f"{box.processes} processes": box.processes if os.getuid() != 0 else None,
    }
    return ("no core files", *(says for says, value in asked.items() if value is not None))


def not_covered(box: Box, version: int) -> tuple[str, ...]:
    """Return what a process in this box can still do, on a kernel with this version of Landlock."""
    holes = {
        "existence and size of hidden files (stat)": True,
        "names and command lines of other processes (/proc)": True,
        "the space all files take together": bool(box.writes),
        "shared memory (/dev/shm) of other boxes": box.shared_memory and not mounts.is_possible(),
        "what others write in folders of the same run": bool(box.folders) and not mounts.is_possible(),
        "times, modes and attributes of the account's files": not mounts.is_possible(),
        "System V shared memory, keyrings, limits of other processes": not seccomp.is_possible(),
        "cores and priority of processes of the same account": True,
        "memory and CPU of all processes together": True,
        "the number of processes (root)": os.getuid() == 0 or box.processes is None,
        "the network": box.network,
        "UDP and raw sockets": not box.network and not seccomp.is_possible(),
        "TCP": not box.network and version < landlock.TCP_ABI and not seccomp.is_possible(),
        "Unix sockets reached by their path": box.network or box.unix_sockets or not seccomp.is_possible(),
        "signals to processes of the same account": version < landlock.SIGNALS_ABI,
        "who runs outside the box under the same account": True,
    }
    return tuple(says for says, is_open in holes.items() if is_open)


def enter(box: Box, *, may_go_unenforced: bool = False) -> Enforced:
    """Put this process into a box, for good; files that are open already stay open.

    The kernel restricts one thread and its children, so it must be the only one.
    """
    from rlx.sandbox.order import give_up

    found = in_force(box, may_go_unenforced=may_go_unenforced)
    threads = len(os.listdir("/proc/self/task")) if found.is_enforced else 1  # noqa: PTH208
    if threads > 1:
        raise Refused(f"{threads} threads run in this process: only one of them would be held", hint="enter it earlier")
    try:
        give_up(box.order(is_enforced=found.is_enforced))
    except OSError as error:
        raise Refused(
            f"the sandbox cannot be entered: {error}", hint="rlx doctor says what this kernel enforces"
        ) from error
    return found


def system_reads() -> tuple[Path, ...]:
    """Return what every program needs to read: the system, this interpreter with its packages, and rlx itself."""
    import rlx

    own = Path(rlx.__file__).parents[1]  # which an import lists, too
    packages = [
        *site.getsitepackages(),
        *(path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")),
    ]
    prefixes = (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)
    return tuple(_distinct([*map(Path, (*SYSTEM, *prefixes, *packages)), own]))


def _distinct(paths: Iterable[Path]) -> Iterable[Path]:
    return dict.fromkeys(path for path in paths if path.is_absolute() and path.exists())


def _devices() -> tuple[Path, ...]:
    return tuple(path for name in DEVICES for path in sorted(Path("/dev").glob(name)))


def private(folder: Path) -> dict[str, str]:
    """Make a home and a temporary folder in `folder`, which the box must let write, and return their variables."""
    home, temporary = folder / "home", folder / "tmp"
    for made in (home, temporary):
        made.mkdir(parents=True, exist_ok=True)
    return {
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "MPLCONFIGDIR": str(home),
    }
