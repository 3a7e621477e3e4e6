"""Wait for a run to end. Exit code: 0 completed, 5 failed, interrupted or lost, 1 still running when the time is up.

How a study's job ended is what the study's ledger says, whatever its run says of itself.

Example: rlx wait cartpole_ppo_001 --timeout 300
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.errors import JobFailed
from rlx.hosts.cli.attach import outcome
from rlx.hosts.cli.attach import render as render
from rlx.launch import launch
from rlx.runs import project
from rlx.runs.run import Run, find
from rlx.runs.status import COMPLETED, RUNNING


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="a run's name")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="give up after this long")


def run(args: argparse.Namespace) -> dict[str, Any]:
    ended = launch.wait(find(args.run, root=project.root()), timeout_seconds=args.timeout)
    told = {**outcome(ended), **_by_ledger(ended)}
    codes = {COMPLETED: 0, RUNNING: 1}
    return {**told, "exit_code": codes.get(str(told["state"]), JobFailed.exit_code)}


def _by_ledger(run: Run) -> dict[str, str]:
    """Return the state that the ledger has of a study's job, where it ended."""
    if run.status == RUNNING or "job" not in (run.metadata.get("lineage") or {}):
        return {}
    from rlx.launch.door import settled

    job = settled(run)
    return {"state": job.outcome} if job is not None and job.outcome is not None else {}
