"""List waiting jobs, add some, or run them. Several workers never take the same job.

A worker launches a queued trial, waits for it, judges it, and queues it again if its race needs more seeds.

Example: rlx study queue --add c001 --add c002
         rlx study queue --work
"""

from typing import get_args

from rlx.hosts.cli.arguments import Args, Data, Parser, add_executor, add_study, find_study, refuse_below_one
from rlx.hosts.cli.format import NOTHING
from rlx.hosts.cli.output import say, table
from rlx.study.ledger.lifecycle import Phase


def arguments(parser: Parser) -> None:
    add_study(parser)
    parser.add_argument("--add", action="append", default=[], metavar="CANDIDATE", help="queue a checked candidate")
    parser.add_argument("--phase", choices=get_args(Phase), default="trial", help="the phase (default: %(default)s)")
    add_executor(parser)
    parser.add_argument("--work", action="store_true", help="run the waiting jobs")
    parser.add_argument("--most", type=int, metavar="N", help="with --work: run at most N jobs")


def run(args: Args) -> Data:
    from rlx.hosts.cli.progress import follow
    from rlx.loop.study import queue
    from rlx.loop.study.step_commands import next_step

    refuse_below_one(args, "most")
    study = find_study(args.study)
    if args.add:
        queue.add(study, args.add, args.phase)
    did = []
    if args.work:
        did = queue.work(study, say=say, most=args.most, follow=follow)
    command = f"rlx study queue {study.name} --work"
    if not queue.is_ready(study) or any(job.outcome == queue.WAITS for job in did):
        command = str(next_step(study).command)
    waiting = [ticket.document() for ticket in queue.tickets(study)]
    return {"study": study.name, "waiting": waiting, "did": [job.document() for job in did], "command": command}


def render(data: Data) -> str:
    lines = []
    for job in data["did"]:
        lines.append(f"done: {job['candidate']} ({job['phase']}): {job['outcome']}")
        lines += [f"  {reason}" for reason in job["why"]]
    keys = ("job", "candidate", "phase", "worker", "criteria")
    rows = [[job[key] or NOTHING for key in keys] for job in data["waiting"]]
    waiting = "no job is waiting"
    if rows:
        waiting = table(["job", "candidate", "phase", "worker", "promoted when"], rows)
    return "\n".join([*lines, waiting, f"next: {data['command']}"])
