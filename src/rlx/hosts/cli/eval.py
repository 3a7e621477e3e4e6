"""Evaluate checkpoints on the episodes reserved for reports, next to the random and the untrained policy.

rlx stores a run's evaluations in the run and does not measure a stored one again. For a checkpoint outside any run it
only prints the result. `--fresh N` uses episodes that no evaluation of the run has used, and shows the earlier claim.
`--protocol FILE` is a config whose `env` and `eval` sections rlx uses: your own file, or a run's config_snapshot.yaml.

Example: rlx eval cartpole_ppo_001
         rlx eval cartpole_ppo_001:best --fresh 100
         rlx eval candidate_002 --like baseline_001
         rlx eval candidate_002 --protocol protocol.yaml --episodes 50
         rlx eval candidate_002 --keep-trajectories
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlx.errors import NotFound, UsageError
from rlx.hosts.cli.arguments import Args, Data, Parser, add_trust, find_run, obey_trust, refuse_below_one
from rlx.hosts.cli.format import NOTHING, counted, figure, signed
from rlx.hosts.cli.output import exit_code_if, labelled, say, table
from rlx.hosts.cli.progress import Count
from rlx.runs import project

COLUMNS = {"success_rate": "success", "pass_rate": "passed", "untrained": "untrained", "claimed": "claimed"}


def arguments(parser: Parser) -> None:
    parser.add_argument("reference", metavar="RUN[:CHECKPOINT]|PATH", help="a run (latest), RUN:best, or a folder")
    parser.add_argument("--episodes", type=int, metavar="N", help="episodes per seed (default: 20)")
    parser.add_argument("--fresh", type=int, metavar="N", help="use N new episodes and compare with the earlier claim")
    parser.add_argument("--seed", type=int, metavar="K", help="only this training seed (default: all)")
    parser.add_argument("--like", metavar="RUN", help="use this run's evaluation protocol")
    parser.add_argument("--protocol", type=Path, metavar="FILE", help="use the `env` and `eval` of this config")
    parser.add_argument("--again", action="store_true", help="measure stored evaluations again")
    parser.add_argument("--keep-trajectories", action="store_true", help="store every step, for `rlx review`")
    add_trust(parser)


def run(args: Args) -> Data:
    from rlx.evaluate.measure import measure, protocol_for
    from rlx.runs.run_reference import resolve

    obey_trust(args)
    _refuse_contradictions(args)
    root = project.root()
    reference = resolve(args.reference, root)
    if args.keep_trajectories and reference.run is None:
        raise UsageError("trajectories are stored in a run, and this checkpoint is outside any", hint="name its run")
    protocol = protocol_for(
        reference, root=root, episodes=args.fresh or args.episodes, like=args.like and find_run(args.like),
        file=args.protocol, is_fresh=args.fresh is not None,
    )  # fmt: skip
    _, absent = reference.present(default="latest", seed=args.seed)
    for missing in absent:
        say(f"{missing.message} ({missing.hint})")
    rows = []
    options = {"seed": args.seed, "is_again": args.again, "keeps_trajectories": args.keep_trajectories}
    for evaluation in measure(reference, protocol, **options, progress=Count("episodes")):
        file = evaluation.file and str(evaluation.file.relative_to(root))
        rows.append({**evaluation.summary(), "file": file})
        if evaluation.seed is not None:
            stored = " (stored)" if evaluation.is_stored else ""
            say(f"seed {evaluation.seed}: {_unit(protocol.metric)}{figure(_score(evaluation.figures))}{stored}")
    return {
        "run": reference.run and reference.run.name,
        "env": protocol.env.id,
        "fingerprint": protocol.fingerprint(),
        "purpose": protocol.purpose,
        "metric": protocol.metric,
        "seeds": rows,
        "random": rows[0]["random"],
        "missing": [missing.message for missing in absent],
        "exit_code": exit_code_if(absent, NotFound),
    }


def _refuse_contradictions(args: Args) -> None:
    refuse_below_one(args, "episodes", "fresh")
    if args.fresh and args.episodes:
        raise UsageError("--fresh N already sets the number of episodes", hint=f"leave out --episodes {args.episodes}")
    if args.like and args.protocol:
        raise UsageError("--like and --protocol both choose the protocol", hint="leave out one of them")


def render(data: Data) -> str:
    seeds = data["seeds"]
    measured = {key for row in seeds for key in row} - {data["metric"]}
    columns = {key: title for key, title in COLUMNS.items() if key in measured}
    mean = "mean"
    if data["metric"] != "return":
        mean = "mean return"
        columns = {"score": data["metric"], **columns}
    header = ["seed", "checkpoint", "step", "n", mean, "std", "min", "max", *columns.values()]
    rows = [_cells(row["seed"], row, columns) for row in seeds]
    rows.append(_cells("random policy", {"checkpoint": NOTHING, **data["random"]}, columns))
    fields: dict[str, object] = {
        "note": _notes(data),
        "protocol": f"{data['fingerprint']} ({data['env']}, {data['purpose']} episodes, {data['metric']})",
    }
    if data["run"]:
        place = f"runs/{data['run']}/eval/{data['fingerprint']}/"
        if all(row["file"] for row in seeds):
            fields["stored"] = place
        else:
            fields["not stored"] = f"rlx cannot write to {place}"
        fields["next"] = f"rlx video {data['run']}:best"
    return "\n".join([table(header, rows, right=range(2, len(header))), *_scenarios(seeds), labelled(fields)])


def _cells(name: object, row: Data, columns: Mapping[str, str]) -> list[str]:
    step = NOTHING
    if "step" in row:
        step = f"{row['step']:,}"
    figures = [figure(row[key]) for key in ("mean", "std", "min", "max")]
    label = NOTHING if name is None else str(name)
    return [label, row["checkpoint"], step, str(row["n"]), *figures, *(_cell(row, key) for key in columns)]


def _cell(row: Data, key: str) -> str:
    if key not in row:
        return NOTHING
    if key in ("success_rate", "pass_rate"):
        return f"{row[key]:.0%}"
    if key == "score":
        return figure(row[key])
    return figure(_score(row[key]))


def _unit(metric: str) -> str:
    """Return the name in front of a score that is not a return."""
    if metric == "return":
        return ""
    return f"{metric} "


def _score(figures: Mapping[str, Any]) -> float:
    """Return the value of the protocol's metric."""
    if "score" in figures:
        return float(figures["score"])
    return float(figures["mean"])


