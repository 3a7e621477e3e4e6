"""Show a run's progress live until it ends; Ctrl-C only leaves, the run goes on.

Example: rlx watch cartpole_ppo_001
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.hosts.cli.attach import outcome
from rlx.hosts.cli.attach import render as render
from rlx.hosts.cli.output import say
from rlx.hosts.cli.progress import follow
from rlx.runs import project
from rlx.runs.run import Run, find


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="a run's name")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="leave after this long")


def run(args: argparse.Namespace) -> dict[str, Any]:
    found = find(args.run, root=project.root())
    try:
        seen = follow(found, timeout_seconds=args.timeout)
    except KeyboardInterrupt:
        say("left; the run goes on")
        seen = Run(found.path)
    return outcome(seen)
