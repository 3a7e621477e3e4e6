"""The report of a research campaign: the claim, the scoreboard, everything that was tried, and negative results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlx.loop.research.campaign import BASE, FIRST_CONFIRM_SEED, mean_of
from rlx.loop.research.run_research import request_of, rounds_of, variants_by_config
from rlx.loop.sweep.sweep_log import BEST, SweepLog
from rlx.number_format import figure, signed

WORDS = {"advance": "became the head", "drop": "dropped", "invalid": "failed"}


def describe_research(log: SweepLog, *, root: Path) -> dict[str, Any]:
    """Return a campaign as JSON-able data."""
    events = log.ledger.events()
    state = log.state()
    ended = next((event for event in events if event.kind == "claimed"), None)
    races = {event["config"]: event.fields for event in events if event.kind == "raced"}
    rounds = rounds_of(log)
    variants = variants_by_config(rounds)
    request = request_of(log)
    rows = []
    for number in sorted({BASE, *variants}):
        jobs = sorted(job for job in state.scores if job.trial == number)
        scores = [state.scores[job].score for job in jobs if job.seed < FIRST_CONFIRM_SEED]
        claimed = [state.scores[job].score for job in jobs if job.seed >= FIRST_CONFIRM_SEED]
        rows.append(_row(number, variants.get(number), races.get(number), scores, claimed, state.runs.get(number)))
    best = None
    if (log.folder / BEST).is_file():
        best = str((log.folder / BEST).relative_to(root))
    over = ended.fields if ended else {}
    return {
        "research": log.name,
        "run": events[0]["run"],
        "state": _state(log, over),
        "rounds": request.rounds,
        "rounds_done": len(rounds),
        "budget": request.budget,
        "spent": len(state.scores),
        "head": over.get("head", next((race["config"] for race in reversed(races.values())
                                       if race["step"] == "advance"), BASE)),
        "stop": over.get("stop", ""),
        "claim": over.get("claim"),
        "line": claim_line(over),
        "configs": rows,
        "refused": [dict(row, round=known.number) for known in rounds for row in known.refused],
        "audit": [dict(row, round=known.number) for known in rounds for row in known.audit],
        "best_config": best,
    }  # fmt: skip


def _state(log: SweepLog, over: Mapping[str, Any]) -> str:
    if over:
        return "completed"
    if log.is_running:
        return "running"
    return "interrupted"


def _row(
    number: int,
    variant: Mapping[str, Any] | None,
    race: Mapping[str, Any] | None,
    scores: list[float | None],
    claimed: list[float | None],
    run: str | None,
) -> dict[str, Any]:
    variant = variant or {"changes": {}, "rule": "", "reason": "the original config", "round": 0, "source": "run"}
    outcome = "the original config"
    if race:
        outcome = f"{WORDS.get(race['step'], race['step'])}: {race['reason']}"
    elif number != BASE:
        outcome = "not raced"
    return {
        "config": number,
        "run": run,
        "round": variant["round"],
        "changes": dict(variant["changes"]),
        "rule": variant["rule"],
        "source": variant["source"],
        "scores": scores,
        "claimed": claimed,
        "mean": mean_of(scores),
        "step": (race or {}).get("step"),
        "outcome": outcome,
    }


def claim_line(over: Mapping[str, Any]) -> str:
    """Spell the claim of a campaign in one line."""
    if not over:
        return ""
    claim = over.get("claim")
    if claim is None:
        return "no claim: no variant became the head"
    effect = f"{signed(claim['effect'])} [{_end(claim['interval'][0])}, {_end(claim['interval'][1])}]"
    if claim["answer"] == "confirmed":
        return f"confirmed {effect} over the original config on fresh seeds, {claim['reason']}"
    return f"not confirmed ({claim['answer']}): {effect}, {claim['reason']}"


def _end(value: float | None) -> str:
    if value is None:
        return "open"
    return signed(value)


def markdown(data: Mapping[str, Any], *, picture: str | None = None) -> str:
    """Return the report as Markdown."""
    lines = [
        f"# {data['research']}",
        "",
        f"Research on the config of {data['run']}: {data['rounds_done']} of {data['rounds']} rounds, "
        f"{data['spent']} of {data['budget']} seeds.",
        "",
        f"**{data['line'] or 'The campaign is not over.'}**",
        "",
        "A campaign makes one claim, against the original config, on seeds that the search did not use, at level 0.05.",
        "Environment, evaluation and training steps are the same for all configs.",
        "",
    ]
    if picture:
        lines += [f"![progress]({picture})", ""]
    lines += [
        "## Scoreboard",
        "",
        "| config | round | changes to the head | mean | seeds | outcome |",
        "|---|---|---|---|---|---|",
    ]
    ordered = sorted(data["configs"], key=lambda row: -(row["mean"] if row["mean"] is not None else float("-inf")))
    lines += [_table_row(row) for row in ordered]
    negative = [row for row in data["configs"] if row["step"] in ("drop", "invalid")]
    lines += ["", "## Negative results", ""]
    lines += [f"- {_changes(row['changes'])}: {row['outcome']}" for row in negative] or ["None."]
    if data["refused"]:
        lines += ["", "## Not tried", ""]
        lines += [f"- round {row['round']}: {_changes(row['changes'])}: {row['reason']}" for row in data["refused"]]
    if data["best_config"]:
        lines += ["", f"The head as a config: `{data['best_config']}`"]
    return "\n".join(lines) + "\n"


def _table_row(row: Mapping[str, Any]) -> str:
    mean = "–"
    if row["mean"] is not None:
        mean = figure(row["mean"])
    cells = [
        str(row["config"]),
        str(row["round"]),
        _changes(row["changes"]),
        mean,
        str(len(row["scores"])),
        row["outcome"],
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _changes(changes: Mapping[str, Any]) -> str:
    if not changes:
        return "–"
    return ", ".join(f"`{key}={value}`" for key, value in changes.items())
