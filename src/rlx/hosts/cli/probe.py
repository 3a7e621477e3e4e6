"""Test a run's trained policies as one parameter of the environment varies.

Nothing is trained. Every seed's policy plays the same episodes at each value, next to the random policy. A value is
feasible if the policies keep a share (--share) of their gain over the random policy. NAME is an argument of the
environment, attr:NAME an attribute of it, model:NAME a factor on numbers of its MuJoCo model. Several parameters are
varied one after the other, never together.

Example: rlx probe cartpole_ppo_001 attr:gravity=5:20:6
         rlx probe hopper_ppo_001 model:body_mass=0.5:2:4 model:geom_friction=0.25:4:5:log --episodes 20
         rlx probe rover_ppo_001:best wind=0,2,5,10 --share 0.9
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
from rlx.hosts.cli.format import NOTHING, figure, interval, number_or_text, percent
from rlx.hosts.cli.output import exit_code_if, labelled, table
from rlx.hosts.cli.progress import Count
from rlx.runs import project


def arguments(parser: Parser) -> None:
    parser.add_argument("reference", metavar="RUN[:CHECKPOINT]", help="a run (default: its latest checkpoints)")
    parser.add_argument("parameters", nargs="+", metavar="NAME=VALUES", help="LOW:HIGH:COUNT[:log] or a list")
    parser.add_argument("--episodes", type=int, default=10, metavar="N", help="episodes per seed and value (10)")
    parser.add_argument("--share", type=float, default=0.8, metavar="X", help="share of the gain to keep (0.8)")
    add_picture(parser, where="a PNG in the run's folder")
    add_trust(parser)


def run(args: Args) -> Data:
    from rlx.compare.robustness.robustness_report import probe
    from rlx.evaluate.robustness.env_parameter import parse_parameter
    from rlx.hosts.plots.parameter_sweep import draw
    from rlx.runs.run_reference import resolve

    obey_trust(args)
    refuse_below_one(args, "episodes")
    refuse_picture(args.out)
    if not 0 < args.share <= 1:
        raise UsageError(f"--share {args.share:g}: must be between 0 and 1", hint="--share 0.8")
    root = project.root()
    reference = resolve(args.reference, root)
    probes = probe(
        reference,
        [parse_parameter(text) for text in args.parameters],
        root=root,
        episodes=args.episodes,
        share=args.share,
        progress=Count("episodes"),
    )
    assert reference.run is not None
    names = [row.file.stem if row.file else row.document["parameter"].replace(":", "_") for row in probes]
    out = args.out or reference.run.path / "plots" / f"probe_{'_'.join(names)[:80]}.png"
    draw([row.document for row in probes], out=out)
    _, absent = reference.present(default="latest", seed=None)
    return {
        "run": reference.run.name,
        "probes": [{**row.document, "file": row.file and str(row.file.relative_to(root))} for row in probes],
        "picture": str(out),
        "exit_code": exit_code_if(absent, NotFound),
    }


def render(data: Data) -> str:
    tail = labelled({"picture": data["picture"], "next": f"rlx stress {data['run']}"})
    return "\n\n".join([*map(_probe, data["probes"]), tail])


def _probe(probe: Data) -> str:
    seeds = f"{len(probe['seeds'])} seeds × {probe['episodes']} episodes of {probe['env']} at each value"
    header = [probe["parameter"], probe["metric"], "95 % interval", "kept", "interval", "random", "feasible"]
    fields = {
        "feasible": _range(probe),
        "note": probe["notes"],
        "stored": probe["file"] or "no: rlx cannot write to the run's folder",
    }
    rows = table(header, [_cells(point) for point in probe["points"]], right=range(1, 6))
    return f"{probe['run']}: {seeds}\n{rows}\n{labelled(fields)}"


def _cells(point: Data) -> list[str]:
    name = _value(point["value"])
    if point["nominal"]:
        name += " (nominal)"
    if point["refused"]:
        return [name, *[NOTHING] * 5, f"refused: {point['refused']}"]
    answer = "yes" if point["feasible"] else "no"
    if point["kept_interval"] is not None and not point["sure"] and not point["nominal"]:
        answer += "?"
    return [
        name, figure(point["mean"]), interval(point["interval"]), percent(point["kept"]),
        interval(point["kept_interval"], percent), figure(point["random"]), answer,
    ]  # fmt: skip


def _range(probe: Data) -> str:
    low = probe["feasible"]["low"]
    if low is None:
        values = [_value(point["value"]) for point in probe["points"] if point["feasible"]]
        return ", ".join(values) or "nowhere"
    rule = f"keeps {probe['share']:.0%} of the gain over the random policy, and beats it there"
    return f"{figure(low)} to {figure(probe['feasible']['high'])} ({rule})"


def _value(value: object) -> str:
    if value is None:
        return "as configured"
    return number_or_text(value)
