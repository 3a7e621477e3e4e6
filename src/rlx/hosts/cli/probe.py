"""Try a run's trained policies at other values of one parameter of the world: where do they still work?

Nothing is trained. Every seed's policy plays the same episodes at each value, beside the random policy. A value is
feasible where the policies keep a share (--share) of what they gain over the random policy. NAME is an argument of the
environment, attr:NAME an attribute of it, model:NAME a factor on numbers of its MuJoCo model. Several parameters are
varied one after the other, never together.

Example: rlx probe cartpole_ppo_001 attr:gravity=5:20:6
         rlx probe hopper_ppo_001 model:body_mass=0.5:2:4 model:geom_friction=0.25:4:5:log --episodes 20
         rlx probe rover_ppo_001:best wind=0,2,5,10 --share 0.9
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rlx.errors import NotFound, UsageError
from rlx.hosts.cli.count import Count
from rlx.hosts.cli.output import table
from rlx.hosts.cli.words import figure
from rlx.runs import project

KINDS = (".png", ".svg", ".pdf")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("reference", metavar="RUN[:CHECKPOINT]", help="a run (its latest checkpoints)")
    parser.add_argument("parameters", nargs="+", metavar="NAME=VALUES", help="LOW:HIGH:COUNT[:log] or a list")
    parser.add_argument("--episodes", type=int, default=10, metavar="N", help="episodes a seed and value (10)")
    parser.add_argument(
        "--share", type=float, default=0.8, metavar="X", help="share of the gain that must be kept (0.8)"
    )
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help=f"where to draw: {', '.join(KINDS)} (a PNG)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.compare.robustness import probe
    from rlx.evaluate.parameter import parse
    from rlx.hosts.plots.probed import draw
    from rlx.runs.reference import resolve

    _refuse_nonsense(args)
    root = project.root()
    reference = resolve(args.reference, root)
    found = probe(
        reference, [parse(text) for text in args.parameters], root=root, episodes=args.episodes, share=args.share,
        progress=Count("episodes"),
    )  # fmt: skip
    assert reference.run is not None
    names = "_".join(one.file.stem if one.file else one.document["parameter"].replace(":", "_") for one in found)
    out = args.out or reference.run.path / "plots" / f"probe_{names[:80]}.png"
    draw([one.document for one in found], out=out)
    absent = [note for note in found[0].document["notes"] if "has no checkpoint" in note]
    return {
        "run": reference.run.name,
        "probes": [{**one.document, "file": str(one.file.relative_to(root)) if one.file else None} for one in found],
        "picture": str(out),
        "exit_code": NotFound.exit_code if absent else 0,
    }


def _refuse_nonsense(args: argparse.Namespace) -> None:
    if args.episodes < 1:
        raise UsageError(f"--episodes {args.episodes}: at least one episode")
    if not 0 < args.share <= 1:
        raise UsageError(f"--share {args.share:g}: between 0 and 1", hint="--share 0.8")
    if args.out is not None and args.out.suffix.lower() not in KINDS:
        raise UsageError(
            f"cannot draw a `{args.out.suffix or args.out.name}` file", hint=f"end it in {', '.join(KINDS)}"
        )


def render(data: dict[str, Any]) -> str:
    lines: list[str] = []
    for one in data["probes"]:
        lines += [*_probe(one), ""]
    return "\n".join([*lines, f"picture: {data['picture']}", f"next: rlx stress {data['run']}"])


def _probe(one: dict[str, Any]) -> list[str]:
    header = [one["parameter"], one["metric"], "95 % interval", "kept", "interval", "random", "feasible"]
    lines = [
        f"{one['run']}: {len(one['seeds'])} seeds × {one['episodes']} episodes of {one['env']} at each value",
        table(header, [_cells(point) for point in one["points"]], right=range(1, 6)),
        f"feasible: {_range(one)}",
        *(f"note: {note}" for note in one["notes"]),
        f"kept: {one['file']}" if one["file"] else "not kept: the run's folder cannot be written to",
    ]
    return lines


def _cells(point: dict[str, Any]) -> list[str]:
    name = spelled(point["value"]) + (" (nominal)" if point["nominal"] else "")
    if point["refused"]:
        return [name, "–", "–", "–", "–", "–", f"refused: {point['refused']}"]
    is_open = point["kept_interval"] is not None and not point["sure"] and not point["nominal"]
    answer = ("yes" if point["feasible"] else "no") + ("?" if is_open else "")
    return [
        name, figure(point["mean"]), _interval(point["interval"]), _percent(point["kept"]),
        _percents(point["kept_interval"]), figure(point["random"]), answer,
    ]  # fmt: skip


def _range(one: dict[str, Any]) -> str:
    low, high = one["feasible"]["low"], one["feasible"]["high"]
    if low is None:
        values = [spelled(point["value"]) for point in one["points"] if point["feasible"]]
        return ", ".join(values) or "nowhere"
    rule = f"keeps {one['share']:.0%} of the gain over the random policy, and beats it there"
    return f"{figure(low)} to {figure(high)} ({rule})"


def spelled(value: Any) -> str:
    """Return a value as people read it; None is the environment's own."""
    if value is None:
        return "as configured"
    return figure(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def _interval(ends: list[float] | None) -> str:
    return "–" if ends is None else f"[{figure(ends[0])}, {figure(ends[1])}]"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{round(share, 2) + 0.0:.0%}".replace("-", "−")  # + 0.0 turns −0 into 0


def _percents(ends: list[float] | None) -> str:
    return "–" if ends is None else f"[{_percent(ends[0])}, {_percent(ends[1])}]"
