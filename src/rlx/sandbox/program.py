"""Starting a program in a box."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import rlx
from rlx.errors import Refused
from rlx.sandbox import family
from rlx.sandbox.box import Box, in_force
from rlx.sandbox.keeper import READY

if TYPE_CHECKING:
    from rlx.sandbox.order import Order

HINT = "is the program there, and may the box read it? rlx doctor says what is enforced here"
PIPE = subprocess.PIPE
Program = subprocess.Popen[bytes]
Stream = int | IO[bytes] | None
FREE: Order = {
    "is_enforced": False, "namespaces": False, "shared_memory": False, "folders": {}, "rights": {}, "network": True,
    "unix_sockets": True, "limits": {}, "processes": None,
}  # fmt: skip
_KEEPER = "import sys; sys.path.insert(0, sys.argv[1]); from rlx.sandbox.keeper import main; main(sys.argv[2:])"


def start(
    argv: Sequence[str],
    box: Box | None,
    *,
    env: Mapping[str, str],
    cwd: Path,
    stdin: Stream = subprocess.DEVNULL,
    stdout: Stream = subprocess.DEVNULL,
    stderr: Stream = subprocess.DEVNULL,
    may_go_unenforced: bool = False,
) -> Program:
    """Start a program in a box, in a session of its own, and return its keeper: same signals, same exit code.

    Without a box it may do what we may. Returns when the program has begun; raises `Refused` where it cannot be held or
    cannot begin. Whatever it leaves behind is killed when it ends, or with it by `kill`. It dies with the calling
    thread. Nothing of this process's environment is passed on.
    """
    is_enforced = box is not None and in_force(box, may_go_unenforced=may_go_unenforced).is_enforced
    order = {
        **(box.order(is_enforced=is_enforced) if box else FREE),
        "argv": list(argv),
        "env": dict(env),
        "cwd": str(cwd),
        "parent": os.getpid(),
    }
    with contextlib.ExitStack() as ends:
        order_in, order_out = _pipe(ends)
        answer_in, answer_out = _pipe(ends)
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _KEEPER, _source(), str(order_in.fileno()), str(answer_out.fileno())],
            stdin=stdin, stdout=stdout, stderr=stderr, env={}, cwd="/",
            pass_fds=(order_in.fileno(), answer_out.fileno()), start_new_session=True,
        )  # fmt: skip
        order_in.close()
        answer_out.close()
        with contextlib.suppress(BrokenPipeError):
            order_out.write(json.dumps(order).encode())
            order_out.close()
        answer = answer_in.read()
    if answer != READY:
        process.wait()
        wrong = answer.removeprefix(READY).decode("utf-8", "replace") or f"its keeper ended with {process.returncode}"
        raise Refused(f"{argv[0]} cannot be started in its sandbox: {wrong}", hint=HINT)
    return process


def kill(process: Program) -> None:
    """Kill a started program with everything below it, and wait for its end."""
    family.reap(process.pid)  # its keeper lives on meanwhile, so nothing can get out from below it
    try:
        process.wait(family.PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _pipe(ends: contextlib.ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    read, write = os.pipe()
    return ends.enter_context(os.fdopen(read, "rb")), ends.enter_context(os.fdopen(write, "wb", buffering=0))


def _source() -> str:
    return str(Path(rlx.__file__).parent.parent)
