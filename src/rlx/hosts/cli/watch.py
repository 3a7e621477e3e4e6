"""Show a run live until it ends: progress and alarms (the rules of `rlx diagnose`). Ctrl-C leaves the run training.

--all shows every run that trains, until none does. The exit code is 0 if runs completed or still run, and 5 if a run
failed, was stopped by a rule of its config, was interrupted or was lost.

Example: rlx watch cartpole_ppo_001
         rlx watch --all
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from rlx.errors import JobFailed, UsageError
from rlx.hosts.cli import attach
from rlx.hosts.cli.arguments import Args, Data, Parser, find_run
from rlx.hosts.cli.format import NOTHING, spread, steps
from rlx.hosts.cli.output import exit_code_if, labelled, say, table
from rlx.hosts.cli.progress import Line, RunProgress, show
from rlx.runs import index, project, summary
from rlx.runs.run import Run
from rlx.runs.status import COMPLETED, FAILED, RUNNING, tally

if TYPE_CHECKING:
    from rlx.diagnose.finding import Finding

ALARM_SECONDS = 10.0
NEW_RUNS_SECONDS = 2.0
MOST_ALARMS = 3
HEADER = ("run", "seeds", "steps", "done", "return", "alarms")


def arguments(parser: Parser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="the name of a run")
    parser.add_argument("--all", action="store_true", help="every run that is training")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="stop watching after this long")


def run(args: Args) -> Data:
    if (args.run is None) != args.all:
        raise UsageError("name one run, or use --all", hint="rlx watch RUN, or rlx watch --all")
    board = Board(project.root(), args.run and find_run(args.run))
    try:
        show(board, timeout_seconds=args.timeout)
    except KeyboardInterrupt:
        say("stopped watching; training continues")
    outcomes = [_outcome(path) for path in board.watched]
    is_bad = any(outcome["state"] not in (COMPLETED, RUNNING) for outcome in outcomes)
    code = {"exit_code": exit_code_if(is_bad, JobFailed)}
    if args.all:
        return {"runs": outcomes, **code}
    return {**outcomes[0], **code}


def _outcome(path: Path) -> Data:
    run = Run(path)
    return {**attach.outcome(run), "alarms": [finding.document() for finding in _alarms(run)]}


def _alarms(run: Run) -> tuple[Finding, ...]:
    from rlx.diagnose.early_stop import alarms
    from rlx.diagnose.load_case import read_case

    return alarms(read_case(run))


class Board:
    """The live view of one run's seeds, or a table of all runs that train, each with its alarms."""

    def __init__(self, root: Path, only: Run | None) -> None:
        self._root = root
        self._only = only
        self._next_search = 0.0
        self.watched: dict[Path, WatchedRun] = {}
        if only:
            self.watched[only.path] = WatchedRun(only.path)

    @property
    def has_begun(self) -> bool:
        return all(run.progress.has_begun for run in self.watched.values())

    @property
    def is_over(self) -> bool:
        return all(run.progress.is_over for run in self.watched.values())

    def read(self) -> list[Line]:
        """Read the runs and return the lines to show."""
        if self._only:
            return self.watched[self._only.path].read()
        self._find_new_runs()
        if not self.watched:
            return []
        rows = [run.cells() for run in self.watched.values()]
        keys = [HEADER, *rows]
        lines = table(HEADER, rows, right=(2, 3, 4)).splitlines()
        return [Line(row[0], line, news=row[1]) for row, line in zip(keys, lines, strict=True)]

    def rest(self, seconds: float) -> None:
        time.sleep(seconds)

    def _find_new_runs(self) -> None:
        if time.monotonic() < self._next_search:
            return
        self._next_search = time.monotonic() + NEW_RUNS_SECONDS
        for row in reversed(index.summaries(self._root, status=RUNNING).rows):
            path = self._root / "runs" / row["name"]
            if path not in self.watched:
                self.watched[path] = WatchedRun(path)


class WatchedRun:
    """One run's progress, and its alarms, which are looked for every ten seconds."""

    def __init__(self, path: Path) -> None:
        self.progress = RunProgress(path)
        self._alarms: tuple[Finding, ...] = ()
        self._next_alarms = 0.0

    def read(self) -> list[Line]:
        """Return one line per seed, then one line per alarm."""
        lines = self.progress.read()
        if time.monotonic() >= self._next_alarms or self.progress.is_over:
            self._alarms = _alarms(self.progress.run)
            self._next_alarms = time.monotonic() + ALARM_SECONDS
        for alarm in self._alarms[:MOST_ALARMS]:
            lines.append(Line(alarm.rule, f"alarm {alarm.rule}  {alarm.claim}", news=alarm.claim))
        return lines

    def cells(self) -> list[str]:
        """Return the run as a row of the table."""
        self.read()
        run = self.progress.run
        planned = run.planned_steps
        positions = [summary.position(seed) for seed in run.seeds]
        step = sum(step for step, _ in positions) // max(len(positions), 1)
        share = min(1.0, step / (planned or float("inf")))
        score = summary.spread([value for _, value in positions], source="")
        alarms = ", ".join(alarm.rule for alarm in self._alarms) or NOTHING
        states = tally([seed.status.state for seed in run.seeds])
        return [run.name, states, steps(step, planned), f"{share:.0%}", spread(score), alarms]


def render(data: Data) -> str:
    outcomes = data.get("runs", [data])
    return "\n\n".join(map(_text, outcomes)) or "no run is training\n\nnext: rlx ls"


def _text(data: Data) -> str:
    fields = attach.fields(data)
    following = fields.pop("next")
    if data["alarms"] or data["state"] == FAILED:
        following = f"rlx diagnose {data['run']}"
    alarms = [f"{alarm['rule']}: {alarm['claim']}" for alarm in data["alarms"]]
    return labelled({**fields, "alarm": alarms, "next": following})
