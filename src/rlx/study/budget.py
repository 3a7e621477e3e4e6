"""An amount of what jobs use up: training seeds and seconds of wall clock."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Amount:
    """Training seeds and seconds; adds and subtracts."""

    seeds: int = 0
    seconds: float = 0.0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.seeds + other.seeds, self.seconds + other.seconds)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.seeds - other.seeds, self.seconds - other.seconds)

    @property
    def is_sane(self) -> bool:
        """Say whether this can have been used: nothing negative, and a finite time."""
        return self.seeds >= 0 and math.isfinite(self.seconds) and self.seconds >= 0

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Amount:
        """Read `{seeds, seconds}`. Raise ValueError if it is not an amount, for example if it is negative."""
        seeds, seconds = document["seeds"], document["seconds"]
        if isinstance(seeds, bool) or not isinstance(seeds, int) or not isinstance(seconds, (int, float)):
            raise ValueError(f"not an amount: {dict(document)}")
        amount = cls(seeds, float(seconds))
        if not amount.is_sane:
            raise ValueError(f"not an amount: {dict(document)}")
        return amount

    def document(self) -> dict[str, float]:
        """Return this as ledger rows hold it."""
        return {"seeds": self.seeds, "seconds": self.seconds}
