"""Say what to do next in a study: the recommended action, the other legal ones, what was tried, what is left.

Everything comes from the state on disk, so whoever starts cold takes the same step.

Example: rlx next
         rlx next trot --json
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.hosts.cli.output import table
from rlx.hosts.cli.words import duration, figure, plural, signed
from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="STUDY", help="another study than the one in use")
    parser.add_argument("--study", metavar="STUDY", help="the same")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.loop.proceed import brief
    from rlx.study.study import find

    return brief(find(project.root(), args.study or args.name))


def render(data: dict[str, Any]) -> str:
    left = data["left"]
    more = f"{plural(left['candidates'], 'candidate')}, {plural(left['claims'], 'claim')}"
    lines = [
        f"study: {data['task']}/{data['study']} ({data['status']})",
        f"head: {data['head']}   incumbent: {data['incumbent'] or '–'}",
        f"metric: {data['metric']}",
        f"left: {seeds(left)}, {duration(left['seconds'])} of training, {more}",
    ]
    if data["allowed"]["keys"] or data["allowed"]["paths"]:
        lines.append(f"may change: {', '.join([*data['allowed']['keys'], *data['allowed']['paths']])}")
    if data["recent"]:
        lines += ["", recent(data["recent"]), ""]
    lines += [f"finding: {one}" for one in data["findings"]]
    lines.append(f"why: {data['why']}")
    lines += [f"or: {one['command']}" for one in data["also"]]
    return "\n".join([*lines, f"next: {data['command']}"])


def seeds(left: dict[str, Any]) -> str:
    """Spell the seeds that are left, and where the time pays for fewer, how many."""
    payable = left["payable_seeds"]
    told = f" (time for {payable}: each may take the longest that the contract gives)"
    return f"{left['seeds']} seeds" + (told if payable < left["seeds"] else "")


def recent(rows: list[dict[str, Any]]) -> str:
    """Lay out the last candidates and what came of them."""
    cells = [
        [
            row["candidate"],
            row["standing"],
            f"{signed(row['effect'])} v {row['against']}" if row["effect"] is not None else "–",
            figure(row["p"]) if row["p"] is not None else "–",
            row["hypothesis"],
        ]
        for row in rows
    ]
    return table(["candidate", "state", "effect", "p", "hypothesis"], cells, right=(2, 3))
