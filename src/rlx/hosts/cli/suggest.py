"""Suggest what to run next, based on a run's findings. The command that most likely helps comes first.

Every command works from this folder without changes.

Example: rlx suggest cartpole_ppo_001
"""

import os
import shlex

from rlx.hosts.cli.arguments import Args, Data, add_runs, for_each_run, render_each
from rlx.hosts.cli.output import labelled
from rlx.runs.run import SNAPSHOT, Run

arguments = add_runs


def run(args: Args) -> Data:
    return for_each_run(args.run, _suggestions)


def _suggestions(run: Run) -> Data:
    from rlx.diagnose.analyze import analyze, health, missing
    from rlx.diagnose.diagnose import diagnose
    from rlx.diagnose.load_case import read_case
    from rlx.diagnose.suggest import advise_script, suggest

    case = read_case(run)
    diagnosis = diagnose(case)
    commands = suggest(case, diagnosis, snapshot=os.path.relpath(run.path / SNAPSHOT))
    return {
        "run": case.name,
        "health": health(diagnosis.findings, analyze(case).answer),
        "commands": [{"command": shlex.join(row.words), "why": row.why, "rule": row.rule} for row in commands],
        "advice": list(advise_script(case, diagnosis)),
        "missing": list(missing(case)),
    }


def render(data: Data) -> str:
    return render_each(_render, data)


def _render(data: Data) -> str:
    blocks = [labelled({"run": data["run"], "health": data["health"]})]
    blocks += data["advice"]
    for number, row in enumerate(data["commands"], start=1):
        reason = ": ".join(filter(None, [row["rule"], row["why"]]))
        blocks.append(f"{number}. {row['command']}\n   {reason}")
    if not data["commands"]:
        blocks.append("nothing to suggest: the run has no data yet")
    blocks.append(labelled({"missing": data["missing"]}))
    return "\n\n".join(filter(None, blocks))
