"""Make a study the one that commands mean when none is named, and write anew what the hosts' hooks read of it.

Example: rlx study use faster
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", help="STUDY or TASK/STUDY")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.loop.overview import tell_hooks
    from rlx.study.study import find, use

    study = find(project.root(), args.study)
    use(study)
    tell_hooks(study)
    return {"task": study.task_name, "study": study.name}


def render(data: dict[str, Any]) -> str:
    return f"in use: {data['task']}/{data['study']}\nnext: rlx next"
