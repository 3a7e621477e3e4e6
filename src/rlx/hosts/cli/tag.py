"""Tag a run.

Example: rlx tag cartpole_ppo_001 baseline paper
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.errors import UsageError
from rlx.runs import project
from rlx.runs.run import find


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="a run's name")
    parser.add_argument("tags", nargs="+", metavar="TAG", help="one or more tags")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.runs import store

    for tag in args.tags:
        if not tag.strip() or not tag.isprintable():
            raise UsageError(f"{tag!r} is no tag", hint="a tag is a word or a few, on one line")
    tagged = store.tag(find(args.run, root=project.root()), *args.tags)
    return {"run": tagged.name, "tags": list(tagged.tags)}


def render(data: dict[str, Any]) -> str:
    return f"{data['run']}: {' '.join(data['tags']) or 'no tags'}"
