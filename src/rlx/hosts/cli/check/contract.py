"""Say which of a contract's eight points are open, and what its budget affords: seeds, candidates, detectable effect.

Exit code 4 while a point is open.

Example: rlx check contract
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.errors import Refused
from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="another study than the one in use")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.loop.overview import overview
    from rlx.study.study import find

    found = overview(find(project.root(), args.study))
    return {**found, "exit_code": 0 if found["status"] != "blocked" else Refused.exit_code}


def render(data: dict[str, Any]) -> str:
    lines = [f"{data['study']}: {data['status']}", *(f"open: {one}" for one in data["missing"])]
    lines += [f"note: {one}" for one in data["notes"]]
    lines += [f"affords: {one}" for one in data["affords"]]
    return "\n".join([*lines, f"next: {data['command']}"])
