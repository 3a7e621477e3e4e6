"""Prove a study's ledger: the chain from the first row to the last, legal moves only, every anchored head in it.

--anchor keeps the ledger's head in git, under refs/rlx/: from then on a rewritten ledger shows. Exit code 6 where the
ledger is not sound. What remains forgeable under one account is said.

Example: rlx study audit
         rlx study audit --anchor
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.errors import EvidenceInvalid
from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="another study than the one in use")
    parser.add_argument("--anchor", action="store_true", help="keep the ledger's head in git")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.loop.verification import audit
    from rlx.study.study import find

    found = audit(find(project.root(), args.study), is_anchored=args.anchor)
    return {**found, "exit_code": 0 if found["is_sound"] else EvidenceInvalid.exit_code}


def render(data: dict[str, Any]) -> str:
    lines = [
        f"ledger: {data['rows']} rows, {'sound' if data['is_sound'] else 'NOT sound'}",
        f"head: {data['head']}",
        f"anchored: {data['anchor'] or 'nowhere: a rewritten ledger would not show (--anchor)'}",
        *(f"wrong: {one}" for one in data["problems"]),
        *(f"note: {one}" for one in data["notes"]),
    ]
    return "\n".join([*lines, f"next: {data['command']}"])
