"""The figures of an evaluation, computed from its episodes. Measuring and verifying use the same code."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from rlx import files
from rlx.errors import EvidenceInvalid
from rlx.evaluate.protocol import Metric

Row = Mapping[str, Any]
# The names of figures. A reward term cannot use one of them.
FIGURE_NAMES = frozenset(
    {"return", "mean", "std", "median", "min", "max", "length_mean", "terminated_rate", "success_rate", "pass_rate"}
)
# The figures between 0 and 1.
RATES = frozenset({"terminated_rate", "success_rate", "pass_rate"})
# The largest score, positive or negative: squares of larger ones overflow, so that no statistic is possible.
LARGEST = 1e100


class MissingFigure(EvidenceInvalid):
    """The evaluation has no figure with the metric's name. It is not the policy's fault."""


def summarize_rows(rows: Sequence[Row]) -> dict[str, float]:
    """Return mean return, spread, lengths, rates and the mean of every reward term, as flat names.

    Episodes of scenarios count only for `pass_rate`.
    """
    usual = [row for row in rows if "scenario" not in row]
    returns = [files.number(row["return"]) for row in usual]
    lengths = [float(row["length"]) for row in usual]
    figures = {
        "mean": _mean(returns),
        "std": statistics.pstdev(returns) if all(map(math.isfinite, returns)) else math.nan,
        "median": statistics.median(returns),
        "min": min(returns),
        "max": max(returns),
        "length_mean": statistics.fmean(lengths),
        "terminated_rate": statistics.fmean(not row.get("truncated", False) for row in usual),
        **_rate("success_rate", [row["success"] for row in usual if "success" in row]),
        **_rate("pass_rate", [row["passed"] for row in rows if "passed" in row]),
    }
    return {"return": figures["mean"], **figures, **_terms(usual)}


def _mean(values: Sequence[float]) -> float:
    """Return the mean, or NaN if the sum does not fit into a float."""
    try:
        return statistics.fmean(values)
    except (OverflowError, ValueError):
        return math.nan


def _rate(name: str, known: Sequence[bool]) -> dict[str, float]:
    return {name: sum(known) / len(known)} if known else {}


def _terms(rows: Sequence[Row]) -> dict[str, float]:
    """Return the mean sum of every reward term. A missing term counts as 0."""
    names = dict.fromkeys(name for row in rows for name in row.get("terms", {}) if name not in FIGURE_NAMES)
    return {name: _mean([files.number(row.get("terms", {}).get(name, 0.0)) for row in rows]) for name in names}


def score(figures: Mapping[str, float], metric: Metric | str) -> float:
    """Return the figure that a metric names. Raise if it is missing or not a finite number."""
    if metric not in figures:
        raise MissingFigure(f"the evaluation has no `{metric}`; it has {', '.join(sorted(figures)) or 'no figures'}")
    value = figures[metric]
    if not math.isfinite(value):
        raise EvidenceInvalid(f"the {metric} is {value}: a reward that is not a number cannot be compared")
    if abs(value) > LARGEST:
        raise EvidenceInvalid(f"the {metric} is {value:.3g}: scores beyond {LARGEST:g} cannot be compared")
    return value
