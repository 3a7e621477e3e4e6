"""Explain every metric of a run: its meaning, which values the rules call healthy, and how this run's compares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlx.diagnose.curve_shape import Floats, classify_curve
from rlx.diagnose.metric_glossary import meaning
from rlx.diagnose.rules import all_rules
from rlx.diagnose.run_case import RETURN, RunCase
from rlx.diagnose.run_rule import Limit, RunRule
from rlx.number_format import figure

COURSES = {
    "still rising": "rises", "levelled off": "rose, then level", "declining": "fell", "collapsed": "fell",
    "unstable": "swung", "flat": "level", "unknown": "too few values to say",
}  # fmt: skip


def explain(case: RunCase, *, metric: str | None = None) -> list[dict[str, Any]]:
    """Describe every logged metric, or those whose name contains `metric`. Unknown ones have no meaning."""
    names = dict.fromkeys(name for seed in case.seeds for name in seed.series)
    return [_explain(name, case) for name in names if metric is None or metric in name]


def _explain(name: str, case: RunCase) -> dict[str, Any]:
    values = [seed.series[name].values for seed in case.seeds if name in seed.series]
    merged = np.concatenate(values)
    finite = merged[np.isfinite(merged)]
    lasts = [float(series[-1]) for series in values if len(series)]
    limits = _limits(name, case)
    judged = [_judge(limit, case) for _, limit in limits]
    return {
        "metric": name,
        "meaning": meaning(name),
        "median": _median(finite),
        "last": _median(lasts),
        "seeds": len(lasts),
        "healthy": [spell_limit(limit) for _, limit in limits],
        "measured": [judgement.measured for judgement in judged],
        "source": "; ".join(dict.fromkeys(rule.source for rule, _ in limits)) or None,
        "rules": list(dict.fromkeys(rule.id for rule, _ in limits)),
        "says": _assess(name, case, limits, judged),
    }


def _median(values: Sequence[float] | Floats) -> float | None:
    return float(np.median(values)) if len(values) else None


def _limits(name: str, case: RunCase) -> list[tuple[RunRule, Limit]]:
    """Return the limits on a metric of the rules that apply to the run's algorithm."""
    limits = []
    for rule in all_rules():
        for limit in rule.limits:
            is_family = limit.metric.endswith("*") and name.startswith(limit.metric[:-1])
            if (limit.metric == name or is_family) and (not rule.algorithms or case.algorithm in rule.algorithms):
                limits.append((rule, limit))
    return limits


def spell_limit(limit: Limit) -> str:
    """Put a limit into words, from its healthy side."""
    return f"{limit.what} {'at most' if limit.above is not None else 'at least'} {figure(limit.value)}"


@dataclass(frozen=True)
class _Judgement:
    """A run's figures for one limit: those of its seeds, the lowest and the highest, and whether one crosses it.

    `measured` is None if only the rule itself can compute the figure, or if nothing was logged.
    """

    measured: tuple[float, float] | None
    is_crossed: bool


def _judge(limit: Limit, case: RunCase) -> _Judgement:
    if limit.over:
        return _Judgement(None, False)
    values = [value for value in (limit.measure(seed, case) for seed in case.seeds) if value is not None]
    if not values:
        return _Judgement(None, False)
    return _Judgement((min(values), max(values)), any(map(limit.is_crossed, values)))


def _assess(name: str, case: RunCase, limits: list[tuple[RunRule, Limit]], judged: list[_Judgement]) -> str:
    """Say what the rules find in a metric, or else how it went. Only measured figures within all limits are healthy."""
    failures = dict.fromkeys(f"{rule.summary} ({rule.id})" for rule, _ in limits if rule.find(case))
    if failures:
        return "; ".join(failures)
    pairs = zip(limits, judged, strict=True)
    crossed = dict.fromkeys(limit.what for (_, limit), judgement in pairs if judgement.is_crossed)
    if crossed:
        return f"beyond the limit ({', '.join(crossed)}), but the returns show no harm"
    if limits and name != RETURN:
        return "healthy" if all(judgement.measured for judgement in judged) else "no failure found"
    curves = [seed.series[name] for seed in case.seeds if name in seed.series]
    courses = [COURSES[classify_curve(curve.steps, curve.values).answer] for curve in curves]
    return max(set(courses), key=courses.count)
