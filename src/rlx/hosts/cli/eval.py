"""Evaluate checkpoints on the episodes reserved for reports, beside the random and the untrained policy.

A run's evaluations are kept in it, and what is kept is not measured again; a checkpoint outside any run is measured and
printed. `--fresh N` takes episodes that no evaluation of the run has used, and shows what was claimed before.
`--protocol FILE` is a config of which `env` and `eval` count: a project's own file, or a run's config_snapshot.yaml.

Example: rlx eval cartpole_ppo_001
         rlx eval cartpole_ppo_001:best --fresh 100
         rlx eval candidate_002 --like baseline_001
         rlx eval candidate_002 --protocol protocol.yaml --episodes 50
         rlx eval candidate_002 --keep-trajectories
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlx.errors import NotFound, UsageError
from rlx.hosts.cli.count import Count
from rlx.hosts.cli.output import say, table
from rlx.hosts.cli.words import figure, plural, signed
from rlx.runs import project

COLUMNS = {"success_rate": "success", "pass_rate": "passed", "untrained": "untrained", "claimed": "claimed"}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("reference", metavar="RUN[:CHECKPOINT]|PATH", help="a run (latest), RUN:best, or a folder")
    parser.add_argument("--episodes", type=int, metavar="N", help="episodes a seed (20)")
    parser.add_argument("--fresh", type=int, metavar="N", help="N episodes never used before, and what was claimed")
    parser.add_argument("--seed", type=int, metavar="K", help="only this training seed (all)")
    parser.add_argument("--like", metavar="RUN", help="use this run's evaluation protocol")
    parser.add_argument("--protocol", type=Path, metavar="FILE", help="use the `env` and `eval` of this config")
    parser.add_argument("--again", action="store_true", help="measure also what is kept already")
    parser.add_argument("--keep-trajectories", action="store_true", help="keep every step, for `rlx review`")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.evaluate.measure import measure, protocol_for
    from rlx.runs.reference import resolve
    from rlx.runs.run import find

    _refuse_contradictions(args)
    root = project.root()
    reference = resolve(args.reference, root)
    if args.keep_trajectories and reference.run is None:
        raise UsageError("trajectories are kept in a run, and this checkpoint is outside any", hint="name its run")
    like = find(args.like, root=root) if args.like else None
    protocol = protocol_for(
        reference, root=root, episodes=args.fresh or args.episodes, like=like, file=args.protocol,
        is_fresh=args.fresh is not None,
    )  # fmt: skip
    _, absent = reference.present(default="latest", seed=args.seed)
    for missing in absent:
        say(f"{missing.message} ({missing.hint})")
    rows = []
    asked = {"seed": args.seed, "is_again": args.again, "keeps_trajectories": args.keep_trajectories}
    for one in measure(reference, protocol, **asked, progress=Count("episodes")):
        rows.append({**one.summary(), "file": str(one.file.relative_to(root)) if one.file else None})
        if one.seed is not None:
            told = f"seed {one.seed}: {_unit(protocol.metric)}{figure(_score(one.figures))}"
            say(told + (" (stored)" if one.is_stored else ""))
    return {
        "run": reference.run.name if reference.run else None,
        "env": protocol.env.id,
        "fingerprint": protocol.fingerprint(),
        "purpose": protocol.purpose,
        "metric": protocol.metric,
        "seeds": rows,
        "random": rows[0]["random"],
        "missing": [missing.message for missing in absent],
        "exit_code": NotFound.exit_code if absent else 0,
    }


def _refuse_contradictions(args: argparse.Namespace) -> None:
    for name, count in (("--episodes", args.episodes), ("--fresh", args.fresh)):
        if count is not None and count < 1:
            raise UsageError(f"{name} {count}: at least one episode")
    if args.fresh and args.episodes:
        raise UsageError("--fresh N says how many episodes there are", hint=f"leave --episodes {args.episodes} out")
    if args.like and args.protocol:
        raise UsageError("--like and --protocol both say how to measure", hint="leave one of them out")


def render(data: dict[str, Any]) -> str:
    is_return = data["metric"] == "return"
    known = [key for key in COLUMNS if key != data["metric"] and any(key in row for row in data["seeds"])]
    known = known if is_return else ["score", *known]
    headings = {**COLUMNS, "score": data["metric"]}
    header = ["seed", "checkpoint", "step", "n", "mean" if is_return else "mean return", "std", "min", "max"]
    header += [headings[key] for key in known]
    rows = [_cells(str(row["seed"]) if row["seed"] is not None else "–", row, known) for row in data["seeds"]]
    rows.append(_cells("random policy", {"checkpoint": "–", **data["random"]}, known))
    lines = [table(header, rows, right=range(2, len(header))), *_scenarios(data["seeds"]), *_notes(data)]
    lines.append(f"protocol: {data['fingerprint']} ({data['env']}, {data['purpose']} episodes, {data['metric']})")
    if data["run"]:
        is_kept = all(row["file"] for row in data["seeds"])
        place = f"runs/{data['run']}/eval/{data['fingerprint']}/"
        lines.append(f"kept: {place}" if is_kept else f"not kept: {place} cannot be written to")
        lines.append(f"next: rlx video {data['run']}:best")
    return "\n".join(lines)


def _cells(name: str, row: dict[str, Any], known: Sequence[str]) -> list[str]:
    figures = [figure(row[key]) for key in ("mean", "std", "min", "max")]
    step = f"{row['step']:,}" if "step" in row else "–"
    return [name, row["checkpoint"], step, str(row["n"]), *figures, *(_cell(row, key) for key in known)]


def _cell(row: dict[str, Any], key: str) -> str:
    if key not in row:
        return "–"
    if key in ("success_rate", "pass_rate"):
        return f"{row[key]:.0%}"
    return figure(row[key] if key == "score" else _score(row[key]))


def _unit(metric: str) -> str:
    """Return what stands before a score that is no return."""
    return "" if metric == "return" else f"{metric} "


def _score(figures: Mapping[str, Any]) -> float:
    """Return the figure that the protocol's metric names."""
    return float(figures["score"] if "score" in figures else figures["mean"])


def _scenarios(seeds: Sequence[dict[str, Any]]) -> list[str]:
    """Lay out every scenario's figures, seed by seed."""
    rows = [
        [str(row["seed"]), name, str(part["n"]), figure(part["mean"]), _cell(part, "pass_rate")]
        for row in seeds
        for name, part in row.get("scenarios", {}).items()
    ]
    return ["", table(["seed", "scenario", "n", "mean", "passed"], rows, right=(2, 3, 4)), ""] if rows else []


def _notes(data: dict[str, Any]) -> list[str]:
    seeds = data["seeds"]
    notes = list(dict.fromkeys(row["note"] for row in seeds if "note" in row))
    cut = sum(row.get("cut", 0) for row in seeds)
    if cut:
        notes.append(f"{cut} episodes did not end and were cut: add a time_limit wrapper to say how long one is")
    told = [row for row in seeds if "claimed" in row]
    if told:
        claimed = sum(row["claimed"]["score"] for row in told) / len(told)
        fresh = sum(_score(row) for row in told) / len(told)
        by = " and ".join(sorted({row["claimed"]["purpose"] for row in told}))
        change = f"{signed(fresh - claimed)} over {plural(len(told), 'seed')}"
        notes.append(f"claimed {_unit(data['metric'])}{figure(claimed)} ({by}), fresh {figure(fresh)}: {change}")
    return [f"note: {note}" for note in [*data["missing"], *notes]]
