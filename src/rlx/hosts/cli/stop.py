"""Stop a run: its seeds save `latest`, then the whole process group ends (TERM, then KILL).

One that waits in a scheduler's queue is cancelled there.

Example: rlx stop cartpole_ppo_001
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.errors import UsageError
from rlx.hosts.cli.attach import outcome
from rlx.hosts.cli.attach import render as render
from rlx.launch import launch
from rlx.runs import project
from rlx.runs.run import find


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="a run's name")


def run(args: argparse.Namespace) -> dict[str, Any]:
    found = find(args.run, root=project.root())
    if not launch.goes_on(found):
        raise UsageError(f"{found.name} is not running: {found.status}", hint=f"rlx info {found.name}")
    return outcome(launch.stop(found))
