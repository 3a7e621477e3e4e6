"""Print what the package has to say on a topic: a skill or one of its references; without one, list them.

Example: rlx docs
         rlx docs contract
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.hosts.cli.output import table


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", nargs="?", help="a skill or a reference")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.hosts import shipped

    if args.topic is None:
        rows = [{"topic": one.name, "skill": one.skill, "title": one.title} for one in shipped.topics()]
        return {"topics": rows, "next": "rlx docs TOPIC"}
    found = shipped.topic(args.topic)
    return {"topic": found.name, "skill": found.skill, "title": found.title, "text": found.text}


def render(data: dict[str, Any]) -> str:
    if "text" in data:
        return str(data["text"])
    rows = [[row["topic"], row["title"]] for row in data["topics"]]
    return f"{table(['topic', 'what it is about'], rows)}\nnext: {data['next']}"
