"""Draw learning curves: every seed thin, the mean over seeds thick, one colour a run.

The mean ends where the shortest seed ends, so that no seed drops out of it on the way.

Example: rlx plot cartpole_ppo_001 cartpole_ppo_002 --out comparison.png
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import Any

from rlx.errors import NotFound, UsageError, did_you_mean
from rlx.hosts.cli import words
from rlx.runs import project
from rlx.runs.run import Run, find

KINDS = (".png", ".svg", ".pdf")
DEFAULT, EVALUATION = "rollout/return_mean", "eval/return_mean"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="one or more runs")
    parser.add_argument("--metric", help=f"what to draw ({DEFAULT})")
    parser.add_argument(
        "--x", choices=("steps", "wall", "episodes"), default="steps", help="the horizontal axis (steps)"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help=f"where to: {', '.join(KINDS)} (default: a PNG)")
    parser.add_argument("--seeds", action=argparse.BooleanOptionalAction, default=True, help="draw each seed (yes)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    root = project.root()
    if args.out is not None and args.out.suffix.lower() not in KINDS:
        raise UsageError(
            f"cannot draw a `{args.out.suffix or args.out.name}` file", hint=f"end it in {', '.join(KINDS)}"
        )
    found = list({run.path: run for run in (find(name, root=root) for name in args.runs)}.values())
    metric = _metric(found, args.metric)
    out = args.out or _default_path(found, metric, root, args)

    from rlx.hosts import plots

    lines = [one for run in found if (one := plots.curves(run, metric, axis=args.x)).seeds]
    if not lines:
        raise NotFound(f"no values of {metric} over {args.x}", hint=f"rlx plot {found[0].name} --x steps")
    plots.draw(lines, metric=metric, axis=args.x, out=out, with_seeds=args.seeds)
    return {"path": str(out), "metric": metric, "x": args.x, "runs": [_describe(one) for one in lines]}


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


def _default_path(found: list[Run], metric: str, root: Path, args: argparse.Namespace) -> Path:
    """Return a place in the run's folder, or in the project's `plots/` for several runs."""
    stem = metric.replace("/", "_") + ("" if args.x == "steps" else f"_over_{args.x}")
    if len(found) == 1:
        return found[0].path / "plots" / f"{stem}.png"
    names = [run.name for run in found]
    together = "_".join(names) if len(names) <= 3 else f"{names[0]}_and_{len(names) - 1}_more_" + _digest(names)
    return root / "plots" / f"{stem}_{together}.png"


def _digest(names: list[str]) -> str:
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:6]


def _describe(lines: Any) -> dict[str, Any]:
    x, y = lines.mean()
    return {
        "run": lines.name,
        "n": len(lines.seeds),
        "last_x": float(x[-1]) if len(x) else None,
        "mean": float(y[-1]) if len(y) else None,
        "best": float(y.max()) if len(y) else None,
        "non_finite": lines.non_finite(),
        "seeds_end": {str(curve.seed): float(curve.x[-1]) for curve in lines.seeds},
        "curve": [round(float(value), 6) for value in _thinned(y)],
    }


def _thinned(values: Any, count: int = 60) -> Any:
    return (
        values if len(values) <= count else [values[index * (len(values) - 1) // (count - 1)] for index in range(count)]
    )


def render(data: dict[str, Any]) -> str:
    width = max(len(one["run"]) for one in data["runs"])
    lines = [f"{data['metric']} over {data['x']}"]
    for one in data["runs"]:
        figures = f"mean {words.figure(one['mean'])} at {words.figure(one['last_x'])}, n = {one['n']}"
        lines.append(f"{one['run']:{width}s}  {words.sparkline(one['curve'])}  {figures}")
        if one["non_finite"]:
            lines.append(f"{'':{width}s}  {words.plural(one['non_finite'], 'value')} NaN or infinite: not drawn")
        ends = sorted(one["seeds_end"].items(), key=lambda entry: entry[1])
        if ends[0][1] < 0.95 * ends[-1][1]:
            lines.append(f"{'':{width}s}  the mean ends where seed {ends[0][0]} does")
    return "\n".join([*lines, f"picture: {data['path']}"])
