"""The time an inspection may take: a deadline that also ends a call which does not return."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

AGAIN_SECONDS = 0.25
"""How often a call is interrupted again: people's code may catch everything once."""
PATIENCE = 3.0


class OutOfTime(Exception):
    """The deadline is past; `seconds` is how long the call that was interrupted had taken."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__("out of time")
        self.seconds = seconds


class _Interrupt(BaseException):
    """Ends somebody else's code, whatever exceptions it catches."""


class Deadline:
    """Calls other people's code until its time is spent; in a program's main thread it is interrupted then.

    Counted is the time this thread computes, so that what is found does not depend on what else the machine does;
    waiting (for a simulator elsewhere, for ever) ends after `PATIENCE` times as long on the clock.
    """

    def __init__(self, seconds: float) -> None:
        self._computed = time.thread_time() + seconds
        self._clock = time.monotonic() + PATIENCE * seconds
        self._is_inside = False

    @property
    def left(self) -> float:
        return min(self._computed - time.thread_time(), self._clock - time.monotonic())

    def call(self, action: Callable[[], Any]) -> Any:
        """Return what `action` returns; `OutOfTime` where the time is spent, before or meanwhile."""
        if self.left <= 0:
            raise OutOfTime
        began = time.monotonic()
        try:
            self._is_inside = True
            try:
                return action()
            finally:
                self._is_inside = False
        except _Interrupt:
            raise OutOfTime(time.monotonic() - began) from None

    @contextlib.contextmanager
    def armed(self) -> Iterator[None]:
        """Interrupt calls once the time is spent while the block runs, where signals can be had."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        spans = {signal.ITIMER_REAL: self._clock - time.monotonic(), signal.ITIMER_VIRTUAL: self.left}
        handlers = {number: signal.signal(number, self._ring) for number in (signal.SIGALRM, signal.SIGVTALRM)}
        timers = {which: signal.setitimer(which, max(span, 0.01), AGAIN_SECONDS) for which, span in spans.items()}
        try:
            yield
        finally:
            for which, (span, again) in timers.items():
                signal.setitimer(which, span, again)
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _ring(self, *_: object) -> None:
        if self._is_inside and self.left <= 0:
            raise _Interrupt
