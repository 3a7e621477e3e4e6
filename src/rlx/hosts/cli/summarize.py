"""Summarise a run, or the runs of this project, in a few lines: what came out, and what failed.

Without RUN it is the whole project; --since leaves out what is older: a time span (2h, 3d) or a day (2026-01-31).

Example: rlx summarize cartpole_ppo_001
         rlx summarize --since 2d
"""

from __future__ import annotations

import argparse
import re
import time
from typing import Any

from rlx.errors import UsageError
from rlx.hosts.cli import words
from rlx.hosts.cli.output import table
from rlx.runs import project
from rlx.runs.run import Run, find, names

MOST = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", help="a run's name; without it, all runs of the project")
    parser.add_argument("--since", metavar="TIME", help="runs made since: 2h, 3d, or 2026-01-31")
    parser.add_argument("--all", action="store_true", help=f"show every run, not the newest {MOST}")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.diagnose.reading import read
    from rlx.diagnose.summarize import summarize, summarize_all

    root = project.root()
    if args.run:
        if args.since:
            raise UsageError("--since chooses among the project's runs", hint="rlx summarize --since 2d")
        return summarize(read(find(args.run, root=root)))
    oldest = _moment(args.since) if args.since else 0.0
    found = [Run(project.runs_folder(root) / name) for name in names(root)]
    chosen = sorted((one for one in found if _created(one) >= oldest), key=_created, reverse=True)
    told = summarize_all([read(one) for one in chosen])
    return {**told, "total": len(chosen), "since": args.since, "is_all": args.all}


def _created(run: Run) -> float:
    try:
        return float(run.metadata.get("created") or 0.0)
    except (OSError, ValueError, TypeError):
        return 0.0


def _moment(text: str) -> float:
    """Read a day, or a time span before now."""
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        try:
            return time.mktime(time.strptime(text, "%Y-%m-%d"))
        except ValueError:
            raise UsageError(f"--since {text}: no such day", hint="--since 2026-01-31") from None
    return time.time() - words.timespan(text)


def render(data: dict[str, Any]) -> str:
    return _project(data) if "runs" in data else _run(data)


def _run(data: dict[str, Any]) -> str:
    states = ", ".join(f"{count} {state}" for state, count in data["states"].items()) or "no seeds"
    lines = [
        f"run: {data['run']} ({data['algo'] or 'unknown algorithm'} on {data['env'] or 'unknown environment'})",
        f"seeds: {states}",
        f"score: {words.figure(data['score'])} (random policy {words.figure(data['random'])})",
        f"what happened: {data['line']}",
        f"health: {data['health']}" + (f" ({', '.join(data['findings'])})" if data["findings"] else ""),
        *(f"missing: {what}" for what in data["missing"]),
    ]
    return "\n".join([*lines, f"next: rlx diagnose {data['run']}"])


def _project(data: dict[str, Any]) -> str:
    if not data["runs"]:
        return f"no runs{' since ' + data['since'] if data['since'] else ''}\n\nnext: rlx ls"
    health = ", ".join(f"{count} {word}" for word, count in data["health"].items())
    shown = data["runs"] if data["is_all"] else data["runs"][:MOST]
    rows = [[run["run"], run["env"] or words.NOTHING, run["algo"] or words.NOTHING, run["answer"],
             words.figure(run["score"]), run["health"], " ".join(run["findings"][:2])] for run in shown]  # fmt: skip
    lines = [f"{words.plural(data['total'], 'run')}: {health}", *_best(data["best"]), ""]
    lines.append(table(["run", "env", "algo", "answer", "score", "health", "first findings"], rows, right=(4,)))
    lines += [f"{data['total'] - len(shown):,} older ones: rlx summarize --all"] if len(shown) < data["total"] else []
    worst = next((run["run"] for run in data["runs"] if run["health"] == "needs attention"), data["runs"][0]["run"])
    return "\n".join([*lines, "", f"next: rlx diagnose {worst}"])


def _best(best: dict[str, dict[str, Any]]) -> list[str]:
    return [f"best on {env}: {words.figure(one['score'])} ({one['run']}; random policy {words.figure(one['random'])})"
            for env, one in best.items()]  # fmt: skip
