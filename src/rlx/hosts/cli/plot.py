"""Draw learning curves (the default), performance profiles or intervals of one or more runs.

Curves: every seed is a thin line, the mean over seeds a thick one with a 95 % bootstrap band. If some seeds have ended,
the mean of the others continues as a thin line. Profiles and intervals use the report evaluations (`rlx eval`), or the
last value of --metric.

Example: rlx plot cartpole_ppo_001 cartpole_ppo_002 --out comparison.png
         rlx plot cartpole_ppo_001 --metric eval/return_mean --x wall --smooth 5
         rlx plot cartpole_ppo_001 cartpole_ppo_002 --profile --over episodes --out profile.pdf
         rlx plot cartpole_ppo_001 cartpole_ppo_002 --intervals
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlx.errors import FileDamaged, NotFound, UsageError, did_you_mean
from rlx.hosts.cli.arguments import Args, Data, Parser, add_picture, find_runs, refuse_below_one, refuse_picture
from rlx.hosts.cli.format import counted, figure, interval, sparkline
from rlx.hosts.cli.output import say, table
from rlx.runs import project
from rlx.runs.run import METADATA, Run
from rlx.runs.summary import UNREADABLE

if TYPE_CHECKING:
    from rlx.hosts.plots.curves import Curves
    from rlx.hosts.plots.intervals import Estimate
    from rlx.hosts.plots.scores import Scores

DEFAULT = "rollout/return_mean"
EVALUATION = "eval/return_mean"
SPARKS = 60


def arguments(parser: Parser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="runs, or patterns such as 'cartpole_*'")
    parser.add_argument("--metric", help=f"what to draw (default: {DEFAULT}, or the evaluations)")
    for option, choices, help_text in (
        ("--x", ("steps", "wall", "episodes"), "the horizontal axis"),
        ("--by", ("run", "config"), "one curve per run, or one per config with pooled seeds"),
        ("--over", ("seeds", "episodes"), "what a profile counts"),
    ):
        parser.add_argument(option, choices=choices, default=choices[0], help=f"{help_text} (default: {choices[0]})")
    parser.add_argument("--smooth", type=int, default=1, metavar="N", help="draw the mean of N points (default: 1)")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--profile", action="store_true", help="the share of seeds above every score")
    kind.add_argument("--intervals", action="store_true", help="mean, IQM and median with intervals")
    add_picture(parser, where="a PNG in plots/")
    parser.add_argument("--seeds", action=argparse.BooleanOptionalAction, default=True, help="draw each seed")
    parser.add_argument("--band", action=argparse.BooleanOptionalAction, default=True, help="draw the band")


def run(args: Args) -> Data:
    refuse_picture(args.out)
    refuse_below_one(args, "smooth")
    runs = _readable(find_runs(args.runs))
    if args.profile or args.intervals:
        return _scores(args, runs)
    return _curves(args, runs)


def _readable(runs: list[Run]) -> list[Run]:
    """Return the runs that can be read, with a note on each other one; raise if there are only such."""
    readable = []
    problem = ""
    for run in runs:
        try:
            if run.metadata and all(seed.rows is not None for seed in run.seeds):
                readable.append(run)
        except UNREADABLE as error:
            problem = f"{run.name} cannot be read: {error}"
            if len(runs) > 1:
                say(f"note: {problem}")
    if not readable:
        raise FileDamaged(problem or f"{runs[0].name} cannot be read: {METADATA} is empty")
    return readable


def _curves(args: Args, runs: list[Run]) -> Data:
    from rlx.hosts.plots.curves import curves, draw

    metric = _metric(runs, args.metric)
    differences = _differences(runs)
    by_run = {
        run.name: replace(curves(run, metric, axis=args.x), differs=differences[run.name]) for run in runs
    }  # fmt: skip
    lines = [group.smoothed(args.smooth) for group in _groups(args, runs, by_run) if group.seeds]
    if not lines:
        raise NotFound(f"no values of {metric} over {args.x}", hint=f"rlx plot {runs[0].name} --x steps")
    subject = metric
    label = metric
    if args.x != "steps":
        subject += f"_over_{args.x}"
    if args.smooth != 1:
        subject += f"_smooth_{args.smooth}"
        label += f"\nmean of the last {args.smooth} points"
    out = args.out or _default_path(runs, subject)
    draw(lines, metric=label, axis=args.x, out=out, with_seeds=args.seeds, with_band=args.band)
    return {
        "kind": "curves",
        "path": str(out),
        "metric": metric,
        "x": args.x,
        "smooth": args.smooth,
        "band": "95 % bootstrap interval of the mean over seeds" if args.band else None,
        "runs": [_describe(group) for group in lines],
        "empty": [name for name, group in by_run.items() if not group.seeds],
    }


def _differences(runs: list[Run]) -> dict[str, str]:
    """Return for each run in which settings it differs from the others."""
    from rlx.config.labels import labels

    configs = []
    for run in runs:
        try:
            configs.append(run.config)
        except UNREADABLE:
            configs.append({})
    return dict(zip([run.name for run in runs], labels(configs), strict=True))


def _groups(args: Args, runs: list[Run], by_run: dict[str, Curves]) -> list[Curves]:
    """Return one group of curves per run, or one per config."""
    from rlx.hosts.plots.curves import pooled

    if args.by == "run":
        return list(by_run.values())
    groups: dict[str, list[Curves]] = {}
    for run in runs:
        if by_run[run.name].seeds:
            groups.setdefault(run.metadata.get("group_hash") or run.name, []).append(by_run[run.name])
    return [pooled(group) for group in groups.values()]


def _metric(runs: list[Run], name: str | None) -> str:
    """Return the metric to draw; raise with the nearest one if no run has logged it."""
    known = list(dict.fromkeys(metric for run in runs for metric in run.metric_names()))
    if any(event.get("event") == "evaluated" for run in runs for seed in run.seeds for event in seed.events):
        known.append(EVALUATION)
    if not known:
        raise NotFound(f"{runs[0].name} has logged no metrics yet", hint=f"rlx info {runs[0].name}")
    if name is None:
        return DEFAULT if DEFAULT in known else known[0]
    if name in known:
        return name
    hint = f"known: {', '.join(known)}"
    same_ending = (metric for metric in known if metric.rpartition("/")[2] == name)
    near = next(same_ending, None) or did_you_mean(name, known)
    if near:
        hint = f"did you mean `{near}`? {hint}"
    raise NotFound(f"no metric `{name}` in {', '.join(run.name for run in runs)}", hint=hint)


def _scores(args: Args, runs: list[Run]) -> Data:
    from rlx.hosts.plots import intervals, profile, scores

    if args.x != "steps" or args.smooth != 1 or args.by != "run":
        raise UsageError("--x, --smooth and --by are for curves", hint="leave them out")
    if args.metric and args.over == "episodes":
        raise UsageError("--over episodes needs the evaluations' episodes", hint="leave out --metric")
    if args.metric:
        subject = _metric(runs, args.metric)
        by_run = scores.last_values(runs, subject)
        label = f"last value of {subject}"
    else:
        subject = "evaluation"
        by_run = scores.evaluated(runs)
        measured = by_run[0].metric.replace("return", "mean return")
        label = f"{measured} of a seed's evaluation"
    scores.refuse_empty(by_run)
    differences = _differences(runs)
    by_run = [replace(scores_of_run, differs=differences[scores_of_run.name]) for scores_of_run in by_run]
    kind = "profile" if args.profile else "intervals"
    name = f"{subject}_{kind}"
    if args.over == "episodes":
        name += "_over_episodes"
        label = "return of an episode"
    out = args.out or _default_path(runs, name)
    estimates = [intervals.estimates(scores_of_run) for scores_of_run in by_run]
    if args.profile:
        profile.draw(by_run, metric=label, over=args.over, out=out)
    else:
        intervals.draw(by_run, estimates, metric=label, out=out)
    rows = [_estimates(*pair) for pair in zip(by_run, estimates, strict=True)]
    return {"kind": kind, "path": str(out), "metric": subject, "over": args.over, "runs": rows}


def _estimates(scores: Scores, estimates: dict[str, Estimate]) -> Data:
    row: Data = {"run": scores.name, "n": len(scores.seeds), "missing": scores.missing}
    for name, estimate in estimates.items():
        row[name.lower()] = {"value": estimate.value, "low": None, "high": None}
        if estimate.interval:
            row[name.lower()] |= {"low": estimate.interval.low, "high": estimate.interval.high}
    return {**row, "seeds": {str(seed): value for seed, value in scores.seeds.items()}}


def _default_path(runs: list[Run], subject: str) -> Path:
    """Return a place in the run's folder, or in the project's `plots/` for several runs."""
    stem = subject.replace("/", "_")
    if len(runs) == 1:
        return runs[0].path / "plots" / f"{stem}.png"
    names = [run.name for run in runs]
    together = "_".join(names)
    if len(names) > 3:
        digest = hashlib.sha256("\n".join(names).encode()).hexdigest()[:6]
        together = f"{names[0]}_and_{len(names) - 1}_more_{digest}"
    return project.root() / "plots" / f"{stem}_{together}.png"


def _describe(curves: Curves) -> Data:
    x = curves.mean.x[curves.whole].tolist()
    y = curves.mean.y[curves.whole].tolist()
    thinned = y
    if len(y) > SPARKS:
        thinned = [y[index * (len(y) - 1) // (SPARKS - 1)] for index in range(SPARKS)]
    return {
        "run": curves.name,
        "differs": curves.differs,
        "n": len(curves.seeds),
        "last_x": next(reversed(x), None),
        "mean": next(reversed(y), None),
        "best": max(y, default=None),
        "non_finite": curves.non_finite(),
        "repeated_seeds": curves.repeated,
        "seeds_end": {str(curve.seed): float(curve.x[-1]) for curve in curves.seeds},
        "curve": [round(value, 6) for value in thinned],
    }


def render(data: Data) -> str:
    lines = _curve_lines(data) if data["kind"] == "curves" else _score_lines(data)
    return "\n".join([*lines, f"picture: {data['path']}"])


def _curve_lines(data: Data) -> Iterator[str]:
    rows = data["runs"]
    title = f"{data['metric']} over {data['x']}"
    if data["smooth"] != 1:
        title += f", mean of the last {data['smooth']} points"
    values = [value for row in rows for value in row["curve"]]
    scale = None
    if values:
        scale = (min(values), max(values))
        title += f"; all lines from {figure(scale[0])} to {figure(scale[1])}"
    yield title
    for row in rows:
        if row["differs"]:
            yield f"{row['run']}: {row['differs']}"
    width = max(len(row["run"]) for row in rows)
    furthest = max(row["last_x"] or 0 for row in rows)
    for row in rows:
        columns = SPARKS
        if furthest > 0:
            columns = max(1, round(SPARKS * (row["last_x"] or 0) / furthest))
        sparks = sparkline(row["curve"], width=columns, scale=scale)
        yield f"{row['run']:{width}s}  {sparks}  mean {figure(row['mean'])} at {figure(row['last_x'])}, n = {row['n']}"
        yield from (f"{'':{width}s}  {note}" for note in _notes(row))
    yield from (f"{name}: no values of {data['metric']} over {data['x']}, not drawn" for name in data["empty"])


def _notes(row: Data) -> Iterator[str]:
    if row["non_finite"]:
        yield f"{counted(row['non_finite'], 'value')} NaN or infinite: not drawn"
    if row["repeated_seeds"]:
        yield f"{counted(row['repeated_seeds'], 'seed')} of the same number in several runs: drawn once"
    ends = sorted(row["seeds_end"].items(), key=lambda entry: entry[1])
    if row["mean"] is None and row["n"] > 1:
        yield "no stretch has values of all seeds: no mean of all"
    elif ends[0][1] < 0.95 * ends[-1][1]:
        yield f"the mean of all seeds ends with seed {ends[0][0]}"


def _score_lines(data: Data) -> Iterator[str]:
    names = ("mean", "iqm", "median")
    rows = [[row["run"], str(row["n"]), *(_estimate(row[name]) for name in names)] for row in data["runs"]]
    yield f"{data['metric']}: 95 % bootstrap intervals over seeds"
    yield table(["run", "n", *names], rows, right=[1])
    for row in data["runs"]:
        if row["missing"]:
            yield f"{row['run']}: {counted(row['missing'], 'seed')} without a score, not counted"
    if any(row["n"] < 10 for row in data["runs"]):
        yield "note: with fewer than 10 seeds these intervals are too narrow; use rlx compare to decide"


def _estimate(estimate: Data) -> str:
    if estimate["low"] is None:
        return figure(estimate["value"])
    return f"{figure(estimate['value'])} {interval([estimate['low'], estimate['high']])}"
