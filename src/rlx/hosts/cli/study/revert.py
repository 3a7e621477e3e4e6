"""Take a candidate back that advanced or was confirmed: head and incumbent fall to what they were before it.

Example: rlx study revert c004 --why "it limps on gravel"
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("candidate", help="a candidate's id")
    parser.add_argument("--why", default="taken back by hand", metavar="TEXT", help="the reason, kept in the ledger")
    parser.add_argument("--study", metavar="STUDY", help="another study than the one in use")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.loop.proposals import revert
    from rlx.study.study import find

    return revert(find(project.root(), args.study), args.candidate, why=args.why)


def render(data: dict[str, Any]) -> str:
    head = f"head: {data['head']}   incumbent: {data['incumbent'] or '–'}"
    return "\n".join([f"{data['candidate']} is taken back: {data['why']}", head, "next: rlx next"])
