"""Approve the lab as its files are now: rules, mission and evaluator. A change of one of them later stops every launch.

Edits since `rlx lab new` are committed first. An asserted approval is by anyone on this account; for a signed one, use
`rlx study approve STUDY --key FILE`.

Example: rlx lab approve
         rlx lab approve --yes --by alice
"""

from __future__ import annotations

import getpass
import sys

from rlx.errors import Refused
from rlx.hosts.cli.arguments import Args, Data, Parser
from rlx.hosts.cli.format import when
from rlx.hosts.cli.output import labelled, say


def arguments(parser: Parser) -> None:
    parser.add_argument("--by", metavar="NAME", help="who approves (default: this account)")
    parser.add_argument("--yes", action="store_true", help="confirm that you have read lab.yaml and program.md")


def run(args: Args) -> Data:
    from rlx.loop.lab.lab_folder import Lab
    from rlx.loop.lab.new_lab import approve_lab

    lab = Lab.open()
    if not args.yes:
        _ask(lab.name)
    data = approve_lab(lab, by=args.by or getpass.getuser())
    fields = {key: data[key] for key in ("level", "by", "expires", "affords", "forgeable")}
    return {"lab": lab.name, "rung": lab.rung.name, **fields, "next": "rlx lab brief, or rlx lab run"}


def _ask(name: str) -> None:
    if not sys.stdin.isatty():
        hint = "read lab.yaml, program.md and evaluator/, then run the same command with --yes"
        raise Refused("no person at a terminal has read the lab's rules", hint=hint)
    say(f"type the lab's name ({name}) to approve lab.yaml, program.md and evaluator/ as they are")
    if sys.stdin.readline().strip() != name:
        raise Refused("not approved", hint="rlx lab approve")


def render(data: Data) -> str:
    return labelled({
        "approved": f"lab {data['lab']} at rung {data['rung']}, until {when(data['expires'])}",
        "level": f"{data['level']} by {data['by']}",
        "affords": data["affords"],
        "not ruled out": data["forgeable"],
        "next": data["next"],
    })  # fmt: skip
