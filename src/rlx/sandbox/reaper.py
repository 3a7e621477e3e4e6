"""The small parent process of a sandboxed program: starts it, forwards signals, and kills everything that it leaves.

The reaper stays outside the sandbox, so the program cannot signal it. If the process that started the reaper dies,
the kernel kills the reaper and the program. It runs as `python -I -S -c …` with two descriptors. It reads its order
(JSON, see `SandboxedCommand.order`) from the first. To the second it writes `READY`, followed by the error if the
program cannot start.
"""

from __future__ import annotations

import json
import os
import signal

from rlx.sandbox import libc, namespaces, process_tree
from rlx.sandbox.apply import apply_rules

TYPE_CHECKING = False  # the reaper starts faster without `typing`
if TYPE_CHECKING:
    from typing import Any

FAILED_EXIT = 125
READY = b"ready "
_SET_PARENT_DEATH_SIGNAL = 1
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def main(argv: list[str]) -> None:
    """Start the program that the order on descriptor `argv[0]` describes, and wait for its end.

    Descriptor `argv[1]` closes when the program has started: exec closes the program's copy.
    """
    with os.fdopen(int(argv[0]), "rb") as stream:
        order: dict[str, Any] = json.load(stream)
    answer = int(argv[1])
    os.set_inheritable(answer, False)
    _die_with_parent(order["parent"])
    process_tree.adopt_orphans()
    os.write(answer, READY)
    reaper = os.getpid()
    if order["own_pids"] and namespaces.separate_children():
        code = _run_below_init(order, answer)
    else:
        program = os.fork()
        if program == 0:
            _become_program(order, answer, reaper)
        os.close(answer)
        code = _wait_for(program)
    process_tree.kill_descendants(reaper)
    _exit_like(code)


def _run_below_init(order: dict[str, Any], answer: int) -> int:
    """Run the program below an init of its own PID namespace; return its exit code when all its processes are gone.

    A program that is itself an init would ignore SIGTERM, and would have to collect orphans.
    """
    result_in, result_out = os.pipe()
    alive_in, alive_out = os.pipe()  # ends when this process ends: an init cannot see its parent's number
    init = os.fork()
    if init == 0:
        os.close(alive_out)
        os.close(result_in)
        libc.call("prctl", _SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        os.set_blocking(alive_in, False)
        try:
            os.read(alive_in, 1)
            os._exit(FAILED_EXIT)  # the parent died before the call
        except BlockingIOError:
            os.close(alive_in)
        program = os.fork()
        if program == 0:
            _become_program({**order, "shows_own_processes": True}, answer, 1)
        os.close(answer)
        os.write(result_out, str(_wait_for(program)).encode())
        os._exit(0)
    os.close(answer)
    os.close(result_out)
    os.close(alive_in)
    _wait_for(init)
    os.close(alive_out)
    text = os.read(result_in, 100)
    return int(text) if text else -signal.SIGKILL


def _become_program(order: dict[str, Any], answer: int, reaper: int) -> None:
    """Turn into the program. If anything fails, this process ends here: nothing may run outside the sandbox."""
    message = "internal error"
    try:
        _die_with_parent(reaper)
        os.chdir(order["cwd"])
        if order["rules"]:
            apply_rules({**order["rules"], "shows_own_processes": order.get("shows_own_processes", False)})
        os.execvpe(order["argv"][0], order["argv"], order["env"])  # noqa: S606
    except (OSError, ValueError) as error:  # ValueError: a NUL in a word or a variable
        message = str(error) or message
    finally:  # only a failure gets here: exec does not return
        os.write(answer, message.encode("utf-8", "replace")[:4000])
        os._exit(FAILED_EXIT)


def _die_with_parent(parent: int) -> None:
    libc.call("prctl", _SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the call
        os._exit(FAILED_EXIT)


def _release_streams() -> None:
    """Close the reaper's copies of the program's streams, so that readers see their end when the program ends."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)


def _wait_for(program: int) -> int:
    """Forward signals to a child and return its exit code when it has ended; also collect adopted orphans."""
    _release_streams()
    for number in _FORWARDED:
        signal.signal(number, lambda caught, _frame: process_tree.send_signal(program, caught))
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == program:
            return os.waitstatus_to_exitcode(status)


def _exit_like(code: int) -> None:
    """End with the program's exit code, or by the signal that killed it."""
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)
