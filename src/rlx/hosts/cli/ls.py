"""List the project's runs, newest first.

PATTERN is a part of a name, or a pattern such as 'cartpole_*'.
Returns (or what `eval.metric` names) are those of the final policies' own report evaluation, mean ± standard deviation
over seeds; * marks training returns of runs that have no report yet.

Example: rlx ls --env CartPole --sort return
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from rlx.errors import UsageError
from rlx.hosts.cli import words
from rlx.hosts.cli.output import table
from rlx.runs import index, project
from rlx.runs.run import COMMAND_BACKEND, SCRIPT_BACKEND

PAGE = 50


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pattern", nargs="?", help="a part of the name, or a pattern")
    parser.add_argument("--env", help="a part of the environment's id")
    parser.add_argument("--algo", help="an algorithm")
    parser.add_argument("--status", help=", ".join(index.STATES))
    parser.add_argument("--tag", help="a tag")
    parser.add_argument("--sort", default="created", metavar="KEY", help=", ".join(index.SORT_KEYS))
    parser.add_argument("--reverse", action="store_true", help="the other way round")
    parser.add_argument("--group", action="store_true", help="pool runs whose configs differ in nothing but the seeds")
    parser.add_argument("--limit", type=int, default=PAGE, metavar="N", help=f"show N runs ({PAGE})")
    parser.add_argument("--offset", type=int, default=0, metavar="N", help="leave out the first N")
    parser.add_argument("--all", action="store_true", help="show every run")


def run(args: argparse.Namespace) -> dict[str, Any]:
    if args.limit < 1 or args.offset < 0:
        raise UsageError("--limit is at least 1 and --offset at least 0", hint="rlx ls --limit 10")
    chosen = {key: getattr(args, key) for key in ("env", "algo", "status", "tag", "sort", "reverse")}
    page = index.summaries(
        project.root(),
        name=args.pattern,
        limit=None if args.all or args.group else args.limit,
        offset=0 if args.group else args.offset,
        watch=_Watch(),
        **chosen,
    )
    if not args.group:
        return {"runs": page.rows, "total": page.total, "next": _next(args, page.total), "filter": _filter(args)}
    groups = grouped(page.rows)
    shown = groups if args.all else groups[args.offset : args.offset + args.limit]
    return {"groups": shown, "total": len(groups), "next": _next(args, len(groups)), "filter": _filter(args)}


class _Watch:
    """Says on a terminal how far the reading is, once it has taken a second."""

    def __init__(self) -> None:
        self._next = time.monotonic() + 1.0
        self._is_shown = False

    def __call__(self, done: int, total: int) -> None:
        is_due = time.monotonic() >= self._next or (self._is_shown and done + 1 == total)
        if is_due and sys.stderr.isatty():
            self._next, self._is_shown = time.monotonic() + 0.2, True
            is_last = done + 1 == total
            sys.stderr.write("\r\x1b[K" if is_last else f"\r\x1b[Kreading new and changed runs: {done:,} of {total:,}")
            sys.stderr.flush()


def _next(args: argparse.Namespace, total: int) -> str | None:
    """Return the command that shows the rest, or None where nothing is left."""
    following = args.offset + args.limit
    if args.all or following >= total:
        return None
    import shlex

    words_given = _given(args)
    words_given += ["--sort", args.sort] if args.sort != "created" else []
    words_given += [f"--{flag}" for flag in ("reverse", "group") if getattr(args, flag)]
    words_given += ["--limit", str(args.limit)] if args.limit != PAGE else []
    return shlex.join(["rlx", "ls", *words_given, "--offset", str(following)])


def _given(args: argparse.Namespace) -> list[str]:
    """Return the words that chose among the runs."""
    given = [("--env", args.env), ("--algo", args.algo), ("--status", args.status), ("--tag", args.tag)]
    return ([args.pattern] if args.pattern else []) + [word for pair in given if pair[1] for word in pair]


def _filter(args: argparse.Namespace) -> str:
    import shlex

    return shlex.join(_given(args))


def grouped(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Pool the seeds of runs with the same config and the same kind of return, in the order of their first run."""
    from rlx.runs.summary import spread

    pools: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        source, metric = (row["return"]["source"], row["return"]["metric"]) if row["return"] else ("", "")
        pools.setdefault((row["group_hash"] or row["name"], source, metric), []).append(row)
    groups = []
    for (_, source, metric), members in pools.items():
        values = [float(value) for row in members if row["return"] for value in row["return"]["values"]]
        groups.append(
            {
                "runs": [row["name"] for row in members],
                "env": members[0]["env"],
                "algo": members[0]["algo"],
                "backend": members[0].get("backend"),
                "group_hash": members[0]["group_hash"],
                "seeds": sum(row["seeds"] for row in members),
                "planned_steps": members[0]["planned_steps"],
                "return": spread(values, source=source, metric=metric),
            }
        )
    return groups


