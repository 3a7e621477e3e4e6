"""Show a run live until it ends: progress and open alarms (the rules of `rlx diagnose`); Ctrl-C only leaves it.

--all shows every run that trains, until none does. Exit code: 0 completed or still running, 5 where a run failed, was
stopped by a rule of its config, was interrupted or lost.

Example: rlx watch cartpole_ppo_001
         rlx watch --all
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.errors import JobFailed, UsageError
from rlx.hosts.cli import attach, words
from rlx.hosts.cli.output import say, table
from rlx.hosts.cli.progress import Progress, show
from rlx.runs import index, project
from rlx.runs.run import Run, find
from rlx.runs.status import COMPLETED, FAILED, RUNNING, tally
from rlx.runs.summary import position, spread

if TYPE_CHECKING:
    from rlx.diagnose.finding import Finding

ALARM_SECONDS = 10.0
LOOK_SECONDS = 2.0  # between two looks for runs that have begun since
MOST_ALARMS = 3
HEADER = ("run", "seeds", "steps", "done", "return", "alarms")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", help="a run's name")
    parser.add_argument("--all", action="store_true", help="every run that is training")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="leave after this long")


def run(args: argparse.Namespace) -> dict[str, Any]:
    if (args.run is None) != args.all:
        raise UsageError("watch one run, or all that train", hint="rlx watch RUN, or rlx watch --all")
    root = project.root()
    board = Board(root) if args.all else Board(root, find(args.run, root=root))
    try:
        show(board, timeout_seconds=args.timeout)
    except KeyboardInterrupt:
        say("left; the run goes on" if args.run else "left; the runs go on")
    seen = [_outcome(one) for one in board.watched]
    is_fine = all(one["state"] in (COMPLETED, RUNNING) for one in seen)
    code = {"exit_code": 0 if is_fine else JobFailed.exit_code}
    return {"runs": seen, **code} if args.all else {**seen[0], **code}


def _outcome(path: Path) -> dict[str, Any]:
    seen = Run(path)
    return {**attach.outcome(seen), "alarms": [finding.document() for finding in _alarms(seen)]}


def _alarms(run: Run) -> tuple[Finding, ...]:
    from rlx.diagnose.alarm import alarms
    from rlx.diagnose.reading import read

    return alarms(read(run))


class Board:
    """One run's seeds, or a table of all runs that are or begin training meanwhile; each with its alarms."""

    def __init__(self, root: Path, only: Run | None = None) -> None:
        self._root, self._only = root, only
        self._next_look = 0.0
        self._shown: dict[Path, Watched] = {only.path: Watched(only.path)} if only else {}

    @property
    def watched(self) -> list[Path]:
        """The runs that were looked at."""
        return list(self._shown)

    @property
    def has_begun(self) -> bool:
        return all(one.progress.has_begun for one in self._shown.values())

    @property
    def is_over(self) -> bool:
        return all(one.progress.is_over for one in self._shown.values())

    def read(self) -> list[str]:
        """Look anew and return the lines to show."""
        if self._only:
            return self._shown[self._only.path].read()
        self._look()
        rows = [one.cells() for one in self._shown.values()]
        return table(HEADER, rows, right=(2, 3, 4)).splitlines() if rows else []

    def rest(self, seconds: float) -> None:
        """Sleep for so long."""
        time.sleep(seconds)

    def _look(self) -> None:
        """Take in the runs that have begun since the last look."""
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + LOOK_SECONDS
        for row in reversed(index.summaries(self._root, status=RUNNING).rows):
            path = self._root / "runs" / row["name"]
            self._shown.setdefault(path, Watched(path))


class Watched:
    """One run's progress and its alarms, which are looked for now and then only."""

    def __init__(self, path: Path) -> None:
        self.progress = Progress(path)
        self._alarms: tuple[Finding, ...] = ()
        self._next = 0.0

    def read(self) -> list[str]:
        """Look anew and return a line a seed, then a line an alarm."""
        lines = self.progress.read()
        if time.monotonic() >= self._next or self.progress.is_over:
            self._alarms, self._next = _alarms(self.progress.run), time.monotonic() + ALARM_SECONDS
        return lines + [f"alarm {one.rule}  {one.claim}" for one in self._alarms[:MOST_ALARMS]]

    def cells(self) -> list[str]:
        """Look anew and return the run as a row of a table."""
        self.read()
        seen, planned = self.progress.run, self.progress.run.planned_steps
        places = [position(seed) for seed in seen.seeds]
        step = sum(step for step, _ in places) // max(len(places), 1)
        score = spread([value for _, value in places], source="")
        return [
            seen.name,
            tally([seed.status.state for seed in seen.seeds]),
            words.steps(step, planned),
            f"{min(1.0, step / planned) if planned else 0:.0%}",
            words.spread(score),
            ", ".join(one.rule for one in self._alarms) or words.NOTHING,
        ]


def render(data: dict[str, Any]) -> str:
    if "runs" in data:
        return "\n\n".join(_text(one) for one in data["runs"]) or "no run is training\n\nnext: rlx ls"
    return _text(data)


def _text(data: dict[str, Any]) -> str:
    *lines, following = attach.render(data).splitlines()
    reasons = [f"reason: seed {seed['seed']}: {seed['reason']}" for seed in data["seeds"] if seed["reason"]]
    found = [f"alarm: {one['rule']}: {one['claim']}" for one in data["alarms"]]
    is_sick = found or data["state"] == FAILED
    return "\n".join([*lines, *reasons, *found, f"next: rlx diagnose {data['run']}" if is_sick else following])
