"""Which disturbances break trained policies: the drop of each against the undisturbed score, worst first; pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rlx.compare.kept import Kept, kept
from rlx.evaluate.parameter import Value
from rlx.evaluate.stress import KINDS, Battery, Stressed

BRITTLE = 0.2
"""A larger share of the gain over the random policy that is lost is called brittle."""


@dataclass(frozen=True)
class Drop:
    """One condition: what the seeds score under it; `drop` is the share of the gain that is lost.

    It is brittle where the drop is above the limit, surely so where the whole interval is.
    """

    name: str
    strength: Value
    unit: str
    kept: Kept | None
    refused: str | None
    is_brittle: bool
    is_sure: bool

    @property
    def drop(self) -> float | None:
        return None if self.kept is None or self.kept.share is None else 1 - self.kept.share

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the drop's interval."""
        found = self.kept.share_interval if self.kept else None
        return None if found is None else (1 - found.high, 1 - found.low)

    def document(self) -> dict[str, Any]:
        """Return the drop as JSON-able data."""
        figures = {"n": self.kept.n, "mean": self.kept.mean} if self.kept else {}
        return {
            "name": self.name, "strength": self.strength, "unit": self.unit, **figures, "drop": self.drop,
            "drop_interval": list(self.interval) if self.interval else None, "brittle": self.is_brittle,
            "sure": self.is_sure, "refused": self.refused,
        }  # fmt: skip


def drops(found: Battery, *, limit: float = BRITTLE) -> tuple[Drop, ...]:
    """Judge every condition; worst first, what could not be measured last."""
    every = [_drop(found, one, limit) for one in found.conditions]
    return tuple(sorted(every, key=lambda one: one.kept.mean if one.kept else math.inf))


def _drop(found: Battery, one: Stressed, limit: float) -> Drop:
    unit = KINDS[one.name].unit if one.name in KINDS else ""
    unit = unit.removesuffix("s") if one.strength == 1 else unit
    if one.outcome.refused:
        return Drop(one.name, one.strength, unit, None, one.outcome.refused, is_brittle=False, is_sure=False)
    what = kept(found.nominal.scores, one.outcome.scores, random=found.nominal.random)
    is_brittle = what.share is not None and 1 - what.share > limit
    interval = what.share_interval
    is_sure = interval is not None and (1 - interval.high > limit if is_brittle else 1 - interval.low <= limit)
    return Drop(one.name, one.strength, unit, what, None, is_brittle, is_sure)
