"""Show a contract's eight points on one screen: what is settled, what is open, what the budget affords.

Example: rlx study show
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.hosts.cli.output import paint
from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="another study than the one in use")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.loop.overview import noticed
    from rlx.study.study import find

    return noticed(find(project.root(), args.study))


def render(data: dict[str, Any]) -> str:
    return f"{screen(data)}\nnext: {data['command']}"


def screen(data: dict[str, Any]) -> str:
    """Return all that a contract says, as it is read before it is approved."""
    lines = [f"study: {data['task']}/{data['study']} ({data['status']})", ""]
    for point in data["points"]:
        mark = paint("settled", "green") if point["settled"] else paint("open", "red")
        lines.append(f"{point['number']}. {point['title']}  [{mark}]")
        lines += [f"     {line}" for line in point["lines"]]
        lines += [f"     open: {why}" for why in point["problems"]]
        lines += [f"     note: {note}" for note in point["notes"]]
    lines += ["", f"rehearsal: {data['rehearsal']}"]
    lines += [f"contract: {data['file']} (sha256 {data['sha256'][:16]})"]
    return "\n".join(lines)
