"""The figures of an evaluation, worked out from the rows of its episodes: the same when measured and when verified."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from rlx import files
from rlx.errors import EvidenceInvalid
from rlx.evaluate.protocol import Metric

Row = Mapping[str, Any]
OWN = frozenset(
    {"return", "mean", "std", "median", "min", "max", "length_mean", "terminated_rate", "success_rate", "pass_rate"}
)
"""The names of figures; no reward term can take one of them."""
RATES = frozenset({"terminated_rate", "success_rate", "pass_rate"})
"""Those that lie between 0 and 1."""
LARGEST = 1e100
"""What a score may be at most, either way: the squares of larger ones overflow, and no statistic of them is one."""


class NoFigure(EvidenceInvalid):
    """The metric is none of the figures that an evaluation has: no policy's failure."""


def tally(rows: Sequence[Row]) -> dict[str, float]:
    """Return mean return, spread, lengths, rates and the mean of every reward term, as flat names.

    Episodes of scenarios count for `pass_rate` alone.
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
    """Return the mean; no number where the sum is beyond what a float holds."""
    try:
        return statistics.fmean(values)
    except (OverflowError, ValueError):
        return math.nan


def _rate(name: str, known: Sequence[bool]) -> dict[str, float]:
    return {name: sum(known) / len(known)} if known else {}


def _terms(rows: Sequence[Row]) -> dict[str, float]:
    """Return the mean sum of every reward term; an episode that does not have one had none of it."""
    names = dict.fromkeys(name for row in rows for name in row.get("terms", {}) if name not in OWN)
    return {name: _mean([files.number(row.get("terms", {}).get(name, 0.0)) for row in rows]) for name in names}


def score(figures: Mapping[str, float], metric: Metric | str) -> float:
    """Return the figure that a metric names; refuse one that is not there, or is no finite number."""
    if metric not in figures:
        raise NoFigure(f"the evaluation has no `{metric}`; it has {', '.join(sorted(figures)) or 'no figures'}")
    value = figures[metric]
    if not math.isfinite(value):
        raise EvidenceInvalid(f"the {metric} is {value}: an environment that pays no number cannot be compared")
    if abs(value) > LARGEST:
        raise EvidenceInvalid(f"the {metric} is {value:.3g}: beyond {LARGEST:g} nothing can be compared")
    return value
