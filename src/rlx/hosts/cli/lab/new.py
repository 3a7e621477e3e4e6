"""Write a lab into a new folder: mission, candidate, evaluator, rules, a git repository and the first study.

A solve lab measures policies in evaluator/env.py, sealed from the candidate. In a build lab, the agent also builds the
environment, and the evaluator owns checks, scenarios and the success predicate. Edit program.md, lab.yaml and
evaluator/ before the approval.

Files of your own environment, what they import and the data next to them are copied into the lab, where candidates
cannot change them.

Example: rlx lab new hop --env CartPole-v1 --max-steps 200
         rlx lab new walk --env envs/walker.py:Walker --metric success_rate
         rlx lab new maze --template batched
         rlx lab new maze2 --template simverse --kind build
"""

from __future__ import annotations

import shlex
from pathlib import Path

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser
from rlx.hosts.cli.output import labelled

RUNGS = "evaluator/rungs/"
TEMPLATES = ("batched", "simverse")


def arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the folder to make; its last part names the lab")
    parser.add_argument("--env", metavar="ID", help="a Gymnasium id (default: CartPole-v1), or your envs/hop.py:Hop")
    parser.add_argument("--template", choices=TEMPLATES, help="a grid world of many worlds, in NumPy or torch")
    parser.add_argument("--kind", choices=("solve", "build"), default="solve", help="who owns the environment")
    parser.add_argument("--metric", metavar="NAME", help="the figure that decides (default: return or success_rate)")
    parser.add_argument("--max-steps", type=int, metavar="N", help="the most steps of one episode")
    parser.add_argument("--solved", metavar="CONDITION", help="when an episode is solved, e.g. 'return >= 475'")
    parser.add_argument("--ladder", metavar="T/E,…", help="rungs as train/eval episodes (default: 12/8,32/8,…)")


def run(args: Args) -> Data:
    from rlx.loop.lab.new_lab import LabWishes, new_lab

    if args.env and args.template:
        raise UsageError("--env and --template exclude each other", hint="leave out one of them")
    if args.env and args.kind == "build":
        raise UsageError("in a build lab the agent builds the environment", hint="--kind build --template batched")
    if args.kind == "build" and not args.template:
        args.template = "batched"
    given = {"template": args.template, "env_id": args.env, "metric": args.metric, "max_steps": args.max_steps,
             "solved": args.solved, "ladder": _ladder(args.ladder)}  # fmt: skip
    wishes = LabWishes(kind=args.kind, **{key: value for key, value in given.items() if value})
    lab = new_lab(Path(args.name), wishes)
    names = sorted(path.relative_to(lab.root).as_posix() for path in lab.root.rglob("*") if _is_shown(path, lab.root))
    return {
        "lab": lab.name,
        "kind": lab.config.kind,
        "rung": lab.rung.name,
        "files": names,
        "next": f"cd {shlex.quote(args.name)}; edit program.md, lab.yaml and evaluator/; then: rlx lab approve",
    }


def _is_shown(path: Path, root: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
    return path.is_file() and not hidden


def _ladder(text: str | None) -> tuple[tuple[int, int], ...]:
    rungs = []
    for part in filter(None, (text or "").split(",")):
        train, sign, played = part.partition("/")
        if not (sign and train.strip().isdigit() and played.strip().isdigit()):
            raise UsageError(f"--ladder: `{part}` is not TRAIN/EVAL", hint="for example --ladder 12/8,32/8,64/12")
        rungs.append((int(train), int(played)))
    return tuple(rungs)


def render(data: Data) -> str:
    shown = [name for name in data["files"] if not name.startswith(RUNGS)]
    return labelled({
        "lab": f"{data['lab']} ({data['kind']}, rung {data['rung']})", "files": ", ".join(shown), "next": data["next"],
    })  # fmt: skip
