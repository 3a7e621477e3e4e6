"""The process that trains a seed, or several together; it starts only under the supervisor that holds the run."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from rlx.errors import Refused, RlxError
from rlx.runs.run import Run

if TYPE_CHECKING:
    from rlx.runs.checkpoint import Checkpoint
    from rlx.runs.live import LiveSeed
    from rlx.train.session import Session

PARENT_CHECK_SECONDS = 1.0
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1


class _Early:
    """Signals that arrive before the seed can take them."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        self.reason = signal.Signals(number).name


def main(argv: list[str]) -> int:
    """Train the seeds `argv[1:]` of the run at `argv[0]` and record how each ended."""
    early = _Early()
    _on_stop_signals(early)
    run, numbers = Run(Path(argv[0])), [int(number) for number in argv[1:]]
    try:
        _die_with_supervisor(run)
        origin = _enter_study(run, numbers)
    except RlxError as error:
        print(f"error: {error.message}\n\nhint: {error.hint}", file=sys.stderr)
        return error.exit_code
    sys.path.insert(0, str(Path.cwd()))  # the project's own modules, from here on
    return _train(run, numbers, early, origin)


def _enter_study(run: Run, numbers: Sequence[int]) -> dict[str, Any]:
    """Enter the sandbox of a run that a study launched, before any of its code is imported; return what was enforced.

    Refused without an intent in the study's ledger.
    """
    if "job" not in (run.metadata.get("lineage") or {}):
        return {}
    from rlx.launch.governed import Governed

    governed = Governed.of(run)
    assert governed is not None
    governed.refuse_without_intent(run, numbers)
    return {"git": dict(governed.origin), "enforced": governed.enter(numbers).document()}


def _on_stop_signals(handler: _Early) -> None:
    for caught in STOP_SIGNALS:
        if signal.getsignal(caught) is not signal.SIG_IGN:
            signal.signal(caught, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)  # a forked worker is born with them held back


def _die_with_supervisor(run: Run) -> None:
    """Refuse to run outside the run's supervisor, and end when it does."""
    supervisor = run.supervisor
    if supervisor is None or supervisor.pid != os.getppid():
        raise Refused(f"no launch of {run.name} asked for this worker", hint=f"rlx resume {run.name}")
    if sys.platform == "linux":  # SIGKILL: a worker that holds the interpreter lock could not act on less
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    else:
        threading.Thread(target=_watch_parent, args=(supervisor.pid,), daemon=True, name="orphan watch").start()
    if os.getppid() != supervisor.pid:
        raise Refused(f"the supervisor of {run.name} is gone", hint=f"rlx resume {run.name}")


def _watch_parent(supervisor: int) -> None:
    while os.getppid() == supervisor:
        time.sleep(PARENT_CHECK_SECONDS)
    os.killpg(os.getpid(), signal.SIGKILL)


def _train(run: Run, numbers: Sequence[int], early: _Early, governed: Mapping[str, Any]) -> int:
    from rlx.runs import loaded
    from rlx.runs.live import LiveSeed
    from rlx.runs.provenance import provenance

    root = Path(os.environ["RLX_ROOT"])
    origin = {**provenance(root), **governed}
    lives = [LiveSeed(run.seed(number).folder, root=root, origin=origin) for number in numbers]

    def stop(number: int, _frame: FrameType | None) -> None:
        for live in lives:
            live.request_stop(signal.Signals(number).name)

    for caught in STOP_SIGNALS:
        if signal.getsignal(caught) is early:
            signal.signal(caught, stop)
    if early.reason:
        for live in lives:
            live.request_stop(early.reason)
            live.interrupted(run.seed(live.number).step)
        return 0
    code = max(_attempt(run, together) for together in _at_one_step(lives))
    if governed and not run.is_opaque:  # a command's own processes tell what they loaded
        for live in lives:
            loaded.write(live.folder)
    return code


def _at_one_step(lives: Sequence[LiveSeed]) -> list[list[tuple[LiveSeed, Checkpoint | None]]]:
    """Group seeds by the step they continue from: only those that start level are trained together."""
    from rlx.runs import checkpoint

    found: dict[int, list[tuple[LiveSeed, Checkpoint | None]]] = {}
    for live in lives:
        newest = checkpoint.newest(live.folder / "checkpoints")
        found.setdefault(newest.step if newest else 0, []).append((live, newest))
    return list(found.values())


def _attempt(run: Run, seeds: Sequence[tuple[LiveSeed, Checkpoint | None]]) -> int:
    """Train seeds that start level, and record each one's outcome; return the worst exit code."""
    sessions: list[Session] = []
    errors: Mapping[int, Exception]
    try:
        from rlx.config.load import parse
        from rlx.launch.judge import judge_for
        from rlx.train.session import Session
        from rlx.train.trainer import train

        experiment = parse(run.config, source=run.name)
        judges = [judge_for(experiment, run, live.number) for live, _ in seeds]
        sessions += [
            Session(experiment, live, checkpoint=checkpoint, judge=judge)
            for (live, checkpoint), judge in zip(seeds, judges, strict=True)
        ]
        errors = train(experiment, sessions)
        for session in sessions:
            session.close()
    except Exception as error:  # noqa: BLE001  job supervision: whatever the user's code raises is the seed's outcome
        errors = {live.number: error for live, _ in seeds}
    by_number = {session.seed: session for session in sessions}
    return max(_conclude(live, by_number.get(live.number), errors.get(live.number)) for live, _ in seeds)


def _conclude(live: LiveSeed, session: Session | None, error: Exception | None) -> int:
    if error is not None or session is None:
        found = error or RuntimeError("the seed was never begun")
        live.failed(found, step=session.step if session else None)
        _tell(found)
        return RlxError.exit_code
    if session.is_complete:
        live.completed(session.step)
    else:
        live.interrupted(session.step)
    return 0


def _tell(error: Exception) -> None:
    """Write why a seed failed into its log, below what it printed itself; a log that is full stays as it is."""
    with contextlib.suppress(OSError):
        if isinstance(error, RlxError):
            print(f"error: {error.message}", file=sys.stderr)
        else:
            traceback.print_exception(error)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
