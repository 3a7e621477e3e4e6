"""One line that counts what a long thing has done, with the time left: in place on a terminal, else now and then."""

from __future__ import annotations

import sys
import time

from rlx.hosts.cli.output import has_colour, say
from rlx.hosts.cli.words import duration

QUIET_SECONDS, LINE_SECONDS, REDRAW_SECONDS = 2.0, 10.0, 0.2


class Count:
    """Says how far it is once it takes longer than a moment; `things` are what is counted."""

    def __init__(self, things: str) -> None:
        self._things = things
        self._is_screen = has_colour(sys.stderr)
        self._started = time.monotonic()
        self._next = self._started + QUIET_SECONDS

    def __call__(self, done: int, total: int | None = None) -> None:
        now = time.monotonic()
        if now < self._next or done == total:
            return
        line = f"{done:,} {self._things}"
        if total is not None:
            left = (now - self._started) * (total - done) / done
            line = f"{done:,} of {total:,} {self._things}, {duration(left)} left"
        if self._is_screen:
            sys.stderr.write(f"\x1b[2K{line}\r")
            sys.stderr.flush()
        else:
            say(line)
        self._next = now + (REDRAW_SECONDS if self._is_screen else LINE_SECONDS)
