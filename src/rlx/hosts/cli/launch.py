"""Launch a candidate of a study through the one door: every gate is checked again, all reasons to refuse are told.

--plan is the hash that `rlx check candidate` returned: what was checked is what runs. The run has a supervisor of its
own; the command returns at once. Launching what runs already names that run. Exit code 4 where a gate refuses.

Example: rlx launch c001 --phase trial --plan 9f2c64d1a0b3 --dry-run
"""

from __future__ import annotations

import argparse
from typing import Any, get_args

from rlx.figures import counted
from rlx.hosts.cli.words import duration, plural
from rlx.runs import project
from rlx.study.lifecycle import Phase


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("candidate", help="a candidate's id, or baseline")
    parser.add_argument("--phase", choices=get_args(Phase), default="trial", help="what for (%(default)s)")
    parser.add_argument("--plan", type=str.strip, metavar="HASH", help="what `rlx check candidate` returned")
    parser.add_argument("--seeds", type=int, metavar="N", help="another count than the phase's own")
    parser.add_argument("--study", metavar="STUDY", help="another study than the one in use")
    parser.add_argument("--dry-run", action="store_true", help="check every gate, start nothing")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.launch.door import Order, launch
    from rlx.study.study import find

    order = Order(args.candidate, args.phase, plan=args.plan, count=args.seeds)
    study = find(project.root(), args.study)
    told = launch(study, order, is_dry=args.dry_run).document()
    return {**told, "next": told["next"] + study.option} if args.dry_run and told["run"] is None else told


def render(data: dict[str, Any]) -> str:
    seeds = plural(len(data["seeds"]), "seed")
    lines = [
        f"candidate: {data['candidate']} ({data['phase']}, {seeds}: {', '.join(map(str, data['seeds']))})",
        f"reserves: {counted(data['reserve']['seeds'], 'seed')}, at most {duration(data['reserve']['seconds'])}",
    ]
    if data["run"] is None:
        return "\n".join([*lines, "every gate is open; nothing was started (--dry-run)", f"next: {data['next']}"])
    was = " (it was there already)" if data["is_known"] else ""
    return "\n".join([*lines, f"run: {data['run']}{was}", f"next: {data['next']}"])
