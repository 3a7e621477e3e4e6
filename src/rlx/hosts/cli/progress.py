"""The live display of a run: every seed's step, rate, ETA and return; plain lines off a TTY."""

from __future__ import annotations

import sys
import time
from collections import deque
from pathlib import Path
from typing import Protocol

from rlx.hosts.cli.output import harmless, has_colour
from rlx.hosts.cli.words import figure
from rlx.launch import launch
from rlx.runs.run import SUPERVISOR, Run, Seed
from rlx.runs.status import COMPLETED, PREPARED, RUNNING
from rlx.runs.summary import position

REFRESH_SECONDS, GLANCE_SECONDS = 0.5, 0.02
FIRST_SECONDS = 0.05  # until the first step is seen: a start is looked at closely
LINE_SECONDS, SLOWEST_LINE_SECONDS = 10.0, 60.0
RATE_SECONDS = 30.0
STALL_SECONDS = 30.0


class Progress:
    """Reads a run's folder again and again and spells what it sees."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: dict[int, deque[tuple[float, int]]] = {}
        self.has_begun = False
        self.run = Run(path)
        self._planned = self.run.planned_steps

    @property
    def is_over(self) -> bool:
        return self.run.status != RUNNING

    def read(self) -> list[str]:
        """Look at the run anew and return a line a seed."""
        self.run = Run(self._path)
        return [self._line(seed) for seed in self.run.seeds]

    def rest(self, seconds: float) -> None:
        """Sleep for so long, or until the supervisor is gone: nobody waits for the end of what has ended."""
        supervisor, until = self._path / SUPERVISOR, time.monotonic() + seconds
        was_there = supervisor.exists()
        while time.monotonic() < until and (supervisor.exists() or not was_there):
            time.sleep(GLANCE_SECONDS)

    def _line(self, seed: Seed) -> str:
        step, episode_return = position(seed)
        self.has_begun = self.has_begun or step > 0
        state = seed.status.state
        parts = [f"seed {seed.number}", f"{state:11s}", *self._reached(step)]
        rate = self._rate(seed.number, step) if state == RUNNING else 0.0
        still = self._still(seed.number) if state == RUNNING else 0.0
        if still > STALL_SECONDS:
            parts.append(f"no step for {_duration(still)}")
        elif rate > 0:
            parts.append(f"{rate:,.0f} steps/s")
            parts += [f"ETA {_duration(max(0, self._planned - step) / rate)}"] if self._planned else []
        if episode_return is not None:
            parts.append(f"return {figure(episode_return)}")
        if state not in (RUNNING, COMPLETED) and seed.status.reason:
            parts.append(seed.status.reason)
        return "  ".join(parts)

    def _reached(self, step: int) -> list[str]:
        """Spell how far a seed is, of what is planned where somebody said that."""
        if not self._planned:
            return [f"{step:,} step{'' if step == 1 else 's'}"]
        return [f"{step:,}/{self._planned:,}", f"{min(1.0, step / self._planned):4.0%}"]

    def _rate(self, number: int, step: int) -> float:
        """Return steps a second over the last half minute of training; 0 until there are two looks to compare."""
        seen = self._seen.setdefault(number, deque())
        now = time.monotonic()
        if step and (not seen or seen[-1][1] != step):
            seen.append((now, step))
        if not seen:
            return 0.0
        while len(seen) > 2 and now - seen[0][0] > RATE_SECONDS:
            seen.popleft()
        (then, first) = seen[0]
        return (step - first) / (now - then) if now > then else 0.0

    def _still(self, number: int) -> float:
        """Return for how many seconds a seed has been seen at the same step."""
        seen = self._seen.get(number)
        return time.monotonic() - seen[-1][0] if seen else 0.0


def _duration(seconds: float) -> str:
    whole = int(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


class Display(Protocol):
    """What is shown again and again."""

    @property
    def has_begun(self) -> bool:
        """Whether anything moves yet; until then it is looked at closely."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether there is nothing more to come."""
        ...

    def read(self) -> list[str]:
        """Look anew and return the lines to show."""
        ...

    def rest(self, seconds: float) -> None:
        """Sleep for so long, or until there is news."""
        ...


def follow(run: Run, *, timeout_seconds: float | None = None) -> Run:
    """Show a run's progress on stderr until it ends or the time is up, and return it as it is then."""
    began = time.monotonic()
    progress = Progress(launch.until_begun(run, timeout_seconds=timeout_seconds).path)
    left = None if timeout_seconds is None else max(0.0, timeout_seconds - (time.monotonic() - began))
    show(progress, timeout_seconds=left)
    return progress.run


def show(display: Display, *, timeout_seconds: float | None = None) -> None:
    """Show something on stderr until it is over or the time is up."""
    deadline = time.monotonic() + timeout_seconds if timeout_seconds is not None else float("inf")
    screen = _Screen() if has_colour(sys.stderr) else _Lines()
    is_last = False
    while not is_last:
        lines = [harmless(line).replace("\n", " ") for line in display.read()]
        is_last = display.is_over or time.monotonic() >= deadline
        screen.draw(lines, is_last=is_last)
        if not is_last:
            display.rest(REFRESH_SECONDS if display.has_begun else FIRST_SECONDS)


class _Screen:
    """Redraws the same lines in place."""

    def __init__(self) -> None:
        self._drawn = 0

    def draw(self, lines: list[str], *, is_last: bool) -> None:
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        sys.stderr.write(up + "".join(f"\x1b[2K{line}\n" for line in lines) + "\x1b[J")
        sys.stderr.flush()
        self._drawn = len(lines)


class _Lines:
    """Prints a seed's line at its first step, when it ends and now and then between; one that waits says nothing.

    Now and then is every ten seconds, and once a minute where it goes on for long. No line is printed twice.
    """

    def __init__(self) -> None:
        self._printed: dict[str, str] = {}
        self._began = time.monotonic()
        self._next = self._began + LINE_SECONDS

    def draw(self, lines: list[str], *, is_last: bool) -> None:
        now = time.monotonic()
        is_due = is_last or now >= self._next
        for line in lines:
            seed, state = line.split("  ")[:2]
            before = self._printed.get(seed, "")
            is_news = f"  {state.strip()}" not in before and not _is_waiting(line, state.strip())
            is_shown = is_news or (is_due and state.strip() != PREPARED)
            if line != before and is_shown:
                print(line, file=sys.stderr, flush=True)
                self._printed[seed] = line
        if is_due:
            self._next = now + min(SLOWEST_LINE_SECONDS, max(LINE_SECONDS, (now - self._began) / 10))


def _is_waiting(line: str, state: str) -> bool:
    """Say whether a seed has not made a step yet."""
    return state == PREPARED or (state == RUNNING and ("  0/" in line or "  0 steps" in line))
