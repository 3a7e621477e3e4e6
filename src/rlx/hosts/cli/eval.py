"""Evaluate checkpoints on the episodes reserved for reports, and show the random policy's score beside them.

A run's evaluations are kept in it; a checkpoint outside any run is evaluated and printed.

Example: rlx eval cartpole_ppo_001
         rlx eval cartpole_ppo_001:best --episodes 100 --seed 3
         rlx eval candidate_002 --like baseline_001
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from rlx.errors import UsageError
from rlx.hosts.cli.output import say, table
from rlx.runs import project


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("reference", metavar="RUN[:CHECKPOINT]|PATH", help="a run (latest), RUN:best, or a folder")
    parser.add_argument("--episodes", type=int, metavar="N", help="episodes a seed (20)")
    parser.add_argument("--seed", type=int, metavar="K", help="only this training seed (all)")
    parser.add_argument("--like", metavar="RUN", help="use this run's evaluation protocol")


def run(args: argparse.Namespace) -> dict[str, Any]:
    from rlx.evaluate.measure import measure, protocol_for
    from rlx.runs.reference import resolve
    from rlx.runs.run import find

    if args.episodes is not None and args.episodes < 1:
        raise UsageError(f"--episodes {args.episodes}: at least one episode")
    root = project.root()
    reference = resolve(args.reference, root)
    like = find(args.like, root=root) if args.like else None
    protocol = protocol_for(reference, root=root, episodes=args.episodes, like=like)
    rows, random, fingerprint = [], None, None
    for one in measure(reference, protocol, seed=args.seed):
        random, fingerprint = one.yardsticks["random"], one.evaluation.fingerprint
        rows.append({**one.summary(), "file": str(one.file.relative_to(root)) if one.file else None})
        if one.seed is not None:
            say(f"seed {one.seed}: {one.evaluation.mean:.4g}")
    name = reference.run.name if reference.run else None
    return {"run": name, "env": protocol.env.id, "fingerprint": fingerprint, "seeds": rows, "random": random}


def render(data: dict[str, Any]) -> str:
    columns = {"success_rate": "success", "untrained": "untrained"}
    known = [key for key in columns if any(key in row for row in data["seeds"])]
    header = ["seed", "checkpoint", "step", "n", "mean", "std", "min", "max", *(columns[key] for key in known)]
    rows = [_cells(str(row["seed"]) if row["seed"] is not None else "–", row, known) for row in data["seeds"]]
    rows.append(_cells("random policy", {"checkpoint": "–", **data["random"]}, known))
    lines = [table(header, rows, right=range(2, len(header)))]
    lines += [f"note: {note}" for note in dict.fromkeys(row["note"] for row in data["seeds"] if "note" in row)]
    cut = sum(row.get("cut", 0) for row in data["seeds"])
    if cut:
        lines.append(f"note: {cut} episodes did not end and were cut: add a time_limit wrapper to say how long one is")
    lines.append(f"protocol: {data['fingerprint']} ({data['env']}, report episodes)")
    if data["run"]:
        lines += [f"kept: runs/{data['run']}/eval/{data['fingerprint']}/", f"next: rlx video {data['run']}:best"]
    return "\n".join(lines)


def _cells(name: str, row: dict[str, Any], known: Sequence[str]) -> list[str]:
    figures = [f"{row[key]:.4g}" for key in ("mean", "std", "min", "max")]
    step = f"{row['step']:,}" if "step" in row else "–"
    return [name, row["checkpoint"], step, str(row["n"]), *figures, *(_cell(row, key) for key in known)]


def _cell(row: dict[str, Any], key: str) -> str:
    if key not in row:
        return "–"
    return f"{row[key]:.0%}" if key == "success_rate" else f"{row[key]['mean']:.4g}"
