"""Remove tags from a run.

Example: rlx untag cartpole_ppo_001 paper
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.hosts.cli.tag import render as render
from rlx.runs import project
from rlx.runs.run import find


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="a run's name")
    parser.add_argument("tags", nargs="+", metavar="TAG", help="one or more tags")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.runs import store

    untagged = store.untag(find(args.run, root=project.root()), *args.tags)
    return {"run": untagged.name, "tags": list(untagged.tags)}
