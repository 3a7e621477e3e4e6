"""Propose a candidate: one bounded change with a hypothesis, from a JSON file or from options.

A code change gets its own worktree. Edit the files there (or give --patch), then run `rlx check candidate`.

--withdraw removes a candidate that was not tried; nothing recommends it any more.

Example: rlx propose --kind hyperparameter --hypothesis "a larger step learns faster" -s algo.learning_rate=0.001
         rlx propose --file candidate.json
         rlx propose --withdraw c002 --why "its key does not exist"
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from rlx import TYPE_CHECKING
from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser, add_settings, add_study_option, find_study
from rlx.hosts.cli.output import labelled
from rlx.study.candidate.candidate import Kind

if TYPE_CHECKING:
    from rlx.config.yaml_lines import Document
    from rlx.study.study_folder import Study


def arguments(parser: Parser) -> None:
    add_proposal(parser)
    parser.add_argument("--withdraw", metavar="CANDIDATE", help="withdraw a candidate that was not tried")
    parser.add_argument("--why", default="", metavar="TEXT", help="why it is withdrawn")


def add_proposal(parser: Parser) -> None:
    """Add the options that describe a candidate."""
    parser.add_argument("-f", "--file", type=Path, metavar="FILE", help="JSON; `rlx schema candidate` has its schema")
    parser.add_argument("--idea", metavar="IDEA", help="an idea by its name, as `rlx next` lists it")
    parser.add_argument("--kind", choices=get_args(Kind), help="the kind of change")
    parser.add_argument("--hypothesis", metavar="TEXT", help="why the change should help")
    parser.add_argument("--predicts", type=float, metavar="X", help="the expected change of the metric")
    add_settings(parser)
    parser.add_argument("--record", action="append", default=[], metavar="NAME=TEXT", help="a record the kind needs")
    parser.add_argument("--patch", type=Path, metavar="FILE", help="a code change as a git patch")
    add_study_option(parser)


def run(args: Args) -> Data:
    from rlx.loop.study.propose import propose, withdraw

    study = find_study(args.study)
    if args.withdraw:
        return withdraw(study, args.withdraw, why=args.why)
    return propose(study, read_proposal(args, study), patch=args.patch)


def read_proposal(args: Args, study: Study) -> Document | Data:
    """Return the proposal that a file, an idea or the options describe."""
    from rlx.loop.study import propose

    if args.file and (args.kind or args.hypothesis or args.set or args.record or args.predicts is not None):
        raise UsageError("--file excludes the options of a proposal", hint="leave out the other options, or --file")
    if args.file:
        return propose.read_proposal(args.file)
    if args.idea:
        from rlx.loop.study.agent.ideas import find_idea

        return find_idea(study, args.idea).proposal()
    if not (args.kind and args.hypothesis):
        raise UsageError("a candidate needs --kind and --hypothesis", hint="rlx propose --help shows an example")
    return _document(args)


def _document(args: Args) -> Data:
    from rlx.config import yaml_lines

    changes = {key: yaml_lines.value(text, source=f"-s {key}") for key, text in map(_pair, args.set)}
    document = {"kind": args.kind, "hypothesis": args.hypothesis, "changes": changes}
    if args.predicts is not None:
        document["predicts"] = args.predicts
    return {**document, "records": dict(map(_pair, args.record))}


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise UsageError(f"`{text}` is not KEY=VALUE", hint="-s algo.learning_rate=0.001")
    return key.strip(), value


def render(data: Data) -> str:
    if "was" in data:
        return labelled({"withdrawn": f"{data['candidate']} ({data['was']})", "why": data["why"],
                         "next": data["command"]})  # fmt: skip
    return labelled({
        "candidate": f"{data['candidate']} ({data['kind']}, builds on {data['builds_on']})",
        "worktree": data["worktree"],
        "note": data["notes"],
        "next": data["command"],
    })  # fmt: skip
