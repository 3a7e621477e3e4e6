"""Measure what disturbances cost a run's trained policies: noisy, shifted and stuck sensors, late and lost actions.

Nothing is trained. Every seed's policy plays the same episodes undisturbed and under each disturbance, at a few
strengths. A drop is the lost share of the gain over the random policy; above --limit the policy is brittle. NAME or
NAME=STRENGTHS chooses a disturbance (noise, offset, frozen, delay, dropout, repeat). Any other NAME=VALUES is a factor
of the environment, as in `rlx probe`. Each is tried alone; --corners adds every combination of the factors' extremes.

Example: rlx stress cartpole_ppo_001
         rlx stress cartpole_ppo_001 noise=0.05:0.5:4 attr:gravity=5,15
         rlx stress hopper_ppo_001 delay model:body_mass=0.8,1.2 model:geom_friction=0.5,2 --only --corners
"""

from rlx.errors import NotFound, UsageError
from rlx.hosts.cli.arguments import (
    Args,
    Data,
    Parser,
    add_picture,
    add_trust,
    obey_trust,
    refuse_below_one,
    refuse_picture,
)
from rlx.hosts.cli.format import NOTHING, counted, figure, interval, number_or_text, percent
from rlx.hosts.cli.output import exit_code_if, labelled, table
from rlx.hosts.cli.progress import Count
from rlx.runs import project


def arguments(parser: Parser) -> None:
    parser.add_argument("reference", metavar="RUN[:CHECKPOINT]", help="a run (default: its latest checkpoints)")
    help_text = "a disturbance, or a factor of the environment"
    parser.add_argument("conditions", nargs="*", metavar="NAME[=VALUES]", help=help_text)
    parser.add_argument("--only", action="store_true", help="only the conditions that you name")
    parser.add_argument("--corners", action="store_true", help="also combine the factors' extremes")
    help_text = "episodes per seed and condition (default: 10)"
    parser.add_argument("--episodes", type=int, default=10, metavar="N", help=help_text)
    parser.add_argument("--limit", type=float, default=0.2, metavar="X", help="a larger drop is brittle (default: 0.2)")
    add_picture(parser, where="a PNG in the run's folder")
    add_trust(parser)


def run(args: Args) -> Data:
    from rlx.compare.robustness.robustness_report import stress
    from rlx.evaluate.robustness.stress import parse_stress_plan
    from rlx.hosts.plots.stress import draw
    from rlx.runs.run_reference import resolve

    obey_trust(args)
    refuse_below_one(args, "episodes")
    refuse_picture(args.out)
    if args.limit <= 0:
        raise UsageError(f"--limit {args.limit:g}: must be above 0", hint="--limit 0.2")
    if args.only and not args.conditions:
        raise UsageError("--only needs at least one condition", hint="rlx stress RUN noise --only")
    root = project.root()
    reference = resolve(args.reference, root)
    plan = parse_stress_plan(args.conditions, is_only=args.only, has_corners=args.corners)
    report = stress(reference, plan, root=root, episodes=args.episodes, limit=args.limit, progress=Count("episodes"))
    assert reference.run is not None
    stem = report.file.stem if report.file else "stress"
    out = args.out or reference.run.path / "plots" / f"{stem}.png"
    draw(report.document, out=out)
    _, absent = reference.present(default="latest", seed=None)
    return {
        **report.document,
        "file": report.file and str(report.file.relative_to(root)),
        "picture": str(out),
        "exit_code": exit_code_if(absent, NotFound),
    }


def render(data: Data) -> str:
    nominal = data["nominal"]
    title = f"{data['run']}: {counted(len(data['seeds']), 'seed')} × {data['episodes']} episodes of {data['env']}"
    scores = f"undisturbed {figure(nominal['mean'])}, random policy {figure(nominal['random'])}"
    header = ["disturbance", "strength", data["metric"], "drop", "95 % interval", ""]
    rows = table(header, [_cells(condition) for condition in data["conditions"]], right=range(2, 5))
    fields = labelled({
        "brittle": _brittle(data),
        "left out": [f"{name} ({why})" for name, why in data["left_out"].items()],
        "note": data["notes"],
        "stored": data["file"] or "no: rlx cannot write to the run's folder",
        "picture": data["picture"],
    })  # fmt: skip
    return f"{title}; {scores}\n{rows}\n{fields}"


def _strength(condition: Data) -> str:
    return f"{number_or_text(condition['strength'])} {condition['unit']}".rstrip()


def _cells(condition: Data) -> list[str]:
    names = [condition["name"], _strength(condition)]
    if condition["refused"]:
        return [*names, NOTHING, NOTHING, NOTHING, f"refused: {condition['refused']}"]
    answer = ""
    if condition["brittle"]:
        answer = "brittle" if condition["sure"] else "brittle?"
    drop = [percent(condition["drop"]), interval(condition["drop_interval"], percent)]
    return [*names, figure(condition["mean"]), *drop, answer]


def _brittle(data: Data) -> str:
    """Return the weakest strength of each disturbance that breaks the policies."""
    if all(condition["drop"] is None for condition in data["conditions"]):
        return "unknown, because no drop is known"
    weakest: dict[str, Data] = {}
    for condition in data["conditions"]:
        if condition["brittle"]:
            known = weakest.setdefault(condition["name"], condition)
            is_ordered = condition["unit"] and isinstance(condition["strength"], (int, float))
            if is_ordered and condition["strength"] < known["strength"]:
                weakest[condition["name"]] = condition
    parts = []
    for name, condition in weakest.items():
        word = "from" if condition["unit"] else "at"
        parts.append(f"{name} {word} {_strength(condition)}")
    return ", ".join(parts) or f"no tested condition costs more than {data['limit']:.0%}"
