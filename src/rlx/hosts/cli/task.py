"""Describe a problem in this repository: what it is about, how it is trained and measured, which parts are what.

For an rlx config everything is derived. For a repository of its own commands, say how it trains and evaluates; {seed},
{out} (the job's folder), {steps} and {overrides} are filled in, for --eval also {checkpoint}, {episodes},
{episode_seed} and {result}. Facts carry file, line and hash; `task show` names those that went stale,
`task refresh` reads them again and sets keys of the task (-s), and `task new --replace` writes the whole task anew, as
long as no study was approved on it.

With --eval "python eval.py {checkpoint} --episodes {episodes} --seed {episode_seed} --out {result}", --result
jsonl:{result} --result-name success, --metrics tensorboard:{out}/tb --name return=train/return and --surface
reward=reach/reward.py a repository of its own is complete.

Example: rlx task new cartpole --config configs/cartpole.yaml
         rlx task new reach --train "python train.py --seed {seed} --out {out} {overrides}" --checkpoint {out}/net.npz
         rlx task new arm --train "python run.py --seed {seed} {overrides}" --override "--set {key}={value}"
         rlx task show reach
         rlx task refresh reach -s adapter.metrics.step=iteration
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from rlx.errors import UsageError
from rlx.hosts.cli.words import command_words
from rlx.runs import project
from rlx.study.task import Surface


def arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="new|show|refresh")
    new = verbs.add_parser("new", help="write task.yaml", description=__doc__)
    new.add_argument("task", metavar="NAME", help="what to call it")
    new.add_argument("--config", type=Path, metavar="FILE", help="an rlx config: everything else is derived")
    new.add_argument("--train", metavar="COMMAND", help="how the repository trains one seed")
    new.add_argument("--eval", metavar="COMMAND", help="how it measures a checkpoint")
    new.add_argument("--prefix", default="", metavar="COMMAND", help="what stands before both, such as `uv run`")
    new.add_argument(
        "--metrics",
        metavar="READER:PATH",
        help="where training logs: jsonl, csv, tensorboard; stdout alone: what it prints as name=value or name: value",
    )
    new.add_argument("--name", action="append", default=[], metavar="OURS=THEIRS", help="a logged figure; step=THEIRS")
    new.add_argument("--result", metavar="READER:PATH", help="where --eval leaves its figures, or a row an episode")
    new.add_argument("--result-name", action="append", default=[], metavar="OURS=THEIRS", help="a measured figure")
    new.add_argument("--checkpoint", default="", metavar="PATH", help="what training leaves: {out}/*/model_*.pt")
    new.add_argument("--override", metavar="TEMPLATE", help='how a key is changed: "--{key}={value}"')
    new.add_argument("--steps", type=int, metavar="N", help="training steps of one seed, for {steps}")
    new.add_argument(
        "--path", action="append", default=[], metavar="FOLDER", help="what goes on Python's path (src, .)"
    )
    new.add_argument("--env", metavar="ENV", help="the environment that rlx itself may measure in: file.py:Class")
    new.add_argument("--policy", metavar="FILE:FUNCTION", help="loads a checkpoint as observation → action")
    new.add_argument("--surface", action="append", default=[], metavar="NAME=PATHS", help=", ".join(get_args(Surface)))
    new.add_argument("--mission", default="", metavar="TEXT", help="what should get better")
    new.add_argument("--replace", action="store_true", help="write anew a task that no study is approved on")
    show = verbs.add_parser("show", help="show a task, and which of its facts went stale")
    show.add_argument("task", nargs="?", metavar="NAME", help="its name; the only one by default")
    refresh = verbs.add_parser("refresh", help="read its facts again from the files as they are")
    refresh.add_argument("task", nargs="?", metavar="NAME", help="its name; the only one by default")
    refresh.add_argument("-s", "--set", action="append", default=[], metavar="KEY=VALUE", help="a key of the task")
    refresh.add_argument("--mission", metavar="TEXT", help="what should get better, from now on")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.loop.describing import describe, new_task, refresh_task

    root = project.root()
    if args.verb == "refresh":
        refresh_task(root, args.task, mission=args.mission, changes=args.set)
    if args.verb in ("show", "refresh"):
        return describe(root, args.task)
    if bool(args.config) == bool(args.train):
        raise UsageError("a task is an rlx config or commands of its own", hint="--config FILE, or --train COMMAND")
    commands = _commands(args) if args.train else None
    _refuse_idle(args)
    new_task(root, args.task, config=args.config, commands=commands, mission=args.mission, replaces=args.replace)
    return describe(root, args.task)


_OF_COMMANDS = (
    "eval", "prefix", "metrics", "name", "result", "result_name", "checkpoint", "override", "steps", "path", "env",
    "policy", "surface",
)  # fmt: skip
"""Options that say something about commands; an rlx config says all of that itself."""


def _refuse_idle(args: argparse.Namespace) -> None:
    """Refuse options that would say nothing."""
    idle = next((name for name in _OF_COMMANDS if args.config and getattr(args, name)), None)
    if idle:
        option = f"--{idle.replace('_', '-')}"
        hint = "leave it out, and change what is derived: rlx task refresh NAME -s surfaces.reward.paths=[PATH]"
        raise UsageError(f"{option} is for a task of commands, and {args.config} is a config", hint=hint)


def _commands(args: argparse.Namespace) -> Any:
    from rlx.study.derive import Commands, source_of

    return Commands(
        train=tuple(command_words(args.train, option="--train")),
        eval=tuple(command_words(args.eval or "", option="--eval")),
        prefix=tuple(command_words(args.prefix, option="--prefix")),
        metrics=source_of(args.metrics, _names(args.name)) if args.metrics else None,
        result=source_of(args.result, _names(args.result_name)) if args.result else None,
        checkpoint=args.checkpoint,
        override=args.override,
        steps=args.steps,
        python_path=tuple(args.path),
        env=args.env,
        policy=args.policy,
        mission=args.mission,
        surfaces=_surfaces(args.surface),
    )


def _names(pairs: Sequence[str]) -> dict[str, str]:
    """Read `ours=theirs`; a single name is called the same on both sides."""
    return {ours: theirs or ours for ours, _, theirs in (pair.partition("=") for pair in pairs)}


def _surfaces(pairs: Sequence[str]) -> Any:
    from rlx.study.task import Place

    found = {}
    for pair in pairs:
        name, sign, paths = pair.partition("=")
        if not sign or name not in get_args(Surface):
            raise UsageError(f"`{pair}` is no surface", hint=f"NAME=PATHS with one of {', '.join(get_args(Surface))}")
        found[name] = Place(paths=tuple(path for path in paths.split(",") if path))
    return found


def render(data: dict[str, Any]) -> str:
    lines = [f"task: {data['task']}", f"mission: {data['mission'] or '–'}"]
    lines += [f"{key}: {value}" for key, value in data["adapter"].items()]
    lines += [f"surface {name}: {', '.join(parts)}" for name, parts in data["surfaces"].items()]
    lines += [f"problem: {one}" for one in data["problems"]]
    lines.append(f"facts: {data['facts']} (file, line, hash)")
    lines.append(f"file: {data['file']}")
    return "\n".join([*lines, f"next: {data['command']}"])
