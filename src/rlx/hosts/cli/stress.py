"""Disturb a run's trained policies and see what they lose: noisy, shifted and stuck sensors, late and lost actions.

Nothing is trained. Every seed's policy plays the same episodes undisturbed and under each disturbance, at a few
strengths. A drop is the share of the gain over the random policy that is lost; above --limit it is brittle. NAME alone
or NAME=STRENGTHS chooses a disturbance (noise, offset, frozen, delay, dropout, repeat); any other NAME=VALUES is a
factor of the world, as `rlx probe` takes it. Each is tried alone; --corners adds every combination of the factors'
extremes.

Example: rlx stress cartpole_ppo_001
         rlx stress cartpole_ppo_001 noise=0.05:0.5:4 attr:gravity=5,15
         rlx stress hopper_ppo_001 delay model:body_mass=0.8,1.2 model:geom_friction=0.5,2 --only --corners
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rlx.errors import NotFound, UsageError
from rlx.hosts.cli.count import Count
from rlx.hosts.cli.output import table
from rlx.hosts.cli.words import figure, plural
from rlx.runs import project

KINDS = (".png", ".svg", ".pdf")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("reference", metavar="RUN[:CHECKPOINT]", help="a run (its latest checkpoints)")
    parser.add_argument(
        "conditions", nargs="*", metavar="NAME[=VALUES]", help="a disturbance, or a factor of the world"
    )
    parser.add_argument("--only", action="store_true", help="only what is named")
    parser.add_argument("--corners", action="store_true", help="also the factors' extremes together")
    parser.add_argument("--episodes", type=int, default=10, metavar="N", help="episodes a seed and condition (10)")
    parser.add_argument("--limit", type=float, default=0.2, metavar="X", help="a larger drop is brittle (0.2)")
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help=f"where to draw: {', '.join(KINDS)} (a PNG)")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.compare.robustness import stress
    from rlx.evaluate.stress import planned
    from rlx.hosts.plots.stressed import draw
    from rlx.runs.reference import resolve

    _refuse_nonsense(args)
    root = project.root()
    reference = resolve(args.reference, root)
    plan = planned(args.conditions, is_only=args.only, has_corners=args.corners)
    found = stress(reference, plan, root=root, episodes=args.episodes, limit=args.limit, progress=Count("episodes"))
    assert reference.run is not None
    out = args.out or reference.run.path / "plots" / f"{found.file.stem if found.file else 'stress'}.png"
    draw(found.document, out=out)
    absent = [note for note in found.document["notes"] if "has no checkpoint" in note]
    return {
        **found.document,
        "file": str(found.file.relative_to(root)) if found.file else None,
        "picture": str(out),
        "exit_code": NotFound.exit_code if absent else 0,
    }


def _refuse_nonsense(args: argparse.Namespace) -> None:
    if args.episodes < 1:
        raise UsageError(f"--episodes {args.episodes}: at least one episode")
    if args.limit <= 0:
        raise UsageError(f"--limit {args.limit:g}: above 0", hint="--limit 0.2")
    if args.only and not args.conditions:
        raise UsageError("--only needs something to be named", hint="rlx stress RUN noise --only")
    if args.out is not None and args.out.suffix.lower() not in KINDS:
        raise UsageError(
            f"cannot draw a `{args.out.suffix or args.out.name}` file", hint=f"end it in {', '.join(KINDS)}"
        )


def render(data: dict[str, Any]) -> str:
    nominal = data["nominal"]
    about = f"{plural(len(data['seeds']), 'seed')} × {data['episodes']} episodes of {data['env']}"
    header = ["disturbance", "strength", data["metric"], "drop", "95 % interval", ""]
    lines = [
        f"{data['run']}: {about}; undisturbed {figure(nominal['mean'])}, random policy {figure(nominal['random'])}",
        table(header, [_cells(one) for one in data["conditions"]], right=range(2, 5)),
        f"brittle: {_brittle(data)}",
        *(f"left out: {name} ({why})" for name, why in data["left_out"].items()),
        *(f"note: {note}" for note in data["notes"]),
        f"kept: {data['file']}" if data["file"] else "not kept: the run's folder cannot be written to",
        f"picture: {data['picture']}",
    ]
    return "\n".join(lines)


def _cells(one: dict[str, Any]) -> list[str]:
    strength = f"{_spelled(one['strength'])} {one['unit']}".rstrip()
    if one["refused"]:
        return [one["name"], strength, "–", "–", "–", f"refused: {one['refused']}"]
    ends = one["drop_interval"]
    interval = "–" if ends is None else f"[{_percent(ends[0])}, {_percent(ends[1])}]"
    answer = "" if not one["brittle"] else "brittle" if one["sure"] else "brittle?"
    return [one["name"], strength, figure(one["mean"]), _percent(one["drop"]), interval, answer]


def _brittle(data: dict[str, Any]) -> str:
    """Name the weakest strength at which each disturbance breaks the policies."""
    if all(one["drop"] is None for one in data["conditions"]):
        return "cannot be said, no drop is known"
    weakest: dict[str, dict[str, Any]] = {}
    for one in data["conditions"]:
        if one["brittle"]:
            known = weakest.get(one["name"])
            is_ordered = isinstance(one["strength"], (int, float))
            if known is None or (is_ordered and one["unit"] and one["strength"] < known["strength"]):
                weakest[one["name"]] = one
    found = [
        f"{name} {'from' if one['unit'] else 'at'} {_spelled(one['strength'])} {one['unit']}".rstrip()
        for name, one in weakest.items()
    ]
    return ", ".join(found) or f"nothing that was tried costs more than {data['limit']:.0%}"


def _spelled(value: Any) -> str:
    return figure(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{round(share, 2) + 0.0:.0%}".replace("-", "−")  # + 0.0 turns −0 into 0
