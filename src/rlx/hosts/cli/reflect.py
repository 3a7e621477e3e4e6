"""Reflect on a run's reward: what each term paid over training, and whether one is farmed while the task suffers.

Terms are what the environment reports in info["reward_terms"] (or under other names, declared with the wrapper
`reward_terms`). The answer is kept as reward_reflection.json in the run; it is derived and may be deleted.

Example: rlx reflect hopper_ppo_002
         rlx reflect hopper_ppo_002 --against hopper_ppo_001
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import Any

from rlx.hosts.cli.findings import lines_of
from rlx.hosts.cli.output import table
from rlx.hosts.cli.words import figure, plural, signed, sparkline
from rlx.runs import project

MARKS = {"dominates": "dominates", "is_saturated": "saturated", "is_flat": "flat"}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="a run's name")
    parser.add_argument("--against", metavar="RUN", help="say what changed since this run")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.diagnose.reflect import reflect
    from rlx.runs.run import find

    root = project.root()
    found = find(args.run, root=root)
    against = find(args.against, root=root) if args.against else None
    document, path = reflect(found, against=against)
    return {**document, "file": str(path.relative_to(root)) if path else None, "next": _next(document)}


def _next(document: dict[str, Any]) -> str:
    """Return the command that draws what was found: the largest term where training logged it, else the return."""
    largest = max(document["terms"], key=lambda term: float(term["share"]))["name"]
    is_logged = document["source"] == "training"
    return f"rlx plot {document['run']}" + (f" --metric {shlex.quote(f'reward/term/{largest}')}" if is_logged else "")


def render(data: dict[str, Any]) -> str:
    still = " (still training: so far)" if data["is_training"] else ""
    lines = [
        f"run: {data['run']}, {plural(len(data['seeds']), 'seed')}, {data['steps'][-1]:,} steps{still}",
        f"terms: from {data['source']}",
    ]
    lines += [_task_line(data["task"]), f"hacking risk: {data['hacking_risk']}", "", _term_table(data["terms"])]
    lines += [f"note: {note}" for note in data["notes"]]
    lines += ["", *lines_of(data["findings"]), *_against_lines(data.get("against"))]
    lines += ["", f"kept: {data['file']}" if data["file"] else "not kept: the run's folder cannot be written to"]
    return "\n".join([*lines, f"next: {data['next']}"])


def _task_line(task: dict[str, Any] | None) -> str:
    if task is None:
        return "task metric: none"
    known = [value for value in task["series"] if value is not None]
    return f"task metric: {task['metric']} {figure(known[0])} → {figure(task['end'])}  {_curve(task['series'])}"


def _term_table(terms: Sequence[dict[str, Any]]) -> str:
    header = ["term", "share", "min", "mean", "max", "with task", "per episode", ""]
    rows = []
    for term in terms:
        agreement = "–" if term["correlation"] is None else signed(round(term["correlation"], 2))
        figures = [figure(term[key]) for key in ("min", "mean", "max")]
        marks = " ".join(word for key, word in MARKS.items() if term[key])
        rows.append([term["name"], f"{term['share']:.0%}", *figures, agreement, _curve(term["series"]), marks])
    return table(header, rows, right=range(1, 6))


def _curve(values: Sequence[float | None]) -> str:
    return sparkline([float("nan") if value is None else value for value in values])


def _against_lines(against: dict[str, Any] | None) -> list[str]:
    if against is None:
        return []
    lines = ["", f"against {against['run']}:"]
    if against["task"]:
        lines.append(f"  task metric at the end: {' → '.join(figure(value) for value in against['task'])}")
    for name, change in against["terms"].items():
        shares = " → ".join(f"{value:.0%}" for value in change["share"])
        lines.append(
            f"  {name}: share {shares}, mean {' → '.join(figure(value) for value in change['mean'])} an episode"
        )
    lines += [f"  {name}: new" for name in against["appeared"]] + [f"  {name}: gone" for name in against["gone"]]
    lines += [f"  finding gone: {rule}" for rule in against["findings"]["gone"]]
    return lines + [f"  finding new: {rule}" for rule in against["findings"]["new"]]
