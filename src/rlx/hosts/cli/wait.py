"""Wait for a run to end, and show how far it is.

Exit code: 0 completed, 5 failed, interrupted or lost, 1 still running when the time is up. One seed that did not
complete is enough for 5. How a study's job ended is what the study's ledger says, whatever its run says of itself; what
follows from it is what `rlx next` says.

Example: rlx wait cartpole_ppo_001 --timeout 300
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.errors import JobFailed
from rlx.hosts.cli.attach import outcome
from rlx.hosts.cli.attach import render as render
from rlx.hosts.cli.progress import follow
from rlx.launch import launch
from rlx.runs import project
from rlx.runs.run import Run, find
from rlx.runs.status import COMPLETED, RUNNING


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="a run's name")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="give up after this long")


def run(args: argparse.Namespace) -> dict[str, Any]:
    stay = launch.wait if args.json else follow
    ended = stay(find(args.run, root=project.root()), timeout_seconds=args.timeout)
    state = _state(ended)
    codes = {COMPLETED: 0, RUNNING: 1}
    return {**outcome(ended), "state": state, "exit_code": codes.get(state, JobFailed.exit_code)}


def _state(run: Run) -> str:
    if not run.metadata.get("lineage"):
        return run.status
    from rlx.launch.reconcile import state_of

    return state_of(run)
