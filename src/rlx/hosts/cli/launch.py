"""Launch a candidate of a study. rlx checks every gate again and prints all reasons if it refuses (exit code 4).

--plan is the hash that `rlx check candidate` printed, so that exactly the checked code runs. The command returns at
once, and the run has its own supervisor. If the candidate is already running, rlx prints the name of that run.

Example: rlx launch c001 --phase trial --plan 9f2c64d1a0b3 --dry-run
"""

from typing import get_args

from rlx.hosts.cli.arguments import Args, Data, Parser, add_candidate, add_executor, find_study
from rlx.hosts.cli.format import counted, duration
from rlx.hosts.cli.output import labelled
from rlx.study.ledger.lifecycle import Phase


def arguments(parser: Parser) -> None:
    add_candidate(parser, also=", or baseline")
    parser.add_argument("--phase", choices=get_args(Phase), default="trial", help="the phase (default: %(default)s)")
    parser.add_argument("--plan", type=str.strip, metavar="HASH", help="the hash from `rlx check candidate`")
    parser.add_argument("--seeds", type=int, metavar="N", help="the number of seeds (default: the phase's own)")
    add_executor(parser)
    parser.add_argument("--dry-run", action="store_true", help="check every gate and start nothing")


def run(args: Args) -> Data:
    from rlx.launch.study_jobs.launch_candidate import LaunchOrder, launch

    order = LaunchOrder(args.candidate, args.phase, plan=args.plan, count=args.seeds)
    study = find_study(args.study)
    data = launch(study, order, is_dry=args.dry_run).document()
    if args.dry_run and data["run"] is None:
        data["next"] += study.option
    return data


def render(data: Data) -> str:
    reserve = data["reserve"]
    seeds = f"{counted(reserve['seeds'], 'seed')}, drawn when the job is launched"
    if data["seeds"]:
        seeds = f"{counted(len(data['seeds']), 'seed')}: {', '.join(map(str, data['seeds']))}"
    name = data["run"]
    if name and data["is_known"]:
        name += " (already running)"
    return labelled({
        "candidate": f"{data['candidate']} ({data['phase']}, {seeds})",
        "reserves": f"{counted(reserve['seeds'], 'seed')}, at most {duration(reserve['seconds'])}",
        "run": name or "none: every gate is open, but --dry-run starts nothing",
        "next": data["next"],
    })  # fmt: skip
