"""Write a note on a run; it replaces the one before. An empty text removes it.

Example: rlx note cartpole_ppo_001 "clip range 0.1 was too small"
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.runs import project
from rlx.runs.run import find


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="a run's name")
    parser.add_argument("text", nargs="+", help="what to remember")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.runs import store

    noted = store.note(find(args.run, root=project.root()), " ".join(args.text).strip())
    return {"run": noted.name, "note": noted.note}


def render(data: dict[str, Any]) -> str:
    return f"{data['run']}: {data['note'] or 'no note'}"
