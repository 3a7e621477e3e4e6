"""The progress display on stderr: redrawn in place on a terminal, otherwise printed on news and now and then."""

from __future__ import annotations

import sys
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlx.hosts.cli.format import counted, duration, figure
from rlx.hosts.cli.output import harmless, has_colour, say
from rlx.runs.run import JOBS, SUPERVISOR, Run, Seed
from rlx.runs.status import COMPLETED, PREPARED, RUNNING
from rlx.runs.summary import position

if TYPE_CHECKING:
    from rlx.hosts.cli.watch import Board
    from rlx.loop.settle import train_seeds

REDRAW_SECONDS = 0.2
LINE_SECONDS = 10.0
SLOWEST_LINE_SECONDS = 60.0
REFRESH_SECONDS = 0.5
FIRST_REFRESH_SECONDS = 0.05  # until the first step, so that a start is visible at once
SUPERVISOR_POLL_SECONDS = 0.02
COUNT_QUIET_SECONDS = 2.0
RATE_SECONDS = 30.0
STALL_SECONDS = 30.0


@dataclass(frozen=True)
class Line:
    """One line of the display. Off a terminal a change of `news` is printed at once, and a waiting line never."""

    key: str
    text: str
    news: str = ""
    is_waiting: bool = False


class Display:
    """Draw lines on stderr. Off a terminal a line is printed every ten seconds, later once per minute, never twice."""

    def __init__(self, *, quiet_seconds: float = 0.0) -> None:
        self._is_terminal = has_colour(sys.stderr)
        self._began = time.monotonic()
        self._next = self._began + quiet_seconds
        if not self._is_terminal and not quiet_seconds:
            self._next += LINE_SECONDS
        self._height = 0
        self._printed: dict[str, Line] = {}

    def draw(self, lines: list[Line], *, is_last: bool = False) -> None:
        """Show the current lines; the last call is always shown."""
        now = time.monotonic()
        is_due = is_last or now >= self._next
        if self._is_terminal:
            if is_due:
                self._redraw([_one_line(line.text) for line in lines])
                self._next = now + REDRAW_SECONDS
            return
        for line in lines:
            before = self._printed.get(line.key, Line(line.key, ""))
            is_news = bool(line.news) and line.news != before.news
            if line.text != before.text and (is_news or is_due) and not line.is_waiting:
                print(_one_line(line.text), file=sys.stderr, flush=True)
                self._printed[line.key] = line
        if is_due:
            self._next = now + min(SLOWEST_LINE_SECONDS, max(LINE_SECONDS, (now - self._began) / 10))

    def clear(self) -> None:
        """Remove the lines from a terminal."""
        if self._height:
            self._redraw([])

    def _redraw(self, lines: list[str]) -> None:
        if self._height:
            sys.stderr.write(f"\x1b[{self._height}A")
        sys.stderr.write("".join(f"\x1b[2K{line}\n" for line in lines) + "\x1b[J")
        sys.stderr.flush()
        self._height = len(lines)


def _one_line(text: str) -> str:
    return harmless(text).replace("\n", " ")


class Count:
    """Show how many of `things` are done and how long the rest takes, if it takes more than two seconds."""

    def __init__(self, things: str) -> None:
        self._things = things
        self._began = time.monotonic()
        self._display = Display(quiet_seconds=COUNT_QUIET_SECONDS)

    def __call__(self, done: int, total: int | None = None) -> None:
        if done == total:
            self._display.clear()
            return
        text = f"{done:,} {self._things}"
        if total is not None and done:
            left = (time.monotonic() - self._began) * (total - done) / done
            text = f"{done:,} of {total:,} {self._things}, {duration(left)} left"
        self._display.draw([Line(self._things, text)])


class SettleDisplay:
    """Show what `settle` and `noise` are doing, how far they are, the cost so far, the time left and the leaning."""

    def __init__(self) -> None:
        self._display = Display()

    def __call__(self, progress: train_seeds.SettleProgress) -> None:
        cost = f"so far {duration(progress.cpu_seconds)} CPU, {duration(progress.wall_seconds)} wall"
        parts = [progress.doing, f"{progress.share:.0%}", cost]
        if progress.eta_seconds is not None:
            parts.append(f"ETA {duration(progress.eta_seconds)}")
        verdict = progress.verdict
        if verdict and verdict.leaning == verdict.leaning:  # NaN before the first scores
            parts.append(f"leaning {verdict.effect()} at {verdict.n[0]} v {verdict.n[1]}")
        self._display.draw([Line("settle", " · ".join(parts), news=progress.doing)])

    def say(self, text: str) -> None:
        """Print a message above the display."""
        self._display.clear()
        say(text)


