"""Show one run: what it is, how each seed stands, its checkpoints and evaluations, where it came from.

Example: rlx info cartpole_ppo_001
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from rlx.errors import EvidenceInvalid
from rlx.hosts.cli import words
from rlx.hosts.cli.output import paint_state, table
from rlx.runs import project
from rlx.runs.origins import differences, traits_of
from rlx.runs.run import Run, Seed, find
from rlx.runs.summary import BROKEN, final_returns, seed_summary, spread, summarize

TRACEBACK_HINT = "the traceback: rlx info {name} --traceback"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="a run's name")
    parser.add_argument("--traceback", action="store_true", help="also the end of the traceback of failed seeds")


def run(args: argparse.Namespace) -> dict[str, Any]:
    found = find(args.run, root=project.root())
    summary = summarize(found.path)
    del summary["is_settled"]
    if summary["status"] == BROKEN:
        raise EvidenceInvalid(f"{found.name} cannot be read: {summary['reason']}",
                              hint=f"restore it from a copy, or delete it: rlx rm {found.name}")  # fmt: skip
    try:
        return _describe(found, summary, with_traceback=args.traceback)
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise EvidenceInvalid(f"{found.name} cannot be read: {error}", hint=f"rlx logs {found.name}") from None


def _describe(found: Run, summary: dict[str, Any], *, with_traceback: bool) -> dict[str, Any]:
    scores = final_returns(found)
    attempts = [attempt for seed in found.seeds for attempt in seed.attempts]
    newest = max(attempts, key=lambda attempt: attempt.get("time", 0.0), default={})
    evaluations = _evaluations(found)
    return {
        **summary,
        "path": str(found.path),
        "id": found.metadata.get("id"),
        "config_hash": found.metadata.get("config_hash"),
        "lineage": found.metadata.get("lineage") or {},
        "config": found.config,
        "per_seed": [
            {
                **_told(seed_summary(seed, scores=scores), seed),
                "attempts": len(seed.attempts),
                "resumed": _resumed(seed),
            }
            | ({"traceback": _traceback(seed)} if with_traceback else {})
            for seed in found.seeds
        ],
        "checkpoints": [checkpoint for seed in found.seeds for checkpoint in _checkpoints(seed)],
        "evaluations": evaluations,
        "provenance": {"argv": found.metadata.get("argv"), **newest},
        "differences": differences(found),
        "next": _next(found, summary["status"], is_evaluated=bool(evaluations)),
    }


def _told(summary: dict[str, Any], seed: Seed) -> dict[str, Any]:
    """Say with a seed's summary which of its files is damaged."""
    return {**summary, "reason": summary["reason"] or seed.damage}


def _resumed(seed: Seed) -> list[str]:
    """Return the labels of the seed's resumes: `exact from step 512`."""
    return [f"{event.get('label')} from step {event.get('step', 0):,}" for event in seed.events
            if event.get("event") == "resumed"]  # fmt: skip


def _traceback(seed: Seed) -> list[str]:
    last = seed.events[-1] if seed.events else {}
    return [str(line) for line in last.get("traceback", [])]


def _checkpoints(seed: Seed) -> list[dict[str, Any]]:
    """Read the manifests only: what a checkpoint holds is verified when it is loaded."""

    found = []
    for path in seed.checkpoints.glob("*/manifest.json"):
        if path.parent.name.startswith("."):
            continue
        size = sum(file.stat().st_size for file in path.parent.iterdir())
        step, resume = _held(path)
        found.append({"seed": seed.number, "name": path.parent.name, "step": step, "resume": resume, "bytes": size})
    return sorted(found, key=lambda checkpoint: (checkpoint["step"], checkpoint["name"]))


def _held(manifest: Path) -> tuple[int, str]:
    """Return the step of a checkpoint and how exactly it can be gone on from."""
    from rlx import files

    try:
        document = files.read_json(manifest)
        return int(document.get("step", 0)), str((document.get("resume") or {}).get("label") or "own file")
    except (OSError, ValueError, AttributeError, TypeError):
        return 0, "damaged: manifest.json"


def _evaluations(found: Run) -> list[dict[str, Any]]:
    """Pool the evaluations of one protocol and one checkpoint name over seeds."""
    from rlx import files

    pools: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for document in sorted(found.evaluations(), key=lambda document: document.get("step") or 0):
        checkpoint = re.sub(r"^seed_\d+_", "", document["name"])
        pools.setdefault((str(document.get("purpose")), document["fingerprint"], checkpoint), []).append(document)
    return [
        {
            "purpose": purpose,
            "fingerprint": fingerprint,
            "checkpoint": checkpoint,
            "episodes": sum(_played(document) for document in documents),
            "return": spread(
                [files.number(document.get("score", document["mean"])) for document in documents],
                source=purpose,
                metric=str(documents[0].get("metric") or "return"),
            ),
        }
        for (purpose, fingerprint, checkpoint), documents in pools.items()
    ]


def _played(document: dict[str, Any]) -> int:
    """Count the episodes that the mean is over, without those of the scenarios."""
    return sum("scenario" not in episode for episode in document.get("episodes") or [])


def _next(run: Run, status: str, *, is_evaluated: bool) -> str:
    name = run.name
    if status == "running":
        return f"rlx watch {name}"
    if run.study:
        return "rlx next"
    if run.is_script or (run.is_opaque and status == "completed"):
        return f"rlx plot {name}"
    if status == "completed":
        return f"rlx plot {name}" if is_evaluated else f"rlx eval {name}"
    return f"rlx resume {name}"


