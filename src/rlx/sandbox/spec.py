"""Sandbox specifications: what a process may read, write and use, and how much of that this machine can enforce.

Each sandbox is built where its process is started:

- training jobs of a study's candidates: `launch/study_jobs/study_job.py`
- the check whether a candidate can train: `launch/study_jobs/check_in_sandbox.py`
- the sealed evaluator: `evaluate/sealed/sealed_evaluation.py`
- a foreign policy inside that evaluator: `evaluate/policy_server/policy_client.py`
- a repository's own evaluation command: `evaluate/command/command_evaluation.py`
- the self-test: `sandbox/self_test.py`

`sandbox/apply.py` puts the kernel's part in force, `sandbox/popen.py` starts a program that way.
"""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.errors import Refused
from rlx.sandbox import landlock, namespaces, seccomp

if TYPE_CHECKING:
    from rlx.sandbox.apply import KernelRules

SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/etc", "/opt", "/nix/store", "/proc", "/sys")
DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "dri", "kfd", "nvidia*")
OPEN_FILES = 4096
DOCTOR_HINT = "rlx doctor shows what this kernel enforces"


@dataclass(frozen=True)
class SandboxSpec:
    """What a process may reach, and nothing else. `reads` usually starts with `system_reads()`. All paths must exist.

    Everything in `writes` can be read, too. In `lists` the process sees only names. `folders` pairs a place with the
    private folder that the process sees there and may write, if the account can have namespaces. Then it also sees
    nothing in `hides` except what is in `reads`, `writes` and `folders`, not even names. `shared_memory` is for
    programs that use `multiprocessing` or share tensors. Without `network` it can open only socket pairs,
    and Unix sockets with `unix_sockets`. `memory_bytes` and `cpu_seconds` limit each process, `file_bytes` each file.
    `processes` limits how many run at once; the kernel does not count root's, see `usage_limits`.
    """

    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    lists: tuple[Path, ...] = ()
    folders: tuple[tuple[Path, Path], ...] = ()
    hides: tuple[Path, ...] = ()
    shared_memory: bool = False
    network: bool = False
    cpu_seconds: int | None = None
    memory_bytes: int | None = None
    file_bytes: int | None = None
    processes: int | None = None
    unix_sockets: bool = False
    local_sockets: bool = False
    """Sockets between its own processes: a network with a loopback only. Without namespaces, Unix sockets only."""

    @property
    def has_own_network(self) -> bool:
        """Whether it gets a network of its own."""
        return self.local_sockets and not self.network and namespaces.has_own_network()

    @property
    def has_unix_sockets(self) -> bool:
        return self.unix_sockets or self.local_sockets

    def can_read(self, path: Path) -> bool:
        """Return whether the process can read a path. Landlock has no exceptions below a path that it allows."""
        target = path.resolve()
        return any(target.is_relative_to(allowed.resolve()) for allowed in (*self.reads, *self.writes))

    def kernel_rules(self, *, is_enforced: bool) -> KernelRules:
        """Return the specification as JSON-able data for `apply_rules`.

        `folders` maps a place to the folder that only this process sees there, `rights` a path to Landlock's access
        bits, and `limits` the name of an rlimit, such as `FSIZE`, to its value.
        """
        has_namespaces = is_enforced and namespaces.is_possible()
        limits = {"CORE": 0, "NOFILE": OPEN_FILES, "CPU": self.cpu_seconds, "DATA": self.memory_bytes,
                  "FSIZE": self.file_bytes}  # fmt: skip
        return {
            "is_enforced": is_enforced,
            "namespaces": has_namespaces,
            "shared_memory": has_namespaces and self.shared_memory,
            "folders": {str(place): str(folder) for place, folder in self.folders if has_namespaces},
            "hidden": self._hidden() if has_namespaces else {},
            "rights": self._rights(),
            "network": self.network,
            "own_network": has_namespaces and self.has_own_network,
            "unix_sockets": self.has_unix_sockets,
            "limits": {name: value for name, value in limits.items() if value is not None},
            "processes": self.processes,
        }

    def _hidden(self) -> dict[str, list[str]]:
        """Return what stays visible below each hidden folder, without what lies below another visible path."""
        listed = {*self.reads, *self.writes, *(path for pair in self.folders for path in pair)}
        hidden = {}
        for folder in self.hides:
            inside = sorted(path for path in listed if path.is_relative_to(folder) and path != folder)
            if folder not in listed and folder.is_dir():
                hidden[str(folder)] = [str(path) for path in inside if not any(up in listed for up in path.parents)]
        return hidden

    def _rights(self) -> dict[str, int]:
        writes = [*self.writes, *(place for place, _ in self.folders)]
        if self.shared_memory and Path(namespaces.SHARED_MEMORY).is_dir():
            writes.append(Path(namespaces.SHARED_MEMORY))
        devices = [path for name in DEVICES for path in sorted(Path("/dev").glob(name))]
        rights: dict[str, int] = {}
        for paths, bits in (
            (self.reads, landlock.READ),
            (self.lists, landlock.READ_DIR),
            (devices, landlock.DEVICE),
            (writes, landlock.WRITE),
        ):
            for path in paths:
                rights[str(path)] = rights.get(str(path), 0) | bits
        return rights