def _scenarios(seeds: Sequence[Data]) -> list[str]:
    """Return a table of every scenario, seed by seed."""
    rows = [
        [str(row["seed"]), name, str(part["n"]), figure(part["mean"]), _cell(part, "pass_rate")]
        for row in seeds
        for name, part in row.get("scenarios", {}).items()
    ]
    if not rows:
        return []
    return ["", table(["seed", "scenario", "n", "mean", "passed"], rows, right=(2, 3, 4)), ""]


def _notes(data: Data) -> list[str]:
    seeds = data["seeds"]
    notes = [*data["missing"], *dict.fromkeys(row["note"] for row in seeds if "note" in row)]
    truncated = sum(row.get("cut", 0) for row in seeds)
    if truncated:
        notes.append(f"{truncated} episodes did not end, so rlx stopped them: add a time_limit wrapper")
    claims = [row for row in seeds if "claimed" in row]
    if claims:
        claimed = sum(row["claimed"]["score"] for row in claims) / len(claims)
        fresh = sum(_score(row) for row in claims) / len(claims)
        by = " and ".join(sorted({row["claimed"]["purpose"] for row in claims}))
        change = f"{signed(fresh - claimed)} over {counted(len(claims), 'seed')}"
        notes.append(f"claimed {_unit(data['metric'])}{figure(claimed)} ({by}), fresh {figure(fresh)}: {change}")
    return notes
