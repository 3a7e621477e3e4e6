"""A run, or a project's runs, in a few lines: what there is, what came out, what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rlx.diagnose.analyze import analyze, verdict
from rlx.diagnose.case import Case
from rlx.diagnose.diagnose import diagnose


def summarize(case: Case) -> dict[str, Any]:
    """Describe one run: its answer, its scores beside the random policy, and its first findings."""
    found, told = diagnose(case), analyze(case)
    scores = [seed.report.score for seed in case.seeds if seed.report]
    return {
        "run": case.name,
        "env": case.setting("env.id"),
        "algo": case.algorithm,
        "seeds": len(case.seeds),
        "states": dict(Counter(seed.state for seed in case.seeds)),
        "score": sum(scores) / len(scores) if scores else None,
        "random": case.random.score if case.random else None,
        "answer": told.answer,
        "line": told.line,
        "health": verdict(found.findings, told.answer),
        "findings": [finding.rule for finding in found.findings],
        "missing": list(told.missing),
    }


def summarize_all(cases: Sequence[Case]) -> dict[str, Any]:
    """Describe many runs: how many of which health, the best of each environment, and what was found how often."""
    runs = [summarize(case) for case in cases]
    best: dict[str, dict[str, Any]] = {}
    for run in (run for run in runs if run["score"] is not None):
        held = best.get(str(run["env"]))
        if held is None or run["score"] > held["score"]:
            best[str(run["env"])] = {key: run[key] for key in ("run", "score", "random", "seeds")}
    return {
        "runs": runs,
        "health": dict(Counter(run["health"] for run in runs)),
        "best": best,
        "findings": dict(Counter(name for run in runs for name in run["findings"]).most_common()),
    }
