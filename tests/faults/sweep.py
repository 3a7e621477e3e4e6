"""The N-th call fails, for every N that an undisturbed process makes (SQLite's I/O error tests).

Faults are injected by strace into the kernel's calls, or, on a machine that forbids tracing, from inside the process
into Python's. What is not covered: power loss (the page cache survives a kill).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OPERATIONS = Path(__file__).with_name("operations.py")
KILL, FULL, BROKEN = "signal=KILL", "error=ENOSPC", "error=EIO"
WRITES = ("write", "pwrite64", "fsync", "fdatasync", "ftruncate")
CALLS = (*WRITES, "rename", "renameat2", "mkdir", "unlink", "unlinkat", "rmdir")
KILLED = "+++ killed by SIGKILL +++"
SPAWNS = ("clone", "clone3", "fork", "vfork")


@dataclass(frozen=True)
class Outcome:
    """What a disturbed process acknowledged, and what strace saw."""

    acknowledged: list[str]
    was_killed: bool
    trace: str
    talk: str


def can_trace() -> bool:
    program = shutil.which("strace")
    return program is not None and subprocess.run([program, "-o", "/dev/null", "true"], check=False).returncode == 0


TRACER = "strace" if can_trace() else "inside"


def run(operation: str, root: Path, *inject: str, tracer: str) -> Outcome:
    """Do an operation in a process of its own, under faults."""
    trace = root.parent / "trace.txt"
    argv: list[str | Path] = [os.path.realpath(sys.executable), "-S", "-B", OPERATIONS, operation, root]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if tracer == "strace":
        options = [f"--inject={fault}" for fault in inject]
        argv = ["strace", "-f", "-qq", "-o", trace, f"--trace={','.join(CALLS)}", *options, *argv]
    else:
        environment |= {"FAULT_TRACE": str(trace), "FAULTS": " ".join(inject)}
    done = subprocess.run(argv, env=environment, capture_output=True, text=True)
    seen = trace.read_text()
    return Outcome(done.stdout.split(), KILLED in seen, seen, done.stderr)


def traced(argv: Sequence[str | Path], *inject: str, trace: Path, **options: Any) -> Outcome:
    """Run a program under faults that strike it alone, none of the processes it starts; `options` are Popen's."""
    tracer = ["strace", "-y", "-qq", "-o", trace, f"--trace={','.join((*CALLS, *SPAWNS))}"]
    faults = [f"--inject={fault}" for fault in inject]
    done = subprocess.run([*tracer, *faults, *argv], capture_output=True, text=True, **options)
    seen = trace.read_text()
    return Outcome([done.stdout] if done.returncode == 0 else [], KILLED in seen, seen, done.stderr)


def calls_of(trace: str) -> dict[str, int]:
    counts = dict.fromkeys(CALLS, 0)
    for line in trace.splitlines():
        name = line.split(maxsplit=1)[1].split("(", 1)[0]
        if name in counts:
            counts[name] += 1
    return {name: count for name, count in counts.items() if count}


def sweep(
    operation: str, tmp_path: Path, prepare: Callable[[Path], None], *, tracer: str, always: tuple[str, ...] = ()
) -> Iterator[tuple[Path, Outcome]]:
    """Yield the state after every fault at every call; each fault must really have struck."""

    template = tmp_path / "template"
    template.mkdir()
    prepare(template)

    def fresh() -> Path:
        root = tmp_path / "state"
        shutil.rmtree(root, ignore_errors=True)
        return Path(shutil.copytree(template, root))

    undisturbed = run(operation, fresh(), *always, tracer=tracer)
    assert undisturbed.acknowledged, undisturbed.talk
    counts = calls_of(undisturbed.trace)
    assert counts, "the operation makes no call that could fail"
    for call, count in counts.items():
        if any(fault.startswith(call) for fault in always):
            continue
        for fault in (KILL, FULL, BROKEN):
            for number in range(1, count + 1):
                root = fresh()
                outcome = run(operation, root, f"{call}:{fault}:when={number}", *always, tracer=tracer)
                has_struck = outcome.was_killed if fault == KILL else f"{call}(" in injected(outcome.trace)
                assert has_struck, f"{call} {fault} {number} never happened\n{outcome.trace}"
                yield root, outcome


def injected(trace: str) -> str:
    return "\n".join(line for line in trace.splitlines() if "(INJECTED)" in line and "ENOSYS" not in line)
