"""Summarize a run, or the runs of a project, in a few lines: its seeds, its scores and its failures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rlx.config.labels import labels
from rlx.diagnose.analyze import analyze, health
from rlx.diagnose.diagnose import diagnose
from rlx.diagnose.run_case import RunCase


def summarize(case: RunCase) -> dict[str, Any]:
    """Describe one run: its answer, its score and the random policy's, and its findings."""
    findings = diagnose(case).findings
    analysis = analyze(case)
    scores = [seed.report.score for seed in case.seeds if seed.report]
    return {
        "run": case.name,
        "env": case.setting("env.id"),
        "algo": case.algorithm,
        "seeds": len(case.seeds),
        "states": dict(Counter(seed.state for seed in case.seeds)),
        "metric": str(case.setting("eval.metric") or "return"),
        "scored": len(scores),
        "score": sum(scores) / len(scores) if scores else None,
        "random": case.random.score if case.random else None,
        "answer": analysis.answer,
        "line": analysis.line,
        "health": health(findings, analysis.answer),
        "findings": [finding.rule for finding in findings],
        "missing": list(analysis.missing),
    }


def summarize_all(cases: Sequence[RunCase]) -> dict[str, Any]:
    """Describe many runs: how many have which health, the best per measurement, how often rules found them.

    `differs` says in which settings runs of the same environment and algorithm differ. Scores are ranked only if they
    are of the same metric in the same environment with the same arguments.
    """
    runs = [summarize(case) for case in cases]
    for label, run in zip(_differences(cases), runs, strict=True):
        run["differs"] = label
    best: dict[str, dict[str, Any]] = {}
    measured = list(zip(_measurements(cases), runs, strict=True))
    for title, run in sorted(measured, key=lambda pair: -_rank(pair[1]["score"])):
        if run["score"] is not None:
            best.setdefault(title, {key: run[key] for key in ("run", "score", "random", "seeds", "metric")})
    return {
        "runs": runs,
        "health": dict(Counter(run["health"] for run in runs)),
        "best": best,
        "findings": dict(Counter(name for run in runs for name in run["findings"]).most_common()),
    }


def _differences(cases: Sequence[RunCase]) -> list[str]:
    alike: dict[tuple[str, str], list[int]] = {}
    for index, case in enumerate(cases):
        alike.setdefault((str(case.setting("env.id")), case.algorithm), []).append(index)
    found = [""] * len(cases)
    for members in alike.values():
        for index, label in zip(members, labels([cases[index].config for index in members]), strict=True):
            found[index] = label
    return found


def _rank(score: float | None) -> float:
    return -math.inf if score is None or math.isnan(score) else score


def _measurements(cases: Sequence[RunCase]) -> list[str]:
    """Name what each run's score measures: the environment, the metric if it is not the return, and arguments.

    Arguments are named only if runs of the same environment are measured with different ones.
    """
    worlds: list[dict[str, Any]] = []
    for case in cases:
        own = case.setting("env") or {}
        of_evaluation = case.setting("eval.env") or {}
        worlds.append({key: of_evaluation.get(key, own.get(key)) for key in ("id", "kwargs", "wrappers")})
    alike: dict[tuple[str, str], list[int]] = {}
    for index, case in enumerate(cases):
        alike.setdefault((str(case.setting("env.id")), str(case.setting("eval.metric") or "return")), []).append(index)
    titles = [""] * len(cases)
    for (env, metric), members in alike.items():
        arguments = labels([{"env": worlds[index]} for index in members])
        for index, text in zip(members, arguments, strict=True):
            details = [part for part in (metric if metric != "return" else "", text) if part]
            titles[index] = f"{env} ({'; '.join(details)})" if details else env
    return titles
