"""The small parent of a program in a box: it starts it, passes signals on, and kills what the program leaves behind.

It stays outside the box, so the program cannot signal it; it dies with whoever started it, and takes the program along.
It runs as `python -I -S -c …` with two descriptors: of its order (JSON), and of its answer (`ready`, or what is wrong).
"""

from __future__ import annotations

import ctypes
import json
import os
import signal

from rlx.sandbox import family
from rlx.sandbox.order import give_up

TYPE_CHECKING = False  # as in the package
if TYPE_CHECKING:
    from rlx.sandbox.order import Order

    class Program(Order):
        """What to start, where and with which environment; `parent` is who starts it."""

        argv: list[str]
        env: dict[str, str]
        cwd: str
        parent: int


FAILED_EXIT = 125
READY = b"ready "
_SET_PARENT_DEATH_SIGNAL = 1
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def main(argv: list[str]) -> None:
    """Keep the program that the order on descriptor `argv[0]` describes; say on `argv[1]` why it cannot start."""
    with os.fdopen(int(argv[0]), "rb") as stream:
        order: Program = json.load(stream)
    answer = int(argv[1])
    os.set_inheritable(answer, False)
    _die_with(order["parent"])
    family.adopt()
    os.write(answer, READY)
    keeper = os.getpid()
    program = os.fork()
    if program == 0:
        _become(order, answer, keeper)
    os.close(answer)
    _let_go_of_streams()
    for number in _FORWARDED:
        signal.signal(number, lambda caught, _frame: family.send(program, caught))
    code = _waited_for(program)
    family.reap(keeper)
    _end_alike(code)


def _become(order: Program, answer: int, keeper: int) -> None:
    """Turn into the program, in its folder, its environment and its box."""
    try:
        _die_with(keeper)
        os.chdir(order["cwd"])
        give_up(order)
        os.execvpe(order["argv"][0], order["argv"], order["env"])  # noqa: S606
    except BaseException as error:  # noqa: BLE001  job supervision: the starter is told, and nothing runs outside the box
        os.write(answer, str(error).encode("utf-8", "replace")[:4000] or b"?")
    finally:
        os._exit(FAILED_EXIT)


def _die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(FAILED_EXIT)


def _let_go_of_streams() -> None:
    """Hold none of the program's streams open: their readers wait for its end, not for ours."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


def _waited_for(program: int) -> int:
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == program:
            return os.waitstatus_to_exitcode(status)


def _end_alike(code: int) -> None:
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)
