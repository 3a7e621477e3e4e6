"""Draw learning curves (the default), performance profiles or intervals of one or more runs.

Curves: every seed thin, the mean over seeds thick, a 95 % bootstrap band around it. Where some seeds have ended the
mean of the others goes on as a thin line. Profiles and intervals use the report evaluations (`rlx eval`), or the last
value of a `--metric`.

Example: rlx plot cartpole_ppo_001 cartpole_ppo_002 --out comparison.png
         rlx plot cartpole_ppo_001 --metric eval/return_mean --x wall --smooth 5
         rlx plot cartpole_ppo_001 cartpole_ppo_002 --profile --over episodes --out profile.pdf
         rlx plot cartpole_ppo_001 cartpole_ppo_002 --intervals
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlx.errors import NotFound, UsageError, did_you_mean
from rlx.hosts.cli import words
from rlx.hosts.cli.output import table
from rlx.runs import project
from rlx.runs.run import Run, find

if TYPE_CHECKING:
    from rlx.hosts.plots.curves import Curves
    from rlx.hosts.plots.scores import Scores

KINDS = (".png", ".svg", ".pdf")
DEFAULT, EVALUATION = "rollout/return_mean", "eval/return_mean"
SPARKS = 60


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="one or more runs")
    parser.add_argument("--metric", help=f"what to draw ({DEFAULT}; profiles and intervals: the evaluations)")
    parser.add_argument(
        "--x", choices=("steps", "wall", "episodes"), default="steps", help="the horizontal axis (steps)"
    )
    parser.add_argument("--smooth", type=int, default=1, metavar="N", help="the mean of the last N points (1)")
    parser.add_argument("--by", choices=("run", "config"), default="run", help="pool the seeds of equal configs (no)")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--profile", action="store_true", help="the share of seeds above every score")
    kind.add_argument("--intervals", action="store_true", help="mean, IQM and median with intervals")
    parser.add_argument("--over", choices=("seeds", "episodes"), default="seeds", help="what a profile counts (seeds)")
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help=f"where to: {', '.join(KINDS)} (a PNG)")
    parser.add_argument("--seeds", action=argparse.BooleanOptionalAction, default=True, help="draw each seed (yes)")
    parser.add_argument("--band", action=argparse.BooleanOptionalAction, default=True, help="draw the band (yes)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    root = project.root()
    if args.out is not None and args.out.suffix.lower() not in KINDS:
        raise UsageError(
            f"cannot draw a `{args.out.suffix or args.out.name}` file", hint=f"end it in {', '.join(KINDS)}"
        )
    if args.smooth < 1:
        raise UsageError(f"--smooth {args.smooth}: at least one point", hint="--smooth 1 draws what was logged")
    found = list({run.path: run for run in (find(name, root=root) for name in args.runs)}.values())
    if args.profile or args.intervals:
        return _scores(args, found, root)
    return _curves(args, found, root)


def _curves(args: argparse.Namespace, found: list[Run], root: Path) -> dict[str, Any]:
    from rlx.hosts.plots.curves import curves, draw

    metric = _metric(found, args.metric)
    every = {run.name: curves(run, metric, axis=args.x) for run in found}
    lines = [one.smoothed(args.smooth) for one in _groups(args, found, every) if one.seeds]
    if not lines:
        raise NotFound(f"no values of {metric} over {args.x}", hint=f"rlx plot {found[0].name} --x steps")
    subject = metric + ("" if args.x == "steps" else f"_over_{args.x}")
    subject += "" if args.smooth == 1 else f"_smooth_{args.smooth}"
    out = args.out or _default_path(found, subject, root)
    said = metric if args.smooth == 1 else f"{metric}\nmean of the last {args.smooth} points"
    draw(lines, metric=said, axis=args.x, out=out, with_seeds=args.seeds, with_band=args.band)
    return {
        "kind": "curves",
        "path": str(out),
        "metric": metric,
        "x": args.x,
        "smooth": args.smooth,
        "band": "95 % bootstrap interval of the mean over seeds" if args.band else None,
        "runs": [_describe(one) for one in lines],
        "empty": [name for name, one in every.items() if not one.seeds],
    }


def _groups(args: argparse.Namespace, found: list[Run], every: dict[str, Curves]) -> list[Curves]:
    """Return a run's curves each, or those of all runs of one config together."""
    from rlx.hosts.plots.curves import pooled

    if args.by == "run":
        return list(every.values())
    groups: dict[str, list[Curves]] = {}
    for run in found:
        if every[run.name].seeds:
            groups.setdefault(run.metadata.get("group_hash") or run.name, []).append(every[run.name])
    return [pooled(group) for group in groups.values()]


