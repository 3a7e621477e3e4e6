"""Walk the whole path once with a candidate that changes nothing: worktree, sandbox, training, evaluator, decision.

It trains a few steps from the same host and in the same sandbox that an agent's jobs will have. Every step is told as
it is taken (--json has them all). Exit code 1 where one fails: which, the end of its log, and where the rest is. Its
traces stay until the next rehearsal, which starts without them.

Example: rlx study rehearse
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.hosts.cli.output import say
from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", nargs="?", metavar="STUDY", help="another study than the one in use")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.loop.proceed import next_step
    from rlx.loop.rehearsal import Rehearsal
    from rlx.study.study import find

    study = find(project.root(), args.study)
    walked = Rehearsal(study, say=say).walk()
    return {**walked, "command": next_step(study).command, "exit_code": 0 if walked["ok"] else 1}


def render(data: dict[str, Any]) -> str:
    following = f"next: {data['command']}"
    if data["ok"]:
        return f"rehearsed: {len(data['checks'])} steps went well, the whole path works\n{following}"
    *well, failed = data["checks"]
    names = [*(one["name"] for one in well), f"[{failed['name']}]", *data["path"][len(data["checks"]) :]]
    return "\n".join([
        f"not rehearsed: {failed['name']} failed ({' → '.join(names)})",
        f"failed: {failed['name']}: {failed['says']}",
        *([f"hint: {failed['hint']}"] if "hint" in failed else []),
        *_traces(data),
        following,
    ])  # fmt: skip


def _traces(data: dict[str, Any]) -> list[str]:
    """Lay out the end of the log of what failed, and where the rest is."""
    if "log" not in data:
        return []
    return [
        f"log: {data['log']}",
        *(f"  | {line}" for line in data["tail"] or ["(empty)"]),
        f"all of it: {data['reads']}",
    ]
