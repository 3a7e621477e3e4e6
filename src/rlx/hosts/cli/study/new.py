"""Write a study's contract. rlx infers as much as it can and lists the eight points that you confirm.

On a terminal rlx asks for the rest. Without one it asks nothing and lists the open points. -s sets any key
of the contract. The baseline is pinned to the current commit; --snapshot pins the files including uncommitted changes.
--config makes the task first.

Example: rlx study new faster --config configs/cartpole.yaml
         rlx study new trot --task go2 --metric success --edit "tasks/trot/reward.py::Reward" --seeds 60 --hours 8
         rlx study new safer --task go2 --metric success --guard -energy:2 --guard upright --hours 8
"""

import sys
from pathlib import Path

from rlx.hosts.cli.arguments import Args, Data, Parser, add_settings
from rlx.hosts.cli.output import say
from rlx.hosts.cli.study.show import render as render
from rlx.runs import project

_LISTS = {
    "guard": ("EXPRESSION[:MARGIN]", "a metric that must not decrease; with a leading - one that must not increase"),
    "surface": ("NAME", "a surface of the task that candidates may change"),
    "edit": ("PATH", "a file, glob or file.py::Class that candidates may change"),
    "key": ("KEY", "a config key that candidates may change"),
}  # fmt: skip


def arguments(parser: Parser) -> None:
    parser.add_argument("study", metavar="NAME", help="the name of the new study")
    parser.add_argument("--task", metavar="TASK", help="a task (default: the only one)")
    parser.add_argument("--config", type=Path, metavar="FILE", help="make a task of this rlx config first")
    parser.add_argument("--metric", metavar="NAME[:min]", help="what decides: success_rate, return:max, error:min")
    for name, (metavar, help_text) in _LISTS.items():
        parser.add_argument(f"--{name}", action="append", default=[], metavar=metavar, help=help_text)
    parser.add_argument("--seeds", type=int, metavar="N", help="the total number of training seeds")
    parser.add_argument("--hours", type=float, metavar="H", help="the total hours of training")
    parser.add_argument("--until", metavar="TIME", help="no job starts after this: 07:00, or 2026-01-31")
    parser.add_argument("--unattended", action="store_true", help="let jobs start without a person")
    parser.add_argument("--snapshot", action="store_true", help="pin the files including uncommitted changes")
    add_settings(parser, of="the contract")


def run(args: Args) -> Data:
    from rlx.loop.study.new_study import Wishes, new_study

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
