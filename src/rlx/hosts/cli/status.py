"""Show where a study stands: approval, budget, head and incumbent, open jobs, and every candidate.

Example: rlx status
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.hosts.cli.next import recent, seeds
from rlx.hosts.cli.words import duration
from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="another study than the one in use")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.loop.proceed import status
    from rlx.study.study import find

    return status(find(project.root(), args.study))


def render(data: dict[str, Any]) -> str:
    left = data["left"]
    reserved = f"reserved by jobs: {_amount(data['reserved'])}; " if data["jobs"] else ""
    lines = [
        f"study: {data['task']}/{data['study']}",
        f"contract: {data['status']}" + (f" ({'; '.join(data['missing'])})" if data["missing"] else ""),
        f"approval: {data['approval']}",
        f"metric: {data['metric']}",
        f"head: {data['head']}   incumbent: {data['incumbent'] or '–'}",
        f"spent: {_amount(data['spent'])}; {reserved}left: {seeds(left)}, {duration(left['seconds'])}",
    ]
    lines += [f"job: {job['run']} ({job['candidate']}, {job['phase']}, {job['state']})" for job in data["jobs"]]
    lines += [f"ledger: {one}" for one in data["violations"]]
    lines += [f"warning: {one}" for one in data["warnings"]]
    if data["candidates"]:
        lines += ["", recent(data["candidates"]), ""]
    return "\n".join([*lines, f"next: {data['command']}"])


def _amount(of: dict[str, Any]) -> str:
    return f"{of['seeds']} seeds, {duration(of['seconds'])}"
