"""Every metric of a run in words: what it means, which values the rules call healthy, and what this run's says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rlx.diagnose.case import RETURN, Case
from rlx.diagnose.curve import shape
from rlx.diagnose.rule import Limit, Rule
from rlx.diagnose.rules import every
from rlx.diagnose.vocabulary import meaning
from rlx.figures import figure


def explain(case: Case, *, metric: str | None = None) -> list[dict[str, Any]]:
    """Describe every metric that was logged (or the named one), those that rlx does not know as unknown."""
    names = dict.fromkeys(name for seed in case.seeds for name in seed.series)
    return [_explain(name, case) for name in names if metric is None or metric in name]


def _explain(name: str, case: Case) -> dict[str, Any]:
    values = [series.values for seed in case.seeds if (series := seed.series.get(name)) is not None]
    finite = np.concatenate(values)
    finite = finite[np.isfinite(finite)]
    limits = [
        (rule, limit) for rule, limit in _limits(name) if not rule.algorithms or case.algorithm in rule.algorithms
    ]
    return {
        "metric": name,
        "meaning": meaning(name),
        "median": float(np.median(finite)) if finite.size else None,
        "last": _last(values),
        "healthy": [spelled(limit) for _, limit in limits],
        "source": "; ".join(dict.fromkeys(rule.source for rule, _ in limits)) or None,
        "rules": list(dict.fromkeys(rule.id for rule, _ in limits)),
        "says": _says(name, case, limits),
    }


def _limits(name: str) -> Iterator[tuple[Rule, Limit]]:
    for rule in every():
        for limit in rule.limits:
            is_family = limit.metric.endswith("*") and name.startswith(limit.metric[:-1])
            if limit.metric == name or is_family:
                yield rule, limit


def spelled(limit: Limit) -> str:
    """Put a limit into words, from its healthy side."""
    return f"{limit.what} {'at most' if limit.above is not None else 'at least'} {figure(limit.value)}"


def _last(values: list[Any]) -> float | None:
    lasts = [float(one[-1]) for one in values if len(one)]
    return float(np.median(lasts)) if lasts else None


def _says(name: str, case: Case, limits: list[tuple[Rule, Limit]]) -> str:
    found = dict.fromkeys(f"{rule.says} ({rule.id})" for rule, _ in limits if rule.find(case))
    if found:
        return "; ".join(found)
    crossed = [limit.what for _, limit in limits if not limit.over and _crosses(limit, case)]
    if crossed:
        return f"beyond the limit ({', '.join(dict.fromkeys(crossed))}), but the returns show no harm"
    return _course(name, case) if not limits or name == RETURN else "healthy"


def _crosses(limit: Limit, case: Case) -> bool:
    told = [limit.measure(seed, case) for seed in case.seeds]
    return any(value is not None and limit.is_crossed(value, limit.value) for value in told)


def _course(name: str, case: Case) -> str:
    """Say how a metric without limits went: rising, falling or level."""
    words = {"improving": "rose", "plateau": "rose", "declining": "fell", "collapsed": "fell", "unstable": "swung",
             "flat": "level", "unknown": "too few values to say"}  # fmt: skip
    told = [words[shape(series.steps, series.values).answer]
            for seed in case.seeds if (series := seed.series.get(name)) is not None]  # fmt: skip
    return max(set(told), key=told.count)
