"""Suggest what to run next on the strength of a run's findings, the likeliest to help first.

Every line is a command that works as it stands, from this folder.

Example: rlx suggest cartpole_ppo_001
"""

from __future__ import annotations

import argparse
import os
import shlex
from typing import Any

from rlx.runs import project
from rlx.runs.run import SNAPSHOT, find


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="a run's name")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.diagnose.analyze import analyze, missing, verdict
    from rlx.diagnose.diagnose import diagnose
    from rlx.diagnose.reading import read
    from rlx.diagnose.suggest import suggest

    found = find(args.run, root=project.root())
    case = read(found)
    diagnosis = diagnose(case)
    commands = suggest(case, diagnosis, snapshot=os.path.relpath(found.path / SNAPSHOT))
    return {
        "run": case.name,
        "health": verdict(diagnosis.findings, analyze(case).answer),
        "commands": [{"command": shlex.join(one.words), "why": one.why, "rule": one.rule} for one in commands],
        "missing": list(missing(case)),
    }


def render(data: dict[str, Any]) -> str:
    lines = [f"run: {data['run']}", f"health: {data['health']}"]
    for number, one in enumerate(data["commands"], start=1):
        lines += ["", f"{number}. {one['command']}", f"   {one['rule'] + ': ' if one['rule'] else ''}{one['why']}"]
    lines += ["", "nothing to run: the run holds nothing yet"] if not data["commands"] else []
    return "\n".join([*lines, *([""] if data["missing"] else []), *(f"missing: {what}" for what in data["missing"])])
