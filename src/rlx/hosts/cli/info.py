"""Show one run: its config, seeds, checkpoints, evaluations and origin.

Example: rlx info cartpole_ppo_001
"""

import re
from pathlib import Path

from rlx.errors import EvidenceInvalid, FileDamaged
from rlx.hosts.cli.arguments import Args, Data, Parser, add_run, find_run
from rlx.hosts.cli.format import NOTHING, duration, figure, setting, size, steps, when
from rlx.hosts.cli.format import spread as spell_spread
from rlx.hosts.cli.output import labelled, paint_state, table
from rlx.runs.provenance import differences, traits_of
from rlx.runs.run import Run, Seed, deleted_note
from rlx.runs.summary import BROKEN, UNREADABLE, final_returns, seed_summary, spread, summarize


def arguments(parser: Parser) -> None:
    add_run(parser)
    parser.add_argument("--traceback", action="store_true", help="also print the end of the traceback of failed seeds")


def run(args: Args) -> Data:
    run = find_run(args.run)
    summary = summarize(run.path)
    del summary["is_settled"]
    if summary["status"] == BROKEN:
        hint = f"restore it from a copy, or delete it: rlx rm {run.name}"
        raise EvidenceInvalid(f"{run.name} cannot be read: {summary['reason']}", hint=hint)
    try:
        return _describe(run, summary, with_traceback=args.traceback)
    except FileDamaged:
        raise
    except UNREADABLE as error:
        raise EvidenceInvalid(f"{run.name} cannot be read: {error}", hint=f"rlx logs {run.name}") from None


def _describe(run: Run, summary: Data, *, with_traceback: bool) -> Data:
    scores = final_returns(run)
    attempts = [attempt for seed in run.seeds for attempt in seed.attempts]
    newest = max(attempts, key=lambda attempt: attempt.get("time", 0.0), default={})
    evaluations = _evaluations(run)
    per_seed = []
    for seed in run.seeds:
        row = {**seed_summary(seed, scores=scores), "attempts": len(seed.attempts), "resumed": _resumes(seed)}
        row["reason"] = row["reason"] or seed.damage
        if with_traceback:
            row["traceback"] = [str(line) for event in seed.events[-1:] for line in event.get("traceback", [])]
        per_seed.append(row)
    return {
        **summary,
        "path": str(run.path),
        "id": run.metadata.get("id"),
        "config_hash": run.metadata.get("config_hash"),
        "lineage": run.metadata.get("lineage") or {},
        "config": run.config,
        "per_seed": per_seed,
        "checkpoints": [checkpoint for seed in run.seeds for checkpoint in _checkpoints(seed)],
        "evaluations": evaluations,
        "provenance": {"argv": run.metadata.get("argv"), **newest},
        "missing": deleted_note(run),
        "differences": differences(run),
        "next": _next(run, summary["status"], is_evaluated=bool(evaluations)),
    }


def _resumes(seed: Seed) -> list[str]:
    """Return the labels of the seed's resumes: `exact from step 512`."""
    resumes = [event for event in seed.events if event.get("event") == "resumed"]
    return [f"{event.get('label')} from step {event.get('step', 0):,}" for event in resumes]


def _checkpoints(seed: Seed) -> list[Data]:
    """Read the manifests only; the content of a checkpoint is verified when it is loaded."""
    rows = []
    for path in seed.checkpoints.glob("*/manifest.json"):
        folder = path.parent
        if not folder.name.startswith("."):
            step, resume = _step_and_resume(path)
            total = sum(file.stat().st_size for file in folder.iterdir())
            rows.append({"seed": seed.number, "name": folder.name, "step": step, "resume": resume, "bytes": total})
    return sorted(rows, key=lambda row: (row["step"], row["name"]))


def _step_and_resume(manifest: Path) -> tuple[int, str]:
    """Return the step of a checkpoint and how faithfully training can continue from it."""
    from rlx import files

    try:
        document = files.read_json(manifest)
        return int(document.get("step", 0)), str((document.get("resume") or {}).get("label") or "own file")
    except (OSError, ValueError, AttributeError, TypeError):
        return 0, "damaged: manifest.json"


def _evaluations(run: Run) -> list[Data]:
    """Pool the evaluations of one protocol and one checkpoint name over seeds."""
    from rlx import files

    pools: dict[tuple[str, str, str], list[Data]] = {}
    for document in sorted(run.evaluations(), key=lambda document: document.get("step") or 0):
        if document.get("seed") in run.deleted_seeds:
            continue
        checkpoint = re.sub(r"^seed_\d+_", "", document["name"])
        pools.setdefault((str(document.get("purpose")), document["fingerprint"], checkpoint), []).append(document)
    rows = []
    for (purpose, fingerprint, checkpoint), documents in pools.items():
        values = [files.number(document.get("score", document["mean"])) for document in documents]
        episodes = [episode for document in documents for episode in document.get("episodes") or []]
        rows.append({
            "purpose": purpose,
            "fingerprint": fingerprint,
            "checkpoint": checkpoint,
            "episodes": sum("scenario" not in episode for episode in episodes),
            "return": spread(values, source=purpose, metric=str(documents[0].get("metric") or "return")),
        })  # fmt: skip
    return rows


