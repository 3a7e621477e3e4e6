"""Describe a problem in this repository: its goal, how it is trained and measured, and what each part of the code is.

For an rlx config, rlx infers everything. For a repository with its own commands, give --train and --eval. rlx fills in
{seed}, {out} (the job's folder), {steps} and {overrides}; for --eval also {checkpoint}, {episodes}, {episode_seed} and
{result}. rlx stores each fact with file, line and hash. `task show` lists the facts that are out of date.
`task refresh` reads them again and sets keys of the task (-s). `task new --replace` rewrites the whole task, unless a
study on it was approved. `task copy` makes another task of it for the next study, with the facts read again.

A complete task also has
--eval "python eval.py {checkpoint} --episodes {episodes} --seed {episode_seed} --out {result}",
--result jsonl:{result} --result-name success, --metrics tensorboard:{out}/tb --name return=train/return and
--surface reward=reach/reward.py.

Example: rlx task new cartpole --config configs/cartpole.yaml
         rlx task new reach --train "python train.py --seed {seed} --out {out} {overrides}" --checkpoint {out}/net.npz
         rlx task new arm --train "python run.py --seed {seed} {overrides}" --override "--set {key}={value}"
         rlx task show reach
         rlx task refresh reach -s adapter.metrics.step=iteration
         rlx task copy reach reach-far -s adapter.steps=800000
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser, add_settings
from rlx.hosts.cli.format import NOTHING, command_words
from rlx.hosts.cli.output import labelled
from rlx.runs import project
from rlx.study.task.task import Surface

_COMMAND_OPTIONS: dict[str, tuple[str, str, Data]] = {
    "eval": ("COMMAND", "how it measures a checkpoint", {}),
    "prefix": ("COMMAND", "in front of both commands, such as `uv run`", {"default": ""}),
    "metrics": ("READER:PATH", "where training logs: jsonl, csv, tensorboard; or stdout (name=value, name: value)", {}),
    "name": ("OURS=THEIRS", "a logged metric; step=THEIRS", {"action": "append", "default": []}),
    "result": ("READER:PATH", "where --eval writes its metrics, or one row per episode", {}),
    "result-name": ("OURS=THEIRS", "a measured metric", {"action": "append", "default": []}),
    "checkpoint": ("PATH", "the checkpoint that training writes: {out}/*/model_*.pt", {"default": ""}),
    "override": ("TEMPLATE", 'how to change a key: "--{key}={value}"', {}),
    "steps": ("N", "training steps of one seed, for {steps}", {"type": int}),
    "path": ("FOLDER", "a folder on Python's path (src, .)", {"action": "append", "default": []}),
    "env": ("ENV", "the environment that rlx itself may measure in: file.py:Class", {}),
    "policy": ("FILE:FUNCTION", "loads a checkpoint as observation → action", {}),
    "surface": ("NAME=PATHS", ", ".join(get_args(Surface)), {"action": "append", "default": []}),
}  # fmt: skip
"""Options of a repository with its own commands; an rlx config already has this information."""


def arguments(parser: Parser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="new|show|refresh|copy")
    new = verbs.add_parser("new", help="write task.yaml", description=__doc__)
    new.add_argument("task", metavar="NAME", help="the name of the task")
    new.add_argument("--config", type=Path, metavar="FILE", help="an rlx config; rlx infers the rest")
    new.add_argument("--train", metavar="COMMAND", help="how the repository trains one seed")
    for name, (metavar, help_text, settings) in _COMMAND_OPTIONS.items():
        new.add_argument(f"--{name}", metavar=metavar, help=help_text, **settings)
    new.add_argument("--mission", default="", metavar="TEXT", help="what should get better")
    new.add_argument("--replace", action="store_true", help="rewrite a task that has no approved study")
    show = verbs.add_parser("show", help="show a task, and which of its facts are out of date")
    refresh = verbs.add_parser("refresh", help="read its facts again from the current files")
    for verb in (show, refresh):
        verb.add_argument("task", nargs="?", metavar="NAME", help="a task (default: the only one)")
    copy = verbs.add_parser("copy", help="make another task of a task, for the next study")
    copy.add_argument("task", metavar="NAME", help="the task to copy")
    copy.add_argument("copy", metavar="NEW", help="the name of the new task")
    add_settings(copy, of="the new task")
    copy.add_argument("--mission", metavar="TEXT", help="the mission of the new task")
    add_settings(refresh, of="the task")
    refresh.add_argument("--mission", metavar="TEXT", help="the new mission")


def run(args: Args) -> Data:
    from rlx.loop.study.describe_task import copy_task, describe, new_task, refresh_task

    root = project.root()
    if args.verb == "refresh":
        refresh_task(root, args.task, mission=args.mission, changes=args.set)
    if args.verb == "copy":
        copy_task(root, args.task, args.copy, mission=args.mission, changes=args.set)
        return describe(root, args.copy)
    if args.verb == "new":
        if bool(args.config) == bool(args.train):
            raise UsageError("a task needs an rlx config or its own commands", hint="--config FILE, or --train COMMAND")
        _refuse_unused(args)
        commands = _commands(args) if args.train else None
        new_task(root, args.task, config=args.config, commands=commands, mission=args.mission, replaces=args.replace)
    return describe(root, args.task)


def _refuse_unused(args: Args) -> None:
    """Raise if an option has no effect with --config."""
    for name in _COMMAND_OPTIONS:
        if args.config and getattr(args, name.replace("-", "_")):
            hint = "leave it out, or change the task later: rlx task refresh NAME -s surfaces.reward.paths=[PATH]"
            raise UsageError(f"--{name} is for a task with commands, and {args.config} is a config", hint=hint)


def _commands(args: Args) -> Any:
    from rlx.study.task.infer_task import Commands, source_of

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
    """Read `ours=theirs`; a single name is the same on both sides."""
    split = [pair.partition("=") for pair in pairs]
    return {ours: theirs or ours for ours, _, theirs in split}


def _surfaces(pairs: Sequence[str]) -> Any:
    from rlx.study.task.task import PathsAndKeys

    surfaces = {}
    for pair in pairs:
        name, sign, paths = pair.partition("=")
        if not sign or name not in get_args(Surface):
            hint = f"NAME=PATHS with one of {', '.join(get_args(Surface))}"
            raise UsageError(f"`{pair}` is not a surface", hint=hint)
        surfaces[name] = PathsAndKeys(paths=tuple(path for path in paths.split(",") if path))
    return surfaces


def render(data: Data) -> str:
    return labelled({
        "task": data["task"],
        "mission": data["mission"] or NOTHING,
        **data["adapter"],
        **{f"surface {name}": ", ".join(parts) for name, parts in data["surfaces"].items()},
        "problem": data["problems"],
        "facts": f"{data['facts']} (file, line, hash)",
        "file": data["file"],
        "next": data["command"],
    })  # fmt: skip
