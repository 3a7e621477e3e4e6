"""Recompute every number of a study from raw episodes and hashes: scores, weights, decisions, the evaluator's copy.

Exit code 6 where anything is other than the ledger says.

Example: rlx study verify
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.errors import EvidenceInvalid
from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="another study than the one in use")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.loop.verification import verify
    from rlx.study.study import find

    found = verify(find(project.root(), args.study))
    return {**found, "exit_code": EvidenceInvalid.exit_code if found["problems"] else 0}


def render(data: dict[str, Any]) -> str:
    lines = [f"checked: {count} {what}" for what, count in data["checked"].items()]
    lines += [f"wrong: {one}" for one in data["problems"]]
    verdict = "every figure is what its files say" if not data["problems"] else "figures that do not hold up"
    return "\n".join([*lines, verdict, f"next: {data['command']}"])
