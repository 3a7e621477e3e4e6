"""Approve a contract as it is, byte for byte: prints exactly what may be done, and by whom this could have been said.

Levels: asserted (anyone on this account), signed (--key, an ssh key that a signers file outside the project lists),
other user (--document FILE that another account owns). Off a terminal --yes says that it was read. An approval is void
after one changed byte, and expires. Exit code 4 below the contract's minimum, where a stronger one stands already, and
for a study that has stopped: --go-on lets it go on.

Example: rlx study approve
         rlx study approve --key ~/.ssh/id_ed25519_sk
"""

from __future__ import annotations

import argparse
import getpass
import sys
from pathlib import Path
from typing import Any

from rlx.errors import Refused, UsageError
from rlx.hosts.cli.output import plain, say
from rlx.hosts.cli.study import show
from rlx.hosts.cli.words import when
from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="another study than the one in use")
    parser.add_argument("--key", type=Path, metavar="FILE", help="sign with this ssh key")
    parser.add_argument("--document", type=Path, metavar="FILE", help="what another user has written")
    parser.add_argument("--by", metavar="NAME", help="who approves, for an asserted one (this account)")
    parser.add_argument("--go-on", action="store_true", help="let a study that has stopped go on")
    parser.add_argument("--yes", action="store_true", help="it was read; do not ask")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.loop.approving import approve
    from rlx.loop.overview import noticed
    from rlx.study.study import find

    if args.key and args.document:
        raise UsageError("--key and --document are two ways to approve", hint="leave one of them out")
    study = find(project.root(), args.study)
    shown = None if args.yes else _ask(noticed(study))
    return approve(
        study, by=args.by or getpass.getuser(), key=args.key, document=args.document, goes_on=args.go_on, shown=shown
    )


def _ask(overview: dict[str, Any]) -> str:
    """Show what is approved, have its name typed, and return its hash; off a terminal nobody is there to read it."""
    if not sys.stdin.isatty():
        raise Refused("nobody at a terminal has read the contract", hint="rlx study show, then the same with --yes")
    say(show.screen(plain(overview)))
    say(f"\ntype the study's name ({overview['study']}) to approve all of this")
    if sys.stdin.readline().strip() != overview["study"]:
        raise Refused("not approved", hint="rlx study show; the same again asks once more")
    return str(overview["sha256"])


def render(data: dict[str, Any]) -> str:
    lines = [
        f"approved: {data['task']}/{data['study']} until {when(data['expires'])}",
        f"level: {data['level']} by {data['by']}" + ("" if data["human"] else " (not shown to be a human)"),
        *([f"goes on after: {data['goes_on_after']}"] if data["goes_on_after"] else []),
        *(_permission(line) for point in data["points"] if point["point"] == "scope" for line in point["lines"]),
        *(f"note: {note}" for point in data["points"] for note in point["notes"]),
        f"rehearsal: {data['rehearsal']}",
        *(f"not ruled out: {one}" for one in data["forgeable"]),
        *(f"affords: {one}" for one in data["affords"]),
    ]
    return "\n".join([*lines, f"next: {data['command']}"])


def _permission(line: str) -> str:
    """Say a line of the scope as what it permits."""
    forbidden = line.removeprefix("forbidden: ")
    return f"may change: {line}" if forbidden == line else f"may not change: {forbidden}"
