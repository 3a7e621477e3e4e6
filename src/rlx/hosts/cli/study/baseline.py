"""Train and measure the seeds that every candidate is compared with, and say how noisy they are.

Example: rlx study baseline
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.errors import Interrupted
from rlx.hosts.cli.output import say
from rlx.hosts.cli.words import figure
from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="another study than the one in use")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.hosts.cli import attach
    from rlx.hosts.cli.progress import follow
    from rlx.loop.pool import fill
    from rlx.study.study import find

    attach.hear_signals()
    try:
        return fill(find(project.root(), args.study), say=say, follow=follow)
    except KeyboardInterrupt:
        raise Interrupted("not waited for any longer: what trains goes on by itself", hint="rlx next") from None


def render(data: dict[str, Any]) -> str:
    lines = [
        f"baseline: {data['metric']} {figure(data['mean'])} ± {figure(data['sd'])} over {data['n']} seeds "
        f"({data['level']})",
        f"seeds: {', '.join(figure(score) for score in data['seeds'].values())}",
    ]
    found = list(data["finds"].items())
    lines += [f"warning: {one}" for one in data["warnings"]]
    if found and not data["warnings"]:
        lines.append(f"smallest difference found 4 times in 5: {figure(found[0][1])} at {found[0][0]} seeds a side")
    return "\n".join([*lines, f"next: {data['command']}"])