def render(data: dict[str, Any]) -> str:
    rows = data.get("groups", data.get("runs"))
    if not rows:
        return _nothing(data["filter"])
    lines = [_group_table(rows) if "groups" in data else _run_table(rows)]
    lines += [f"{row['name']} cannot be read: {row['reason']}" for row in rows if row.get("status") == "broken"]
    told = [row for row in rows if row["return"] and "rollout" in row["return"]["source"]]
    if told:
        lines.append(f"* training return{_measured({str(row.get('backend')) for row in told})}")
    if data["next"]:
        lines.append(f"{len(rows):,} of {data['total']:,} shown; the rest: {data['next']}  (or --all)")
    return "\n".join(lines)


def _measured(backends: set[str]) -> str:
    """Say how final policies are measured; of runs of commands rlx cannot."""
    if backends <= {SCRIPT_BACKEND, COMMAND_BACKEND}:
        return "; measure the final policies in the script, run.evaluate(policy)" if SCRIPT_BACKEND in backends else ""
    return "; measure the final policies with rlx eval RUN"


def _nothing(asked: str) -> str:
    if asked:
        return f"no run matches {asked}\n\nnext: rlx ls"
    if not (project.root() / project.MARKER).is_file():
        return "no runs, and no project here (no rlx.toml in this folder or above)\n\nnext: rlx init NAME"
    return "no runs\n\nnext: rlx train CONFIG"


def _run_table(rows: list[dict[str, Any]]) -> str:
    header = ["name", "status", "env", "algo", "seeds", "steps", _heading(rows), "best", "time", "created", "tags"]
    return table(header, [_run_cells(row) for row in rows], right=(4, 5, 6, 7, 8))


def _run_cells(row: dict[str, Any]) -> list[str]:
    score = row["return"]
    return [
        row["name"],
        row["status"],
        row["env"] or words.NOTHING,
        row["algo"] or words.NOTHING,
        str(row["seeds"]),
        words.steps(row["steps"], row["planned_steps"]),
        words.spread(score) + _mark(score),
        words.figure(score["best"]) if score else words.NOTHING,
        words.duration(row["seconds"]),
        words.when(row["created"]),
        " ".join(row["tags"]),
    ]


def _heading(rows: list[dict[str, Any]]) -> str:
    """Return the name of the column of scores: where not all are returns, each cell says what it is."""
    is_return = all(row["return"]["metric"] == "return" for row in rows if row["return"])
    return "return" if is_return else "score"


def _mark(score: dict[str, Any] | None) -> str:
    if not score:
        return ""
    unit = "" if score["metric"] == "return" else f" {score['metric']}"
    return unit + ("*" if "rollout" in score["source"] else "")


def _group_table(rows: list[dict[str, Any]]) -> str:
    header = ["env", "algo", "seeds", "steps", _heading(rows), "best", "runs"]
    return table(header, [_group_cells(row) for row in rows], right=(2, 3, 4, 5))


def _group_cells(row: dict[str, Any]) -> list[str]:
    score = row["return"]
    return [
        row["env"] or words.NOTHING,
        row["algo"] or words.NOTHING,
        str(row["seeds"]),
        f"{row['planned_steps']:,}",
        words.spread(score) + _mark(score),
        words.figure(score["best"]) if score else words.NOTHING,
        " ".join(row["runs"]),
    ]
