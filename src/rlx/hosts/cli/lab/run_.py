"""Drive a lab: start a fresh agent session per iteration until a limit, a rule of lab.yaml or a person ends it.

Each session gets the brief on stdin and a worktree of the head. The kernel lets it write only the candidate's folder
there, its own scratch folder and the client's own state. rlx then tries the change. A crash, an empty diff, an edit
out of scope, a stall or a timeout is one row each. rlx waits for the reset of a usage limit. At the end it claims the
head on fresh seeds, unless the time is up. After a reboot or a kill, `rlx lab resume` goes on.

Example: rlx lab run --agent claude --iterations 20
         rlx lab run --agent codex --until 07:00 --max-cost 15
         rlx lab run --agent claude --executor slurm
         rlx lab run --agent "python my_agent.py" --iterations 3
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from rlx.errors import Interrupted, UsageError
from rlx.hosts.cli.arguments import EXECUTOR_VARIABLE, Args, Data, Parser, add_executor
from rlx.hosts.cli.output import labelled, say

if TYPE_CHECKING:
    from rlx.loop.lab.driver import DriveEnd
    from rlx.loop.lab.lab_folder import Lab


def arguments(parser: Parser) -> None:
    parser.add_argument(
        "--agent", metavar="COMMAND", default="", help="claude, codex, or a command (default: lab.yaml)"
    )
    parser.add_argument("--iterations", type=int, metavar="N", help="end after N sessions")
    parser.add_argument("--until", metavar="TIME", help="end at this time: 07:00 or 2026-11-19T07:00")
    parser.add_argument("--max-cost", type=float, metavar="DOLLARS", help="end when the sessions have cost so much")
    add_executor(parser)


def run(args: Args) -> Data:
    from rlx.hosts.cli.progress import follow
    from rlx.launch import launch
    from rlx.loop.lab import driver
    from rlx.loop.lab.drive_rules import DriveOptions
    from rlx.loop.lab.lab_folder import Lab

    lab = Lab.open()
    if args.iterations is not None and args.iterations < 1:
        raise UsageError(f"--iterations {args.iterations}: at least 1", hint="--iterations 20")
    if args.max_cost is not None and not args.max_cost > 0:
        raise UsageError(f"--max-cost {args.max_cost}: not an amount of dollars", hint="--max-cost 15")
    given = DriveOptions(
        args.agent, args.iterations, _until(args.until), args.max_cost, executor=os.environ.get(EXECUTOR_VARIABLE)
    )
    options = driver.options_from(lab, given)
    wait = launch.wait if args.json else follow
    return drive(lab, lambda: driver.start(lab, options, say=say, follow=wait))


def _until(text: str | None) -> float | None:
    from rlx.study.stop_rules import deadline

    if text is None:
        return None
    end = deadline(text, since=time.time())
    if end is None or end <= time.time():
        raise UsageError(f"--until {text}: not a time to come", hint="--until 07:00, or 2026-11-19T07:00")
    return end


def drive(lab: Lab, act: Callable[[], DriveEnd]) -> Data:
    """Run a drive to its end, write its report, and describe it. Ctrl-C, SIGTERM and SIGHUP stop it cleanly."""
    from rlx.hosts.cli import attach
    from rlx.loop.lab.morning_report import write_report

    attach.hear_signals()
    try:
        end = act()
    except KeyboardInterrupt:
        raise Interrupted("the driver stopped; every session has its row", hint="rlx lab resume") from None
    report = write_report(lab)
    return {
        "lab": lab.name,
        "stop": end.stop.code,
        "why": end.stop.why,
        "iterations": end.iterations,
        "sessions": end.sessions,
        "dollars": end.dollars,
        "report": report.relative_to(lab.root).as_posix(),
    }


def render(data: Data) -> str:
    dollars = "unknown" if data["dollars"] is None else f"${data['dollars']:.2f}"
    return labelled({
        "ended": data["why"],
        "iterations": f"{data['iterations']} ({data['sessions']} sessions)",
        "cost": dollars,
        "report": data["report"],
        "next": "rlx lab report",
    })  # fmt: skip
