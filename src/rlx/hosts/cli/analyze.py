"""Show on one screen what happened in a run, when, and how sure that is.

Every seed's returns are drawn on one scale. `sure` is 1 minus the chance that noise alone looks like this.

Example: rlx analyze cartpole_ppo_001
"""

from __future__ import annotations

import argparse
from typing import Any

from rlx.hosts.cli import words
from rlx.hosts.cli.output import table
from rlx.runs import project
from rlx.runs.run import find

MOST_SEEDS = 12


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="a run's name")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.diagnose.analyze import analyze, verdict
    from rlx.diagnose.diagnose import diagnose
    from rlx.diagnose.reading import read

    case = read(find(args.run, root=project.root()))
    told, found = analyze(case), diagnose(case)
    return {
        "run": case.name,
        "env": case.setting("env.id"),
        "algo": case.algorithm,
        "planned_steps": case.planned_steps,
        "random": case.random.mean if case.random else None,
        "health": verdict(found.findings, told.answer),
        **told.document(),
        "findings": [{"rule": one.rule, "severity": one.severity, "claim": one.claim} for one in found.findings],
        "next": f"rlx diagnose {case.name}" if found.findings else f"rlx suggest {case.name}",
    }


def render(data: dict[str, Any]) -> str:
    lines = [f"run: {data['run']} ({data['algo'] or 'unknown algorithm'} on {data['env'] or 'unknown environment'})",
             f"health: {data['health']}", f"what happened: {data['line']}"]  # fmt: skip
    lines += ["", _seeds(data)] if data["seeds"] else []
    lines += ["", *(f"found: {one['rule']} ({one['severity']}): {one['claim']}" for one in data["findings"])]
    lines += [f"missing: {what}" for what in data["missing"]]
    return "\n".join([*lines, f"next: {data['next']}"]).replace("\n\n\n", "\n\n")


def _seeds(data: dict[str, Any]) -> str:
    finite = [value for seed in data["seeds"] for value in seed["curve"] if value - value == 0]
    scale = (min(finite), max(finite)) if finite else None
    rows = [
        [str(seed["seed"]), seed["status"], words.steps(seed["step"], data["planned_steps"]), seed["answer"],
         words.figure(seed["start"]), words.figure(seed["end"]), words.figure(seed["report"]), _sure(seed),
         words.sparkline(seed["curve"], width=40, scale=scale)]
        for seed in data["seeds"][:MOST_SEEDS]
    ]  # fmt: skip
    header = ["seed", "status", "step", "answer", "from", "to", "report", "sure", ""]
    text = table(header, rows, right=(0, 2, 4, 5, 6, 7))
    left = len(data["seeds"]) - len(rows)
    return text + (f"\nand {words.plural(left, 'seed')} more (--json has all)" if left > 0 else "")


def _sure(seed: dict[str, Any]) -> str:
    return words.NOTHING if seed["answer"] in ("flat", "unknown", "unstable") else f"{seed['sure']:.0%}"
