"""The process that trains one seed; it only starts under the supervisor that holds the run's lease."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from rlx.errors import Refused, RlxError
from rlx.runs.run import Run

PARENT_CHECK_SECONDS = 1.0
_PR_SET_PDEATHSIG = 1


class _Early:
    """Signals that arrive before the seed can take them."""

    def __init__(self) -> None:
        self.reason: str | None = None

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        self.reason = signal.Signals(number).name


def main(argv: list[str]) -> int:
    """Train the seed `argv[1]` of the run at `argv[0]` and record how it ended."""
    early = _Early()
    _on_stop_signals(early)
    run, number = Run(Path(argv[0])), int(argv[1])
    try:
        _die_with_supervisor(run)
    except RlxError as error:
        print(f"error: {error.message}\n\nhint: {error.hint}", file=sys.stderr)
        return error.exit_code
    return _train(run, number, early)


def _on_stop_signals(handler: _Early) -> None:
    for caught in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(caught) is not signal.SIG_IGN:
            signal.signal(caught, handler)


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


def _train(run: Run, number: int, early: _Early) -> int:
    from rlx.runs.live import LiveSeed

    live = LiveSeed(run.seed(number).folder, root=Path(os.environ["RLX_ROOT"]))
    session = None

    def stop(number: int, _frame: FrameType | None) -> None:
        live.request_stop(signal.Signals(number).name)

    for caught in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(caught) is early:
            signal.signal(caught, stop)
    if early.reason:
        live.request_stop(early.reason)
        live.interrupted(run.seed(number).step)
        return 0
    try:
        from rlx.config.load import parse
        from rlx.runs import checkpoint
        from rlx.train.session import Session
        from rlx.train.trainer import trainer_for

        experiment = parse(run.config, source=run.name)
        session = Session(experiment, live, checkpoint=checkpoint.newest(live.folder / "checkpoints"))
        trainer_for(experiment).train(session)
        session.close()
    except Exception as error:  # noqa: BLE001  job supervision: whatever the user's code raises is the seed's outcome
        live.failed(error, step=session.step if session else None)
        return RlxError.exit_code
    if session.is_complete:
        live.completed(session.step)
    else:
        live.interrupted(session.step)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
