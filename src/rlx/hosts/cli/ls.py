"""List the project's runs, newest first.

PATTERN is a part of a name, or a pattern such as 'cartpole_*'. The return (or the metric that `eval.metric` names) is
the mean ± standard deviation over seeds of the final policies' report evaluation. * marks training returns of runs
without a report.

`differs` says in which settings runs of the same environment and algorithm differ. --columns shows settings of your
choice instead.

Example: rlx ls --env CartPole --sort return
         rlx ls --columns algo.learning_rate,algo.gamma
"""

from rlx.errors import UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser
from rlx.hosts.cli.format import NOTHING, duration, figure, spread, steps, when
from rlx.hosts.cli.output import table
from rlx.hosts.cli.progress import Count
from rlx.runs import index, project
from rlx.runs.run import COMMAND_BACKEND, IMPORTED_BACKEND, SCRIPT_BACKEND
from rlx.runs.status import QUEUED

PAGE = 50
MOST_CONFIGS = 30
"""How many different configs are read to say how runs differ."""
_FILTERS = ("env", "algo", "status", "tag")


def arguments(parser: Parser) -> None:
    parser.add_argument("pattern", nargs="?", help="a part of the name, or a pattern")
    parser.add_argument("--env", help="a part of the environment's id")
    parser.add_argument("--algo", help="an algorithm")
    parser.add_argument("--status", help=", ".join(index.STATES))
    parser.add_argument("--tag", help="a tag")
    parser.add_argument("--sort", default="created", metavar="KEY", help=", ".join(index.SORT_KEYS))
    parser.add_argument("--reverse", action="store_true", help="reverse the order")
    parser.add_argument("--group", action="store_true", help="pool runs whose configs differ only in the seeds")
    parser.add_argument("--columns", metavar="KEYS", help="show these config keys: algo.learning_rate,algo.gamma")
    parser.add_argument("--limit", type=int, default=PAGE, metavar="N", help=f"show N runs (default: {PAGE})")
    parser.add_argument("--offset", type=int, default=0, metavar="N", help="skip the first N")
    parser.add_argument("--all", action="store_true", help="show every run")


def run(args: Args) -> Data:
    if args.limit < 1 or args.offset < 0:
        raise UsageError("--limit must be at least 1 and --offset at least 0", hint="rlx ls --limit 10")
    chosen = {key: getattr(args, key) for key in (*_FILTERS, "sort", "reverse")}
    if not args.group:
        chosen["offset"] = args.offset
    if not args.all and not args.group:
        chosen["limit"] = args.limit
    count = Count("new and changed runs read")
    chosen["watch"] = lambda index, total: count(index + 1, total)
    page = index.summaries(project.root(), name=args.pattern, **chosen)
    columns = _column_keys(args.columns)
    _explain_queued(page, args.status)
    if not args.group:
        _add_settings(page.rows, columns)
        return {"runs": page.rows, "total": page.total, "next": _next(args, page.total), "filter": _filter(args),
                "columns": columns}  # fmt: skip
    groups = groups_of(page.rows)
    rows = groups
    if not args.all:
        rows = groups[args.offset : args.offset + args.limit]
    _add_settings(rows, columns)
    return {
        "columns": columns,
        "groups": rows,
        "total": len(groups),
        "next": _next(args, len(groups)),
        "filter": _filter(args),
    }


def _column_keys(text: str | None) -> list[str]:
    if text is None:
        return []
    keys = [key.strip() for key in text.split(",") if key.strip()]
    if not keys:
        raise UsageError("--columns names no key", hint="rlx ls --columns algo.learning_rate")
    return keys


