"""Summarise a run, the runs that a pattern matches, or all runs of this project: results and failures.

Without RUN, rlx summarises the whole project. --since leaves out runs older than a time span (2h, 3d) or a day.

Example: rlx summarize cartpole_ppo_001
         rlx summarize 'cartpole_*'
         rlx summarize --since 2d
"""

import re
import time

from rlx.errors import UsageError
from rlx.hosts.cli.analyze import run_title
from rlx.hosts.cli.arguments import Args, Data, Parser, find_run, find_runs
from rlx.hosts.cli.format import NOTHING, counted, figure, in_brackets, timespan
from rlx.hosts.cli.output import labelled, table
from rlx.runs import project
from rlx.runs.run import Run, is_pattern, names
from rlx.runs.summary import UNREADABLE, created

MOST = 20


def arguments(parser: Parser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="a run, or a pattern: 'cartpole_*' (default: all runs)")
    parser.add_argument("--since", metavar="TIME", help="only runs created since: 2h, 3d, or 2026-01-31")
    parser.add_argument("--all", action="store_true", help=f"show every run, not only the newest {MOST}")


def run(args: Args) -> Data:
    from rlx.diagnose.load_case import read_case
    from rlx.diagnose.summarize import summarize, summarize_all

    if args.run and not is_pattern(args.run):
        if args.since:
            raise UsageError("--since chooses among the project's runs", hint="rlx summarize --since 2d")
        return summarize(read_case(find_run(args.run)))
    root = project.root()
    runs = find_runs([args.run]) if args.run else [Run(project.runs_folder(root) / name) for name in names(root)]
    oldest = _moment(args.since) if args.since else 0.0
    chosen = sorted((run for run in runs if _created(run) >= oldest), key=_created, reverse=True)
    summary = summarize_all([read_case(run) for run in chosen])
    return {**summary, "total": len(chosen), "since": args.since, "is_all": args.all}


def _created(run: Run) -> float:
    try:
        return created(run)
    except UNREADABLE:
        return 0.0


def _moment(text: str) -> float:
    """Read a day, or a time span before now."""
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return time.time() - timespan(text)
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%d"))
    except ValueError:
        raise UsageError(f"--since {text}: no such day", hint="--since 2026-01-31") from None


def render(data: Data) -> str:
    if "runs" in data:
        return _project(data)
    return labelled({
        "run": run_title(data),
        "seeds": ", ".join(f"{count} {state}" for state, count in data["states"].items()) or "none",
        data["metric"]: f"{figure(data['score'])}, mean over {counted(data['scored'], 'seed')}"
        f" (random policy {figure(data['random'])})",
        "what happened": data["line"],
        "health": data["health"] + in_brackets(", ".join(data["findings"])),
        "missing": data["missing"],
        "next": f"rlx diagnose {data['run']}",
    })  # fmt: skip


def _project(data: Data) -> str:
    runs = data["runs"]
    if not runs:
        since = f" since {data['since']}" if data["since"] else ""
        return f"no runs{since}\n\nnext: rlx ls"
    shown = runs if data["is_all"] else runs[:MOST]
    rows = [[run["run"], run["env"] or NOTHING, run["algo"] or NOTHING, run["differs"] or NOTHING, run["answer"],
             figure(run["score"]), run["metric"], run["health"], " ".join(run["findings"][:2])]
            for run in shown]  # fmt: skip
    health = ", ".join(f"{count} {word}" for word, count in data["health"].items())
    lines = [f"{counted(data['total'], 'run')}: {health}"]
    for env, best in data["best"].items():
        score = f"{best['metric']} {figure(best['score'])}"
        lines.append(f"best on {env}: {score} ({best['run']}; random policy {figure(best['random'])})")
    header = ["run", "env", "algo", "differs", "answer", "score", "metric", "health", "first findings"]
    lines += ["", table(header, rows, right=(5,))]
    if len(shown) < data["total"]:
        lines.append(f"{data['total'] - len(shown):,} older runs: rlx summarize --all")
    worst = next((run for run in runs if run["health"] == "needs attention"), runs[0])
    return "\n".join([*lines, "", f"next: rlx diagnose {worst['run']}"])
