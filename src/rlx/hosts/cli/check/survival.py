"""Run a check of foreign code in a child process, and explain how that process ended if the code killed it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlx import errors

MARK = "RLX_CHECK_END"
"""The variable that names a file. A child writes into it how far it came before it ended."""
ERROR = "error_of_rlx"
MARGIN_SECONDS = 120.0
SMALLEST_MEMORY = 4 * 2**30
MEMORY_SHARE = 0.8
LAST_LINES = 3


@dataclass(frozen=True)
class Death:
    """How a process ended that should not have ended."""

    code: int
    claim: str
    tries: tuple[str, ...]


def is_child() -> bool:
    """Say whether this process is the child of a check."""
    return MARK in os.environ


def run_in_child(words: Sequence[str], *, seconds: float) -> dict[str, Any] | Death:
    """Run an rlx command with `--json` in a child, and return its data, or how it died. Its errors are raised."""
    from rlx.external_programs import run_rlx_child

    with tempfile.TemporaryDirectory() as folder:
        mark = Path(folder) / "end.txt"
        done = run_rlx_child(words, environment={MARK: str(mark)}, timeout_seconds=10 * seconds + MARGIN_SECONDS)
        place = _last_place(mark)
    try:
        data = json.loads(done.stdout)
    except ValueError:
        return _death(done.returncode, place)
    data.pop("schema", None)
    if ERROR in data:
        _raise(data[ERROR])
    return {**data, "exit_code": done.returncode}


def with_errors(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """In the child: return an error of rlx as data, so that the parent raises it and prints it once."""
    try:
        return work()
    except errors.RlxError as error:
        return {ERROR: {"kind": type(error).__name__, "message": error.message, "hint": error.hint}}


def _raise(error: dict[str, Any]) -> None:
    kind = getattr(errors, str(error["kind"]), errors.RlxError)
    raised = errors.RlxError(str(error["message"]), hint=error["hint"])
    raised.exit_code = kind.exit_code
    raise raised


def _last_place(mark: Path) -> str:
    """Return the innermost line of Python that the process was in, if it could still say so."""
    if not mark.is_file():
        return ""
    lines = [line.strip() for line in mark.read_text(encoding="utf-8", errors="replace").splitlines()]
    places = [line for line in lines if line.startswith("File ") and "survival.py" not in line]
    return places[0] if places else ""


def _death(code: int, place: str) -> Death:
    where = f" in {place}" if place else ""
    if code == -signal.SIGKILL:
        claim = f"the process was killed{where}: it used too much memory, or hung where nothing could interrupt it"
        return Death(code, claim, ("bound what a step allocates", "watch its memory while it plays"))
    if code < 0:
        name = signal.Signals(-code).name
        claim = f"the process crashed with {name}{where}: compiled code that the environment uses is at fault"
        return Death(code, claim, ("update or rebuild that package", "call reset and step once in a plain script"))
    claim = f"the process ended with exit code {code}{where}: the environment calls os._exit"
    return Death(code, claim, ("raise an exception, or end the episode, instead of leaving Python",))


@contextlib.contextmanager
def recorded_end() -> Iterator[None]:
    """In the child: limit the memory, and write the place in the code when the process crashes or leaves."""
    import faulthandler

    leave = os._exit
    with open(os.environ[MARK], "w", encoding="utf-8") as stream:  # noqa: PTH123  faulthandler needs a file descriptor
        faulthandler.enable(stream, all_threads=False)

        def leave_with_place(code: int) -> None:
            faulthandler.dump_traceback(stream, all_threads=False)
            leave(code)

        os._exit = leave_with_place  # type: ignore[assignment]
        _limit_memory()
        try:
            yield
        finally:
            os._exit = leave
            faulthandler.disable()


def _limit_memory() -> None:
    """Let the process use most of the free memory: then Python raises an error before the machine stands still."""
    import resource

    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    most = max(SMALLEST_MEMORY, int(MEMORY_SHARE * free))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
