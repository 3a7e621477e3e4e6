"""Start a program in a sandbox. Every sandboxed child of rlx starts here.

`start` returns a process that works like `subprocess.Popen`. `run` starts it for the length of a `with` block and then
kills it with all its descendants; evaluations and checks of candidates use it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import rlx
from rlx.errors import Refused
from rlx.sandbox import process_tree
from rlx.sandbox.reaper import READY
from rlx.sandbox.spec import SandboxSpec, require_enforcement

PIPE = subprocess.PIPE
END_SECONDS = 5  # how long a program that has closed its connection may take to end
DEVNULL = subprocess.DEVNULL
SandboxedProcess = subprocess.Popen[bytes]
Stream = int | IO[bytes]
_REAPER = "import sys; sys.path.insert(0, sys.argv[1]); from rlx.sandbox.reaper import main; main(sys.argv[2:])"


@dataclass(frozen=True)
class SandboxedCommand:
    """A program to start: words, sandbox, environment variables and working folder.

    Without a `spec` it may do everything that rlx may do. It inherits none of rlx's own variables.
    With `may_go_unenforced` it also starts on a kernel that cannot enforce a sandbox.
    """

    argv: Sequence[str]
    spec: SandboxSpec | None
    env: Mapping[str, str]
    cwd: Path
    may_go_unenforced: bool = False

    def order(self) -> dict[str, Any]:
        """Return what the reaper needs to know. Raises `Refused` if the kernel cannot enforce the sandbox."""
        rules: dict[str, Any] = {}
        if self.spec is not None:
            enforcement = require_enforcement(self.spec, may_go_unenforced=self.may_go_unenforced)
            rules = self.spec.kernel_rules(is_enforced=enforcement.is_enforced)
        program = {"argv": list(self.argv), "env": dict(self.env), "cwd": str(self.cwd)}
        return {**program, "rules": rules, "parent": os.getpid(), "own_pids": self.spec is not None}


def start(
    command: SandboxedCommand, *, stdin: Stream = DEVNULL, stdout: Stream = DEVNULL, stderr: Stream = DEVNULL
) -> SandboxedProcess:
    """Start a program in its sandbox and a new session, and return its reaper: same signals, same exit code.

    Returns when the program has started. Raises `Refused` if it cannot be sandboxed or cannot start. The reaper kills
    everything that the program leaves behind. Program and reaper die with the calling thread.
    """
    order = json.dumps(command.order()).encode()
    source = str(Path(rlx.__file__).parent.parent)
    with contextlib.ExitStack() as pipes:
        order_in, order_out = _pipe(pipes)
        answer_in, answer_out = _pipe(pipes)
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _REAPER, source, str(order_in.fileno()), str(answer_out.fileno())],
            stdin=stdin, stdout=stdout, stderr=stderr, env={}, cwd="/",
            pass_fds=(order_in.fileno(), answer_out.fileno()), start_new_session=True,
        )  # fmt: skip
        # Close our copies: the answer ends when the program has started and nobody else can write to the pipe.
        order_in.close()
        answer_out.close()
        with contextlib.suppress(BrokenPipeError):
            order_out.write(order)
            order_out.close()
        answer = answer_in.read()
    if answer != READY:
        process.wait()
        error = answer.removeprefix(READY).decode("utf-8", "replace")
        error = error or f"its parent process ended with {process.returncode}"
        raise Refused(
            f"{command.argv[0]} cannot be started in its sandbox: {error}",
            hint="check that the program exists and that its sandbox can read it; see also rlx doctor",
        )
    return process


@contextlib.contextmanager
def run(
    command: SandboxedCommand, *, stdin: Stream = DEVNULL, stdout: Stream = DEVNULL, stderr: Stream = DEVNULL
) -> Iterator[SandboxedProcess]:
    """Start a program for the length of the block, then kill it with all its descendants and close its pipes."""
    process = start(command, stdin=stdin, stdout=stdout, stderr=stderr)
    try:
        yield process
    finally:
        kill(process)
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):  # what was not sent yet has no reader any more
                if stream is not None:
                    stream.close()


def kill(process: SandboxedProcess) -> None:
    """Kill a started program with all its descendants, and wait for its end."""
    process_tree.kill_descendants(process.pid)  # the reaper still lives, so no orphan escapes from below it
    try:
        process.wait(process_tree.PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def how_it_ended(process: SandboxedProcess) -> str:
    """Describe the end of a program that no longer answers."""
    try:
        code = process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        return "closed its connection"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"exited {code}"


def read_end(log: IO[bytes], size: int) -> bytes:
    """Return the last bytes of a log file."""
    log.seek(max(0, log.seek(0, os.SEEK_END) - size))
    return log.read()


def last_line(log: IO[bytes]) -> str:
    """Return the last line that a program wrote into its log, or an empty string."""
    lines = read_end(log, 4096).decode("utf-8", "replace").strip().splitlines()
    return "".join(lines[-1:])[:300]


def _pipe(pipes: contextlib.ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    read, write = os.pipe()
    return pipes.enter_context(os.fdopen(read, "rb")), pipes.enter_context(os.fdopen(write, "wb", buffering=0))
