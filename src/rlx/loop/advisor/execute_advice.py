"""Train the plan of an improvement round as a sweep, and report what was tried and what helped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rlx.errors import UsageError
from rlx.loop.advisor.advise import RoundPlan
from rlx.loop.sweep import run_sweep, sweep_log
from rlx.loop.sweep.run_sweep import Report
from rlx.loop.sweep.sweep_report import describe, result_line
from rlx.number_format import signed


def execute(advice: RoundPlan, *, root: Path, report: Report, say: Callable[[str], None]) -> dict[str, Any]:
    """Run the sweep of a plan, and return its result as JSON-able data."""
    if advice.sweep is None:
        raise UsageError("the plan has no variants", hint=f"rlx diagnose {advice.run}")
    run_sweep.start(advice.sweep, root=root, report=report, say=say)
    return outcome(advice, root=root)


def outcome(advice: RoundPlan, *, root: Path) -> dict[str, Any]:
    """Return what a finished round found."""
    assert advice.sweep is not None
    log = sweep_log.find(advice.sweep.name, root=root)
    found = describe(log, root=root)
    by_trial = {row["trial"]: row for row in found["trials"]}
    base = by_trial[0]
    tried = [{**_tried(base, None, base), "what": "the present config"}]
    for number, variant in enumerate(advice.plan.variants, start=1):
        what = ", ".join(f"{key}={value}" for key, value in variant.changes.items())
        if number in by_trial:
            tried.append({**_tried(by_trial[number], variant.rule, base), "what": what})
    return {
        "sweep": log.name,
        "line": result_line(found["confirmation"]),
        "is_confirmed": bool(found["confirmation"].get("is_confirmed")),
        "optimism": found["confirmation"].get("optimism"),
        "best_config": found["best_config"],
        "tried": tried,
    }


def _tried(row: Mapping[str, Any], rule: str | None, base: Mapping[str, Any]) -> dict[str, Any]:
    helped = "–"
    if row["state"] == "failed":
        helped = f"failed: {row['reason']}"
    elif row["share"] < 1.0:
        helped = f"dropped at {row['share']:.0%} of the training"
    elif rule is not None and row["score"] is not None and base["score"] is not None and base["share"] >= 1.0:
        helped = f"{signed(row['score'] - base['score'])} in the search, not confirmed by itself"
    return {
        "run": row["run"], "score": row["score"], "seeds": row["seeds"], "rule": rule, "helped": helped,
    }  # fmt: skip
