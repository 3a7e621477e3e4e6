"""Walk the whole path once with a candidate that changes nothing: worktree, sandbox, training, evaluator, decision.

It trains a few steps from the same host and in the same sandbox that an agent's jobs will have. Every step is told as
it is taken (--json has them all). Exit code 1 where one fails.

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
    failed = [f"failed: {one['name']}: {one['says']}" for one in data["checks"] if not one["ok"]]
    told = f"{len(data['checks']) - len(failed)} steps went well"
    verdict = f"rehearsed: {told}, the whole path works" if data["ok"] else f"not rehearsed: {told}, then one failed"
    return "\n".join([verdict, *failed, f"next: {data['command']}"])