def _metric(found: list[Run], wanted: str | None) -> str:
    """Return the metric to draw; one that no run has logged is refused with the near one and the list."""
    known = list(dict.fromkeys(name for run in found for name in run.metric_names()))
    if any(event.get("event") == "evaluated" for run in found for seed in run.seeds for event in seed.events):
        known.append(EVALUATION)
    if not known:
        raise NotFound(f"{found[0].name} has logged no metrics yet", hint=f"rlx info {found[0].name}")
    if wanted is None:
        return DEFAULT if DEFAULT in known else known[0]
    if wanted in known:
        return wanted
    ending = [name for name in known if name.rpartition("/")[2] == wanted]
    near = ending[0] if ending else did_you_mean(wanted, known)
    hint = (f"did you mean `{near}`? " if near else "") + f"known: {', '.join(known)}"
    raise NotFound(f"no metric `{wanted}` in {', '.join(run.name for run in found)}", hint=hint)


def _scores(args: argparse.Namespace, found: list[Run], root: Path) -> dict[str, Any]:
    from rlx.hosts.plots import intervals, profile, scores

    if args.x != "steps" or args.smooth != 1 or args.by != "run":
        raise UsageError("--x, --smooth and --by are for curves", hint="leave them out")
    if args.metric and args.over == "episodes":
        raise UsageError("--over episodes needs the evaluations' episodes", hint="leave --metric out")
    metric = _metric(found, args.metric) if args.metric else None
    every = scores.last_values(found, metric) if metric else scores.evaluated(found)
    scores.refuse_empty(every)
    kind = "profile" if args.profile else "intervals"
    subject = f"{metric or 'evaluation'}_{kind}" + ("_over_episodes" if args.over == "episodes" else "")
    out = args.out or _default_path(found, subject, root)
    estimated = [intervals.estimates(one) for one in every]
    measured = "mean return" if every[0].metric == "return" else every[0].metric
    said = f"last value of {metric}" if metric else f"{measured} of a seed's evaluation"
    if args.profile:
        of = "return of an episode" if args.over == "episodes" else said
        profile.draw(every, metric=of, over=args.over, out=out)
    else:
        intervals.draw(every, estimated, metric=said, out=out)
    runs = [_estimated(one, of) for one, of in zip(every, estimated, strict=True)]
    return {"kind": kind, "path": str(out), "metric": metric or "evaluation", "over": args.over, "runs": runs}


def _estimated(one: Scores, estimates: dict[str, Any]) -> dict[str, Any]:
    spelled = {
        name.lower(): {
            "value": estimate.value,
            "low": estimate.interval.low if estimate.interval else None,
            "high": estimate.interval.high if estimate.interval else None,
        }
        for name, estimate in estimates.items()
    }
    seeds = {str(seed): value for seed, value in one.seeds.items()}
    return {"run": one.name, "n": len(one.seeds), "missing": one.missing, **spelled, "seeds": seeds}


def _default_path(found: list[Run], subject: str, root: Path) -> Path:
    """Return a place in the run's folder, or in the project's `plots/` for several runs."""
    stem = subject.replace("/", "_")
    if len(found) == 1:
        return found[0].path / "plots" / f"{stem}.png"
    names = [run.name for run in found]
    together = "_".join(names) if len(names) <= 3 else f"{names[0]}_and_{len(names) - 1}_more_" + _digest(names)
    return root / "plots" / f"{stem}_{together}.png"