def _add_settings(rows: list[Data], columns: list[str]) -> None:
    """Add to each row its value of every column. Without columns, add the settings in which similar runs differ.

    Runs with the same group hash have the same config, so one config is read for each hash.
    """
    from rlx.config.labels import labels, value_at

    configs: dict[str, Data] = {}
    for row in rows:
        row["settings"] = {}
        row["differs"] = ""
    if columns:
        for row in rows:
            config = _config(row, configs)
            row["settings"] = {key: value_at(config, key) for key in columns}
        known = [key for key in columns if any(row["settings"][key] is not None for row in rows)]
        if rows and not known:
            hint = f"rlx config show {_run_name(rows[0])} prints the keys of a run"
            raise UsageError(f"no run shown here has `{'`, `'.join(columns)}`", hint=hint)
        return
    alike: dict[tuple[str, str], list[Data]] = {}
    for row in rows:
        alike.setdefault((row["env"], row["algo"]), []).append(row)
    for group in alike.values():
        hashes = {row["group_hash"] for row in group if row["group_hash"]}
        if not 1 < len(hashes) <= MOST_CONFIGS:
            continue
        members = [row for row in group if row["group_hash"]]
        for row, text in zip(members, labels([_config(row, configs) for row in members]), strict=True):
            row["differs"] = text


def _run_name(row: Data) -> str:
    return str(row.get("name") or row["runs"][0])


def _config(row: Data, configs: dict[str, Data]) -> Data:
    """Return the config of a row's run; empty if it cannot be read."""
    from rlx.runs.run import Run
    from rlx.runs.summary import UNREADABLE

    key = row["group_hash"] or _run_name(row)
    if key not in configs:
        try:
            configs[key] = dict(Run(project.runs_folder(project.root()) / _run_name(row)).config)
        except UNREADABLE:
            configs[key] = {}
    return configs[key]


def _explain_queued(page: index.Page, wanted: str | None) -> None:
    """Ask the executors about the queued runs on a page; runs that are not in a queue any more are left out."""
    if not any(row["status"] == QUEUED for row in page.rows):
        return
    from rlx.launch.launch import explain_queued

    explain_queued(project.root(), page.rows)
    if wanted == QUEUED:
        queued = [row for row in page.rows if row["status"] == QUEUED]
        page.total -= len(page.rows) - len(queued)
        page.rows[:] = queued


def _next(args: Args, total: int) -> str | None:
    """Return the command that shows the rest, or None if nothing is left."""
    import shlex

    following = args.offset + args.limit
    if args.all or following >= total:
        return None
    words = ["rlx", "ls", *_filter_words(args)]
    if args.sort != "created":
        words += ["--sort", args.sort]
    if args.columns:
        words += ["--columns", args.columns]
    words += [f"--{flag}" for flag in ("reverse", "group") if getattr(args, flag)]
    if args.limit != PAGE:
        words += ["--limit", str(args.limit)]
    return shlex.join([*words, "--offset", str(following)])


def _filter_words(args: Args) -> list[str]:
    """Return the arguments that chose among the runs."""
    words = [args.pattern] * bool(args.pattern)
    for name in _FILTERS:
        if getattr(args, name):
            words += [f"--{name}", getattr(args, name)]
    return words


def _filter(args: Args) -> str:
    import shlex

    return shlex.join(_filter_words(args))


def groups_of(rows: list[Data]) -> list[Data]:
    """Pool the seeds of runs with the same config and the same kind of return, in the order of their first run."""
    from rlx.runs.summary import spread

    pools: dict[tuple[str, str, str], list[Data]] = {}
    for row in rows:
        score = row["return"] or {"source": "", "metric": ""}
        pools.setdefault((row["group_hash"] or row["name"], score["source"], score["metric"]), []).append(row)
    groups = []
    for (_, source, metric), members in pools.items():
        first = members[0]
        values = [float(value) for row in members if row["return"] for value in row["return"]["values"]]
        groups.append({
            "runs": [row["name"] for row in members],
            "env": first["env"],
            "algo": first["algo"],
            "backend": first.get("backend"),
            "group_hash": first["group_hash"],
            "seeds": sum(row["seeds"] for row in members),
            "steps": _mean_steps(members),
            "planned_steps": first["planned_steps"],
            "return": spread(values, source=source, metric=metric),
        })  # fmt: skip
    return groups


def _mean_steps(rows: list[Data]) -> int:
    """Return the mean over all seeds of the steps that were trained."""
    seeds = sum(int(row["seeds"]) for row in rows)
    return round(sum(int(row["steps"]) * int(row["seeds"]) for row in rows) / max(1, seeds))