def _next(run: Run, status: str, *, is_evaluated: bool) -> str:
    if status == "running":
        return f"rlx watch {run.name}"
    if run.study:
        return "rlx next"
    is_completed = status == "completed"
    if run.is_script or (is_completed and (run.is_opaque or is_evaluated)):
        return f"rlx plot {run.name}"
    if is_completed:
        return f"rlx eval {run.name}"
    return f"rlx resume {run.name}"


def render(data: Data) -> str:
    blocks = [_identity(data), _config(data["config"]), _seeds(data), _checkpoint_table(data["checkpoints"]),
              _evaluation_table(data["evaluations"]), _provenance(data), f"next: {data['next']}"]  # fmt: skip
    return "\n\n".join(filter(None, blocks))


def _metric(data: Data) -> str:
    return str((data["return"] or {}).get("metric", "return"))


def _identity(data: Data) -> str:
    score = spell_spread(data["return"])
    if data["return"]:
        score += f" ({data['return']['source']}, n = {data['return']['n']} seeds)"
    return labelled({
        "run": data["name"],
        "status": f"{paint_state(data['status'])} ({data['tally']})",
        "path": data["path"],
        "created": f"{when(data['created'])}, trained {duration(data['seconds'])}",
        _metric(data): score,
        **{key.replace("_", " "): value for key, value in data["lineage"].items()},
        "tags": " ".join(data["tags"]),
        "note": data["note"],
        "missing": data["missing"],
    })  # fmt: skip


def _config(config: Data) -> str:
    fields: dict[str, object] = {}
    for section in ("env", "algo", "policy", "eval"):
        content = config.get(section)
        if isinstance(content, dict):
            settings = [f"{key} {setting(value)}" for key, value in content.items() if value not in ({}, [], None)]
            content = ", ".join(settings)
        fields[section] = content
    return labelled(fields)


def _seeds(data: Data) -> str:
    rows = []
    tracebacks = []
    for seed in data["per_seed"]:
        reached = steps(seed["step"], data["planned_steps"])
        details = [seed["reason"], *(f"resumed {label}" for label in seed["resumed"])]
        rows.append([str(seed["seed"]), seed["status"], reached, figure(seed["return"]), duration(seed["seconds"]),
                     "; ".join(filter(None, details))])  # fmt: skip
        if seed.get("traceback"):
            tracebacks.append("\n  ".join([f"\n\nseed {seed['seed']}:", *seed["traceback"]]))
    text = table(["seed", "status", "step", _metric(data), "time", ""], rows, right=(0, 2, 3, 4)) + "".join(tracebacks)
    is_failed = any(seed["status"] == "failed" for seed in data["per_seed"])
    if is_failed and not any("traceback" in seed for seed in data["per_seed"]):
        text += f"\nthe traceback: rlx info {data['name']} --traceback"
    return text


def _checkpoint_table(checkpoints: list[Data]) -> str:
    if not checkpoints:
        return ""
    rows = []
    for number in dict.fromkeys(row["seed"] for row in checkpoints):
        own = {row["name"]: row for row in checkpoints if row["seed"] == number}
        total = size(sum(row["bytes"] for row in own.values()))
        named_steps = [f"{own[name]['step']:,}" if name in own else NOTHING for name in ("best", "latest")]
        resume = own.get("latest", {}).get("resume", NOTHING)
        others = [name for name in own if name not in ("best", "latest")]
        rows.append([str(number), *named_steps, resume, total, " ".join(others)])
    header = ["seed", "best at", "latest at", "resume", "size", "other checkpoints"]
    return table(header, rows, right=(0, 1, 2, 4))


def _evaluation_table(evaluations: list[Data]) -> str:
    """Lay out every report, and the best evaluation during training."""
    selections = [row for row in evaluations if row["purpose"] == "selection"]
    best = max(selections, key=lambda row: float(row["return"]["mean"]), default=None)
    shown = [row for row in evaluations if row is best or row["purpose"] != "selection"]
    if not shown:
        return ""
    is_return = {row["return"]["metric"] for row in shown} == {"return"}
    header = ["evaluation", "of", "seeds", "episodes", "score", "metric", "protocol"]
    rows = [[row["purpose"], row["checkpoint"], str(row["return"]["n"]), f"{row['episodes']:,}",
             spell_spread(row["return"]), row["return"]["metric"], row["fingerprint"]] for row in shown]  # fmt: skip
    if is_return:  # the heading replaces the column
        header[4] = "return"
        for row in [header, *rows]:
            del row[5]
    text = table(header, rows, right=(2, 3, 4))
    if len(selections) > 1:
        text += f"\nonly the best of {len(selections)} selections is shown"
    return text


def _provenance(data: Data) -> str:
    newest = data["provenance"]
    if "versions" not in newest:
        return ""
    traits = traits_of(newest)
    return labelled({
        "code": traits["code"],
        "versions": ", ".join(f"{name} {version}" for name, version in newest["versions"].items()),
        "machine": f"{traits['host']}, {newest.get('cores')} cores, {traits['platform']}",
        "threads": traits["threads"],
        "untracked files": (newest.get("git") or {}).get("untracked_total") or None,
        "DIFFERS between attempts": data["differences"],
    })  # fmt: skip