@dataclass(frozen=True)
class Enforcement:
    """The promises that the kernel enforces for a process, and the gaps.

    `promises` are by code, in words. `denied` are the attempts of the self-test that failed as they should.
    """

    mechanism: str
    abi: int
    promises: Mapping[str, str]
    not_covered: tuple[str, ...]
    denied: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_enforced(self) -> bool:
        return self.mechanism != "none"

    @property
    def is_probed(self) -> bool:
        """Whether the self-test has tried it."""
        return bool(self.denied)

    @property
    def enforced(self) -> tuple[str, ...]:
        """Promises and denied attempts, in words."""
        return (*self.promises.values(), *(f"{attempt}: denied" for attempt in self.denied.values()))

    def document(self) -> dict[str, Any]:
        """Return it as JSON-able data."""
        return {
            "mechanism": self.mechanism,
            "abi": self.abi,
            "probed": self.is_probed,
            "enforced": list(self.enforced),
            "not_covered": list(self.not_covered),
        }


def require_enforcement(spec: SandboxSpec, *, may_go_unenforced: bool = False) -> Enforcement:
    """Return what the kernel would enforce for a process in this sandbox. Raises `Refused` if it enforces nothing."""
    version = landlock.abi()
    if version:
        return Enforcement("landlock", version, _promises(spec, version), not_covered(spec, version))
    if not may_go_unenforced:
        raise Refused(
            "this kernel has no Landlock, so nothing would keep a program in its sandbox",
            hint="use Linux ≥ 5.13 with Landlock (rlx doctor), or `automation.sandbox: if available`",
        )
    return Enforcement("none", 0, _limit_promises(spec), ("files", "network", "signals", "other processes' memory"))


def _promises(spec: SandboxSpec, version: int) -> dict[str, str]:
    has_filter = seccomp.is_possible()
    has_namespaces = namespaces.is_possible()
    refuses_sockets = has_filter and not spec.network and not spec.has_own_network
    promises = (  # code, words, whether it holds here
        ("reads", "reads only what is listed", True),
        ("writes", "writes only what is listed", True),
        ("tracing", "no tracing of processes outside", True),
        ("privileges", "no new privileges", True),
        ("attributes", "times, modes and attributes of other files stay", has_namespaces),
        ("own memory", "shared memory of its own", has_namespaces and spec.shared_memory),
        ("own folders", "folders of its own", has_namespaces and bool(spec.folders)),
        ("own view", "no folder of another seed, run or candidate exists", has_namespaces and bool(spec.hides)),
        ("own processes", "every process ends with it", namespaces.can_separate_children()),
        ("keyrings", "no keyrings", has_filter),
        ("set_id", "no set-user-id programs", has_filter),
        ("limits", "no limits for other processes", has_filter),
        ("signals", "no signals to processes outside", version >= landlock.SIGNALS_ABI),
        ("sockets", "no sockets", refuses_sockets and not spec.has_unix_sockets),
        ("other sockets", "no sockets except Unix sockets", refuses_sockets and spec.has_unix_sockets),
        ("own network", "a network of its own, with a loopback only", spec.has_own_network),
        ("tcp", "no TCP", not spec.network and not spec.has_own_network and version >= landlock.TCP_ABI),
    )
    return {code: words for code, words, holds in promises if holds} | _limit_promises(spec)


