"""One line that says how a long thing goes: redrawn on a TTY, else printed when it changes and every ten seconds."""

from __future__ import annotations

import sys
import time

from rlx.hosts.cli.output import has_colour
from rlx.hosts.cli.words import duration
from rlx.loop.crew import Progress

LINE_SECONDS = 10.0


class Ticker:
    """Draws progress on stderr; `close` leaves the last line standing."""

    def __init__(self) -> None:
        self._is_live = has_colour(sys.stderr)
        self._doing = ""
        self._next = 0.0
        self._is_open = False

    def __call__(self, progress: Progress) -> None:
        is_due = time.monotonic() >= self._next or progress.doing != self._doing
        if self._is_live:
            sys.stderr.write(f"\r\x1b[2K{spell(progress)}")
            sys.stderr.flush()
            self._is_open = True
        elif is_due:
            print(spell(progress), file=sys.stderr, flush=True)
            self._doing, self._next = progress.doing, time.monotonic() + LINE_SECONDS

    def close(self) -> None:
        """End the line that was being redrawn."""
        if self._is_open:
            sys.stderr.write("\n")
            self._is_open = False


def spell(progress: Progress) -> str:
    """Return progress as one line: what, how far, the cost so far, the time left, the leaning."""
    parts = [progress.doing, f"{progress.share:.0%}"]
    parts.append(f"so far {duration(progress.cpu_seconds)} CPU, {duration(progress.wall_seconds)} wall")
    if progress.eta_seconds is not None:
        parts.append(f"ETA {duration(progress.eta_seconds)}")
    if progress.verdict and progress.verdict.leaning == progress.verdict.leaning:
        parts.append(f"leaning {progress.verdict.effect()} at {progress.verdict.n[0]} v {progress.verdict.n[1]}")
    return " · ".join(parts)
