"""The time an inspection may take: a deadline that also ends a call which does not return."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HANGS_SECONDS = 1.0
"""A call that takes this long when time is up does not return; a shorter one is waited for, as code in C may not bear
to be interrupted."""
AGAIN_SECONDS = 0.25
"""How often a call is interrupted again: people's code may catch everything once."""
FRESH_SECONDS = 0.02


class OutOfTime(Exception):
    """Time is up; `seconds` is how long the call that was interrupted had taken."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__("out of time")
        self.seconds = seconds


class _Interrupt(BaseException):
    """Ends foreign code, whatever exceptions it catches."""


class Clock:
    """Seconds in which this thread ran or waited for something other than a free processor.

    The results of an inspection must not depend on other load on the machine. If Linux does not report how long a
    thread waited for a processor, the clock counts wall time.
    """

    def __init__(self) -> None:
        self._stats = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        self._in_line = 0.0
        self._read_at = float("-inf")

    def now(self) -> float:
        """Return the current time; the waiting time is updated every `FRESH_SECONDS`."""
        wall = time.monotonic()
        if wall - self._read_at > FRESH_SECONDS:
            self._in_line = self._read()
            self._read_at = wall
        return wall - self._in_line

    def _read(self) -> float:
        try:
            return int(self._stats.read_text().split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return 0.0


class Deadline:
    """Calls foreign code until time is up; in the main thread, it also ends a call that hangs."""

    def __init__(self, seconds: float) -> None:
        self._clock = Clock()
        self._end = self._clock.now() + seconds
        self._began: float | None = None

    @property
    def left(self) -> float:
        return self._end - self._clock.now()

    def call(self, action: Callable[[], Any]) -> Any:
        """Return the result of `action`; raise `OutOfTime` if time is up, or if the call hangs."""
        began = self._clock.now()
        if began >= self._end:
            raise OutOfTime
        try:
            self._began = began
            try:
                return action()
            finally:
                self._began = None
        except _Interrupt:
            raise OutOfTime(self._clock.now() - began) from None

    @contextlib.contextmanager
    def armed(self) -> Iterator[None]:
        """End calls that hang while the block runs; only the main thread can do that."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handler = signal.signal(signal.SIGALRM, self._ring)
        timer = signal.setitimer(signal.ITIMER_REAL, max(self.left, 0.01), AGAIN_SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, *timer)
            signal.signal(signal.SIGALRM, handler)

    def _ring(self, *_: object) -> None:
        if self._began is not None and self.left <= 0 and self._clock.now() - self._began > HANGS_SECONDS:
            raise _Interrupt
