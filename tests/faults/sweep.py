"""The N-th call fails, for the Ns that an undisturbed process makes (SQLite's I/O error tests).

By default, up to three calls of each kind fail: the first, the middle and the last. At each of them the process is
killed once, and one of the two errors is injected in turn. RLX_SWEEP=full strikes every call with every fault.
Faults are injected by strace into the kernel's calls, or, on a machine that forbids tracing, from inside the process
into Python's. What is not covered: power loss (the page cache survives a kill).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults import operations

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
    if tracer == "inside":
        return run_inside(operation, root, *inject, trace=trace)
    options = [f"--inject={fault}" for fault in inject]
    argv = ["strace", "-f", "-qq", "-o", trace, f"--trace={','.join(CALLS)}", *options]
    program = [os.path.realpath(sys.executable), "-S", "-B", OPERATIONS, operation, root]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([*argv, *program], env=environment, capture_output=True, text=True)
    seen = trace.read_text()
    return Outcome(done.stdout.split(), KILLED in seen, seen, done.stderr)


def run_inside(operation: str, root: Path, *inject: str, trace: Path) -> Outcome:
    """Do an operation in a fork of this process, which needs no imports, under faults in Python's own calls."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # a fork beside threads
            child = os.fork()
        if not child:
            os.dup2(output.fileno(), 1)
            os.dup2(errors.fileno(), 2)
            code = 0
            try:
                operations.disturb_from_inside(trace, list(inject))
                getattr(operations, operation)(root)
            except BaseException:
                code = 1
                with open(2, "w", closefd=False) as stream:
                    stream.write(traceback.format_exc())
            finally:
                os._exit(code)  # a fork must not go on as a second pytest
        os.waitpid(child, 0)
        output.seek(0)
        errors.seek(0)
        seen = trace.read_text()
        return Outcome(output.read().decode().split(), KILLED in seen, seen, errors.read().decode())


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
    """Yield the state after each fault at each chosen call; each fault must really have struck."""

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
        for number, fault in chosen(count):
            root = fresh()
            outcome = run(operation, root, f"{call}:{fault}:when={number}", *always, tracer=tracer)
            has_struck = outcome.was_killed if fault == KILL else f"{call}(" in injected(outcome.trace)
            assert has_struck, f"{call} {fault} {number} never happened\n{outcome.trace}"
            yield root, outcome


def chosen(count: int) -> list[tuple[int, str]]:
    """Return which of so many calls of a kind are struck, and by what."""
    if os.environ.get("RLX_SWEEP") == "full":
        return [(number, fault) for fault in (KILL, FULL, BROKEN) for number in range(1, count + 1)]
    numbers = sorted({1, (count + 1) // 2, count})
    strikes = [(number, KILL) for number in numbers]
    strikes += [(number, FULL) for number in numbers[::2]]
    return strikes + [(number, BROKEN) for number in numbers[1::2] or numbers]


def injected(trace: str) -> str:
    return "\n".join(line for line in trace.splitlines() if "(INJECTED)" in line and "ENOSYS" not in line)