def render(data: dict[str, Any]) -> str:
    blocks = [_identity(data), _config(data["config"]), _seeds(data), _checkpoint_table(data["checkpoints"]),
              _evaluation_table(data["evaluations"]), _provenance(data), f"next: {data['next']}"]  # fmt: skip
    return "\n\n".join(block for block in blocks if block)


def _identity(data: dict[str, Any]) -> str:
    score = data["return"]
    source = f" ({score['source']}, n = {score['n']} seeds)" if score else ""
    lines = [
        f"run: {data['name']}",
        f"status: {paint_state(data['status'])} ({data['tally']})",
        f"path: {data['path']}",
        f"created: {words.when(data['created'])}, trained {words.duration(data['seconds'])}",
        f"{score['metric'] if score else 'return'}: {words.spread(score)}{source}",
    ]
    lines += [f"{key.replace('_', ' ')}: {value}" for key, value in data["lineage"].items()]
    lines += [f"tags: {' '.join(data['tags'])}"] if data["tags"] else []
    return "\n".join(lines + ([f"note: {data['note']}"] if data["note"] else []))


def _config(config: dict[str, Any]) -> str:
    lines = []
    for section in ("env", "algo", "policy", "eval"):
        content = config.get(section)
        if isinstance(content, dict):
            shown = [f"{key} {words.setting(value)}" for key, value in content.items() if value not in ({}, [], None)]
            lines.append(f"{section}: {', '.join(shown)}")
        elif content is not None:
            lines.append(f"{section}: {content}")
    return "\n".join(lines)


def _seeds(data: dict[str, Any]) -> str:
    rows = []
    for seed in data["per_seed"]:
        detail = "; ".join(
            part for part in (seed["reason"], *(f"resumed {label}" for label in seed["resumed"])) if part
        )
        rows.append([str(seed["seed"]), seed["status"], words.steps(seed["step"], data["planned_steps"]),
                     words.figure(seed["return"]), words.duration(seed["seconds"]), detail])  # fmt: skip
    metric = data["return"]["metric"] if data["return"] else "return"
    text = table(["seed", "status", "step", metric, "time", ""], rows, right=(0, 2, 3, 4))
    for seed in data["per_seed"]:
        if seed.get("traceback"):
            text += f"\n\nseed {seed['seed']}:\n" + "\n".join(f"  {line}" for line in seed["traceback"])
    has_failed = any(seed["status"] == "failed" for seed in data["per_seed"])
    is_shown = any("traceback" in seed for seed in data["per_seed"])
    return text + (f"\n{TRACEBACK_HINT.format(name=data['name'])}" if has_failed and not is_shown else "")


def _checkpoint_table(checkpoints: list[dict[str, Any]]) -> str:
    rows = []
    for number in dict.fromkeys(one["seed"] for one in checkpoints):
        own = {one["name"]: one for one in checkpoints if one["seed"] == number}
        named = [f"{own[name]['step']:,}" if name in own else words.NOTHING for name in ("best", "latest")]
        others = [name for name in own if name not in ("best", "latest")]
        resume = own["latest"]["resume"] if "latest" in own else words.NOTHING
        size = words.size(sum(one["bytes"] for one in own.values()))
        rows.append([str(number), *named, resume, size, " ".join(others)])
    header = ["seed", "best at", "latest at", "resume", "size", "other checkpoints"]
    return table(header, rows, right=(0, 1, 2, 4)) if rows else ""


def _evaluation_table(evaluations: list[dict[str, Any]]) -> str:
    """Lay out every report and, of the evaluations during training, the best."""
    selection = [one for one in evaluations if one["purpose"] == "selection"]
    best = max(selection, key=lambda one: float(one["return"]["mean"]), default=None)
    shown = [one for one in evaluations if one is best or one["purpose"] != "selection"]
    rows = [[one["purpose"], one["checkpoint"], str(one["return"]["n"]), f"{one['episodes']:,}",
             words.spread(one["return"]), one["return"]["metric"], one["fingerprint"]] for one in shown]  # fmt: skip
    header = ["evaluation", "of", "seeds", "episodes", "score", "metric", "protocol"]
    if {row[5] for row in rows} == {"return"}:
        header, rows = [*header[:4], "return", header[6]], [[*row[:5], row[6]] for row in rows]
    text = table(header, rows, right=(2, 3, 4)) if rows else ""
    return text + (f"\nthe best of {len(selection)} selections is shown" if len(selection) > 1 else "")


def _provenance(data: dict[str, Any]) -> str:
    newest = data["provenance"]
    if "versions" not in newest:
        return ""
    traits = traits_of(newest)
    versions = ", ".join(f"{name} {version}" for name, version in newest["versions"].items())
    lines = [f"code: {traits['code']}", f"versions: {versions}",
             f"machine: {traits['host']}, {newest.get('cores')} cores, {traits['platform']}",
             f"threads: {traits['threads']}"]  # fmt: skip
    untracked = (newest.get("git") or {}).get("untracked_total")
    lines += [f"untracked files: {untracked}"] if untracked else []
    lines += [f"DIFFERS between attempts: {difference}" for difference in data["differences"]]
    return "\n".join(lines)
