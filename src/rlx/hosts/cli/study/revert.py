"""Take a candidate back that advanced or was confirmed: head and incumbent fall to what they were before it.

Example: rlx study revert c004 --why "it limps on gravel"
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("candidate", help="a candidate's id")
    parser.add_argument("--why", required=True, metavar="TEXT", help="the reason, kept in the ledger")
    parser.add_argument("--study", metavar="STUDY", help="another study than the one in use")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.loop.proposals import revert
    from rlx.study.study import find

    return revert(find(project.root(), args.study), args.candidate, why=args.why)


def render(data: dict[str, Any]) -> str:
    lines = [
        f"taken back: {data['candidate']}, {data['was']} ({data['says']}): {data['hypothesis']}",
        f"why: {data['why']}",
        *(f"{name}: {_moved(data[f'{name}_before'], data[name])}" for name in ("head", "incumbent")),
    ]
    return "\n".join([*lines, "next: rlx next"])


def _moved(before: str | None, after: str | None) -> str:
    return (before or "–") if before == after else f"{before or '–'} → {after or '–'}"