def render(data: Data) -> str:
    rows = data.get("groups", data.get("runs"))
    if not rows:
        return _no_runs(data["filter"])
    more, cells = _setting_columns(rows, data["columns"])
    if "groups" in data:
        header = ["env", "algo", *more, "seeds", "steps", _heading(rows), "best", "runs"]
        body = [_group_cells(row) for row in rows]
        place = 2
        numbers = 4
    else:
        header = ["name", "status", "env", "algo", *more, "seeds", "steps", _heading(rows), "best", "time", "created",
                  "tags"]  # fmt: skip
        body = [_run_cells(row) for row in rows]
        place = 4
        numbers = 5
    body = [[*row[:place], *extra, *row[place:]] for row, extra in zip(body, cells, strict=True)]
    first = place + len(more)
    lines = [table(header, body, right=range(first, first + numbers))]
    lines += [f"{row['name']}: {row['reason']}" for row in rows if row.get("status") == "queued"]
    lines += [f"{row['name']} cannot be read: {row['reason']}" for row in rows if row.get("status") == "broken"]
    unmeasured = [row for row in rows if row["return"] and "rollout" in row["return"]["source"]]
    if unmeasured:
        lines.append(f"* training return{_how_to_measure({str(row.get('backend')) for row in unmeasured})}")
    if data["next"]:
        lines.append(f"{len(rows):,} of {data['total']:,} shown; the rest: {data['next']}  (or --all)")
    return "\n".join(lines)


def _setting_columns(rows: list[Data], columns: list[str]) -> tuple[list[str], list[list[str]]]:
    """Return the headings and cells of the chosen settings, or of what differs, if anything does."""
    from rlx.config.labels import short_name, spell

    if columns:
        return [short_name(key) for key in columns], [[spell(row["settings"][key]) for key in columns] for row in rows]
    if any(row["differs"] for row in rows):
        return ["differs"], [[row["differs"] or NOTHING] for row in rows]
    return [], [[] for _ in rows]


def _how_to_measure(backends: set[str]) -> str:
    """Return how to measure final policies; rlx cannot measure those of a command, or of an imported run."""
    backends = backends - {IMPORTED_BACKEND}
    if not backends <= {SCRIPT_BACKEND, COMMAND_BACKEND}:
        return "; measure the final policies with rlx eval RUN"
    if SCRIPT_BACKEND in backends:
        return "; measure the final policies in the script with run.evaluate(policy)"
    return ""


def _no_runs(chosen: str) -> str:
    if chosen:
        return f"no run matches {chosen}\n\nnext: rlx ls"
    if not (project.root() / project.MARKER).is_file():
        return "no runs, and no project here (no rlx.toml in this folder or above)\n\nnext: rlx init NAME"
    return "no runs\n\nnext: rlx train CONFIG"


def _run_cells(row: Data) -> list[str]:
    return [
        row["name"],
        row["status"],
        row["env"] or NOTHING,
        row["algo"] or NOTHING,
        str(row["seeds"]),
        steps(row["steps"], row["planned_steps"]),
        *_score_cells(row["return"]),
        duration(row["seconds"]),
        when(row["created"]),
        " ".join(row["tags"]),
    ]


def _group_cells(row: Data) -> list[str]:
    names = [row["env"] or NOTHING, row["algo"] or NOTHING]
    reached = steps(row["steps"], row["planned_steps"])
    return [*names, str(row["seeds"]), reached, *_score_cells(row["return"]), " ".join(row["runs"])]


def _score_cells(score: Data | None) -> list[str]:
    """Return the mean with its spread, and the best."""
    if not score:
        return [NOTHING, NOTHING]
    text = spread(score)
    if score["metric"] != "return":
        text += f" {score['metric']}"
    if "rollout" in score["source"]:
        text += "*"
    return [text, figure(score["best"])]


def _heading(rows: list[Data]) -> str:
    """Return the heading of the scores: if some are not returns, each cell names its metric."""
    if all(row["return"]["metric"] == "return" for row in rows if row["return"]):
        return "return"
    return "score"