def show(view: RunProgress | Board, *, timeout_seconds: float | None = None) -> None:
    """Show a live view on stderr until it is over or the time is up; before the first step it is read more often."""
    deadline = float("inf")
    if timeout_seconds is not None:
        deadline = time.monotonic() + timeout_seconds
    display = Display()
    while True:
        lines = view.read()
        is_last = view.is_over or time.monotonic() >= deadline
        display.draw(lines, is_last=is_last)
        if is_last:
            return
        view.rest(REFRESH_SECONDS if view.has_begun else FIRST_REFRESH_SECONDS)


def follow(run: Run, *, timeout_seconds: float | None = None) -> Run:
    """Show a run's progress on stderr until it ends or the time is up, and return its last state."""
    progress = RunProgress(run.path)
    show(progress, timeout_seconds=timeout_seconds)
    return progress.run


class RunProgress:
    """The live view of a run: step, rate, ETA and return of every seed, read from the run's folder."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._steps_seen: dict[int, deque[tuple[float, int]]] = {}
        self.has_begun = False
        self.run = Run(path)
        self._planned = self.run.planned_steps

    @property
    def is_over(self) -> bool:
        from rlx.launch import launch  # not for commands that only count

        return not launch.is_active(self.run)

    def read(self) -> list[Line]:
        """Read the run's folder and return one line per seed, and one about those in an executor's queue."""
        self.run = Run(self._path)
        lines = [self._line(seed) for seed in self.run.seeds]
        queued = ""
        if (self._path / JOBS).exists():
            from rlx.launch import launch

            queued = launch.queue_status(self.run)
        if queued:
            lines.append(Line("queue", queued, news=queued))
        return lines

    def rest(self, seconds: float) -> None:
        """Sleep, at most until the supervisor has ended."""
        supervisor = self._path / SUPERVISOR
        deadline = time.monotonic() + seconds
        was_there = supervisor.exists()
        while time.monotonic() < deadline and (supervisor.exists() or not was_there):
            time.sleep(SUPERVISOR_POLL_SECONDS)

    def _line(self, seed: Seed) -> Line:
        step, episode_return = position(seed)
        self.has_begun = self.has_begun or step > 0
        state = seed.status.state
        parts = [f"seed {seed.number}", f"{state:11s}", self._reached(step)]
        if state == RUNNING:
            parts += self._pace(seed.number, step)
        if episode_return is not None:
            parts.append(f"return {figure(episode_return)}")
        if state not in (RUNNING, COMPLETED) and seed.status.reason:
            parts.append(seed.status.reason)
        news = state
        if state == RUNNING and step == 0:
            news = ""
        return Line(parts[0], "  ".join(parts), news, is_waiting=state == PREPARED)

    def _reached(self, step: int) -> str:
        if self._planned:
            return f"{step:,}/{self._planned:,}  {min(1.0, step / self._planned):4.0%}"
        return counted(step, "step")

    def _pace(self, number: int, step: int) -> list[str]:
        """Return steps per second over the last half minute and the ETA, or for how long there was no step."""
        seen = self._steps_seen.setdefault(number, deque())
        now = time.monotonic()
        if step and (not seen or seen[-1][1] != step):
            seen.append((now, step))
        if not seen:
            return []
        while len(seen) > 2 and now - seen[0][0] > RATE_SECONDS:
            seen.popleft()
        still_seconds = now - seen[-1][0]
        if still_seconds > STALL_SECONDS:
            return [f"no step for {duration(still_seconds)}"]
        first_time, first_step = seen[0]
        if step == first_step:
            return []
        rate = (step - first_step) / (now - first_time)
        parts = [f"{rate:,.0f} steps/s"]
        if self._planned:
            parts.append(f"ETA {duration(max(0, self._planned - step) / rate)}")
        return parts
