"""Which disturbances break trained policies: the drop of each against the undisturbed score, worst first. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rlx.compare.robustness.retained_gain import RetainedGain, retained_gain
from rlx.evaluate.robustness.env_parameter import Value
from rlx.evaluate.robustness.stress import KINDS, StressCondition, StressResults

BRITTLE = 0.2
"""A policy that loses a larger share of its gain over the random policy is brittle."""


@dataclass(frozen=True)
class Drop:
    """One condition: what the seeds score under it. `drop` is the share of the gain that is lost.

    The policies are brittle if the drop is above the limit, and surely so if the whole interval is.
    """

    name: str
    strength: Value
    unit: str
    kept: RetainedGain | None
    refused: str | None
    is_brittle: bool = False
    is_sure: bool = False

    @property
    def drop(self) -> float | None:
        if self.kept is None or self.kept.share is None:
            return None
        return 1 - self.kept.share

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the drop's interval."""
        interval = None
        if self.kept:
            interval = self.kept.share_interval
        if interval is None:
            return None
        return (1 - interval.high, 1 - interval.low)

    def document(self) -> dict[str, Any]:
        """Return the drop as JSON-able data."""
        figures = {}
        if self.kept:
            figures = {"n": self.kept.n, "mean": self.kept.mean}
        return {
            "name": self.name, "strength": self.strength, "unit": self.unit, **figures, "drop": self.drop,
            "drop_interval": list(self.interval) if self.interval else None, "brittle": self.is_brittle,
            "sure": self.is_sure, "refused": self.refused,
        }  # fmt: skip


def drops(results: StressResults, *, limit: float = BRITTLE) -> tuple[Drop, ...]:
    """Judge every condition, worst first. Conditions that could not be measured come last."""
    judged = [_drop(results, condition, limit) for condition in results.conditions]
    return tuple(sorted(judged, key=lambda drop: drop.kept.mean if drop.kept else math.inf))


def _drop(results: StressResults, condition: StressCondition, limit: float) -> Drop:
    unit = ""
    if condition.name in KINDS:
        unit = KINDS[condition.name].unit
    if condition.strength == 1:
        unit = unit.removesuffix("s")
    if condition.outcome.refused:
        return Drop(condition.name, condition.strength, unit, None, condition.outcome.refused)
    kept = retained_gain(results.nominal.scores, condition.outcome.scores, random=results.nominal.random)
    is_brittle = kept.share is not None and 1 - kept.share > limit
    is_sure = False
    if kept.share_interval is not None:
        if is_brittle:
            edge = kept.share_interval.high
        else:
            edge = kept.share_interval.low
        is_sure = (1 - edge > limit) == is_brittle
    return Drop(condition.name, condition.strength, unit, kept, None, is_brittle, is_sure)
