"""Let the tool decide about a candidate, by the contract's rule, and write it into the ledger.

The decision is the rule's, not the caller's: advanced moves the head, confirmed the incumbent.

Example: rlx decide c001
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.hosts.cli.output import say
from rlx.hosts.cli.verdict import judged
from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("candidate", help="a candidate's id")
    parser.add_argument("--study", metavar="STUDY", help="another study than the one in use")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.loop.judgement import decide
    from rlx.study.study import find

    return decide(find(project.root(), args.study), args.candidate, say=say)


def render(data: dict[str, Any]) -> str:
    lines = [
        *judged(data),
        f"decision: {data['decision']}" + (f" (recorded as {data['recorded']})" if data["recorded"] else ""),
        f"study: the search ends by {data['stop_rule']}" if data["stop_rule"] else f"study: {data['study_decision']}",
    ]
    return "\n".join([*lines, f"next: {data['command']}"])
