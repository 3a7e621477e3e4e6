"""List the jobs that wait, add some, or work them off; several workers never take the same job.

A queued trial is launched through the door, stayed with, judged, and queued again where its race asks for more seeds.

Example: rlx study queue --add c001 --add c002
         rlx study queue --work
"""

from __future__ import annotations

import argparse
from typing import Any, get_args

from rlx.errors import UsageError
from rlx.hosts.cli.output import say, table
from rlx.runs import project
from rlx.study.lifecycle import Phase


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="another study than the one in use")
    parser.add_argument("--add", action="append", default=[], metavar="CANDIDATE", help="queue a checked candidate")
    parser.add_argument("--phase", choices=get_args(Phase), default="trial", help="what for (%(default)s)")
    parser.add_argument("--work", action="store_true", help="work off what waits")
    parser.add_argument("--most", type=int, metavar="N", help="with --work: at most so many jobs")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.hosts.cli.progress import follow
    from rlx.loop import queue
    from rlx.loop.proceed import next_step
    from rlx.study.study import find

    if args.most is not None and args.most < 1:
        raise UsageError(f"--most {args.most}: at least one job", hint="--most 1")
    study = find(project.root(), args.study)
    if args.add:
        queue.add(study, args.add, args.phase)
    did = queue.work(study, say=say, most=args.most, follow=follow) if args.work else []
    waiting = [one.document() for one in queue.tickets(study)]
    is_stuck = not queue.is_ready(study) or any(one.outcome == queue.WAITS for one in did)
    command = next_step(study).command if is_stuck else f"rlx study queue {study.name} --work"
    return {"study": study.name, "waiting": waiting, "did": [one.document() for one in did], "command": command}


def render(data: dict[str, Any]) -> str:
    rows = [
        [one["job"], one["candidate"], one["phase"], one["worker"] or "–", one["criteria"]] for one in data["waiting"]
    ]
    lines = []
    for one in data["did"]:
        lines += [f"done: {one['candidate']} ({one['phase']}): {one['outcome']}", *(f"  {why}" for why in one["why"])]
    lines.append(table(["job", "candidate", "phase", "worker", "promoted when"], rows) if rows else "nothing waits")
    return "\n".join([*lines, f"next: {data['command']}"])