def _limit_promises(spec: SandboxSpec) -> dict[str, str]:
    limits = (
        ("core", "no core files", 0),
        ("cpu", f"{spec.cpu_seconds} s of CPU per process", spec.cpu_seconds),
        ("memory", f"{spec.memory_bytes} bytes of memory per process", spec.memory_bytes),
        ("file", f"{spec.file_bytes} bytes per file", spec.file_bytes),
        ("processes", f"{spec.processes} processes", spec.processes if os.getuid() else None),
    )
    return {code: words for code, words, value in limits if value is not None}


def not_covered(spec: SandboxSpec, version: int) -> tuple[str, ...]:
    """Return what a process in this sandbox can still do, on a kernel with this version of Landlock."""
    has_filter = seccomp.is_possible()
    has_namespaces = namespaces.is_possible()
    gaps = {
        "existence and size of hidden files (stat)": True,
        "names and command lines of other processes (/proc)": True,
        "the space that all files take together": bool(spec.writes),
        "processes that fork and end all the time (no PID namespace)": not namespaces.can_separate_children(),
        "shared memory (/dev/shm) of other sandboxes": spec.shared_memory and not has_namespaces,
        "files that others write in folders of the same run": bool(spec.folders) and not has_namespaces,
        "times, modes and attributes of the account's files": not has_namespaces,
        "names, sizes and link targets in folders of other seeds and runs": bool(spec.hides) and not has_namespaces,
        "System V shared memory, keyrings, limits of other processes": not has_filter,
        "cores and priority of processes of the same account": True,
        "memory and CPU of all processes together": True,
        "the number of processes (root)": os.getuid() == 0 or spec.processes is None,
        "the network": spec.network,
        "UDP and raw sockets": not spec.network and not has_filter,
        "TCP": not spec.network and version < landlock.TCP_ABI and not has_filter,
        "Unix sockets reached by their path": spec.network or spec.has_unix_sockets or not has_filter,
        "signals to processes of the same account": version < landlock.SIGNALS_ABI,
        "processes outside the sandbox under the same account": True,
    }
    return tuple(words for words, is_open in gaps.items() if is_open)


def enter(spec: SandboxSpec, *, may_go_unenforced: bool = False, shows_own_processes: bool = False) -> Enforcement:
    """Put this process into a sandbox for good. Files that are already open stay open.

    The kernel restricts only the calling thread and its children, so the process must have a single thread.
    `shows_own_processes` is for a process in a PID namespace of its own: /proc shows only that.
    """
    from rlx.sandbox.apply import apply_rules

    enforcement = require_enforcement(spec, may_go_unenforced=may_go_unenforced)
    if enforcement.is_enforced and (threads := len(os.listdir("/proc/self/task"))) > 1:  # noqa: PTH208
        raise Refused(
            f"this process has {threads} threads, and only one of them would be sandboxed",
            hint="enter the sandbox before any thread starts",
        )
    try:
        rules = spec.kernel_rules(is_enforced=enforcement.is_enforced)
        apply_rules({**rules, "shows_own_processes": shows_own_processes})
    except OSError as error:
        raise Refused(f"cannot enter the sandbox: {error}", hint=DOCTOR_HINT) from error
    return enforcement


def system_reads() -> tuple[Path, ...]:
    """Return what every program needs to read: the system, this interpreter with its packages, and rlx itself."""
    import rlx

    packages = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    prefixes = (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)
    source = Path(rlx.__file__).parents[1]  # an import also lists the folder that rlx is in
    paths: Iterable[Path] = (*map(Path, (*SYSTEM, *prefixes, *site.getsitepackages(), *packages)), source)
    return tuple(dict.fromkeys(path for path in paths if path.is_absolute() and path.exists()))


def make_private_home(folder: Path) -> dict[str, str]:
    """Make a home and a temporary folder in `folder`, which the sandbox may write. Return their variables."""
    home = folder / "home"
    temporary = folder / "tmp"
    for path in (home, temporary):
        path.mkdir(parents=True, exist_ok=True)
    return {
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "MPLCONFIGDIR": str(home),
    }
