"""Write a study's contract, pre-filled with all that can be inferred: eight points to look at, then to approve.

On a terminal it asks only what cannot be inferred; elsewhere it asks nothing and names what is open. Any key of the
contract can be set with -s. The baseline is pinned to the commit the project stands at (--snapshot: to its files as
they lie there). --config makes the task first.

Example: rlx study new faster --config configs/cartpole.yaml
         rlx study new trot --task go2 --metric success --edit "tasks/trot/reward.py::Reward" --seeds 60 --hours 8
         rlx study new safer --task go2 --metric success --guard -energy:2 --guard upright --hours 8
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from rlx.hosts.cli.output import say
from rlx.hosts.cli.study.show import render as render
from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="NAME", help="what to call it")
    parser.add_argument("--task", metavar="TASK", help="a task; the only one by default")
    parser.add_argument("--config", type=Path, metavar="FILE", help="make a task of this rlx config first")
    parser.add_argument("--metric", metavar="NAME[:min]", help="what decides; success_rate, return:max, error:min")
    parser.add_argument(
        "--guard",
        action="append",
        default=[],
        metavar="EXPRESSION[:MARGIN]",
        help="a number that must not fall; of one that must not rise its negative: -energy:2",
    )
    parser.add_argument("--surface", action="append", default=[], metavar="NAME", help="a surface that may be changed")
    parser.add_argument("--edit", action="append", default=[], metavar="PATH", help="a file, glob or file.py::Class")
    parser.add_argument("--key", action="append", default=[], metavar="KEY", help="a config key that may be changed")
    parser.add_argument("--seeds", type=int, metavar="N", help="training seeds all together")
    parser.add_argument("--hours", type=float, metavar="H", help="hours of training all together")
    parser.add_argument("--until", metavar="TIME", help="07:00, or 2026-01-31: nothing starts after it")
    parser.add_argument("--unattended", action="store_true", help="jobs may start without a person")
    parser.add_argument("--snapshot", action="store_true", help="pin the files as they lie, uncommitted ones too")
    parser.add_argument("-s", "--set", action="append", default=[], metavar="KEY=VALUE", help="a key of the contract")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.loop.founding import Wishes, new_study

    wishes = Wishes(
        metric=args.metric, guards=tuple(args.guard), surfaces=tuple(args.surface), paths=tuple(args.edit),
        keys=tuple(args.key), seeds=args.seeds, hours=args.hours, until=args.until, is_unattended=args.unattended,
        settings=tuple(args.set),
    )  # fmt: skip
    ask = _ask if sys.stdin.isatty() else None
    root = project.root()
    return new_study(root, args.study, wishes, task=args.task, config=args.config, is_snapshot=args.snapshot, ask=ask)


def _ask(question: str) -> str:
    say(question)
    return sys.stdin.readline().strip()