def _digest(names: list[str]) -> str:
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:6]


def _describe(lines: Curves) -> dict[str, Any]:
    x, y = lines.mean.x[lines.whole], lines.mean.y[lines.whole]
    return {
        "run": lines.name,
        "n": len(lines.seeds),
        "last_x": float(x[-1]) if len(x) else None,
        "mean": float(y[-1]) if len(y) else None,
        "best": float(y.max()) if len(y) else None,
        "non_finite": lines.non_finite(),
        "repeated_seeds": lines.repeated,
        "seeds_end": {str(curve.seed): float(curve.x[-1]) for curve in lines.seeds},
        "curve": [round(float(value), 6) for value in _thinned(y)],
    }


def _thinned(values: Any) -> Any:
    count = len(values)
    return values if count <= SPARKS else [values[index * (count - 1) // (SPARKS - 1)] for index in range(SPARKS)]


def render(data: dict[str, Any]) -> str:
    lines = _curve_lines(data) if data["kind"] == "curves" else _score_lines(data)
    return "\n".join([*lines, f"picture: {data['path']}"])


def _curve_lines(data: dict[str, Any]) -> Iterator[str]:
    smoothed = "" if data["smooth"] == 1 else f", mean of the last {data['smooth']} points"
    values = [value for one in data["runs"] for value in one["curve"]]
    scale = (min(values), max(values)) if values else None
    shown = f"; all lines from {words.figure(scale[0])} to {words.figure(scale[1])}" if scale else ""
    yield f"{data['metric']} over {data['x']}{smoothed}{shown}"
    width, furthest = max(len(one["run"]) for one in data["runs"]), max(one["last_x"] or 0 for one in data["runs"])
    for one in data["runs"]:
        columns = max(1, round(SPARKS * (one["last_x"] or 0) / furthest)) if furthest > 0 else SPARKS
        sparks = words.sparkline(one["curve"], width=columns, scale=scale)
        figures = f"mean {words.figure(one['mean'])} at {words.figure(one['last_x'])}, n = {one['n']}"
        yield f"{one['run']:{width}s}  {sparks}  {figures}"
        yield from (f"{'':{width}s}  {note}" for note in _notes(one))
    yield from (f"{name}: no values of {data['metric']} over {data['x']}, not drawn" for name in data["empty"])


def _notes(one: dict[str, Any]) -> Iterator[str]:
    if one["non_finite"]:
        yield f"{words.plural(one['non_finite'], 'value')} NaN or infinite: not drawn"
    if one["repeated_seeds"]:
        yield f"{words.plural(one['repeated_seeds'], 'seed')} of the same number in several runs: drawn once"
    ends = sorted(one["seeds_end"].items(), key=lambda entry: entry[1])
    if one["mean"] is None and one["n"] > 1:
        yield "no stretch has values of all seeds: no mean of all"
    elif ends[0][1] < 0.95 * ends[-1][1]:
        yield f"the mean of all seeds ends where seed {ends[0][0]} does"


def _score_lines(data: dict[str, Any]) -> list[str]:
    names = ("mean", "iqm", "median")
    rows = [[one["run"], str(one["n"]), *(_spelled(one[name]) for name in names)] for one in data["runs"]]
    lines = [f"{data['metric']}: 95 % bootstrap intervals over seeds", table(["run", "n", *names], rows, right=[1])]
    lines += [f"{one['run']}: {words.plural(one['missing'], 'seed')} without a score, not counted"
              for one in data["runs"] if one["missing"]]  # fmt: skip
    few = [one["run"] for one in data["runs"] if one["n"] < 10]
    return (
        [*lines, "note: with fewer than 10 seeds such intervals are too narrow; rlx compare decides"] if few else lines
    )


def _spelled(estimate: dict[str, Any]) -> str:
    value = words.figure(estimate["value"])
    if estimate["low"] is None:
        return value
    return f"{value} [{words.figure(estimate['low'])}, {words.figure(estimate['high'])}]"
