"""What a recipe claims: a measured number and the limit that it must keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class RecipeClaim:
    """One number with its limit; `at least` and `at most` include the limit."""

    what: str
    value: float
    relation: Literal["at least", "at most"]
    limit: float

    @property
    def holds(self) -> bool:
        if self.relation == "at least":
            return self.value >= self.limit
        return self.value <= self.limit

    def document(self) -> dict[str, Any]:
        """Return the claim as JSON-able data."""
        return {"what": self.what, "value": self.value, "relation": self.relation, "limit": self.limit,
                "holds": self.holds}  # fmt: skip


def at_least(what: str, value: float, limit: float) -> RecipeClaim:
    """Claim that a number is not below a limit."""
    return RecipeClaim(what, float(value), "at least", float(limit))


def at_most(what: str, value: float, limit: float) -> RecipeClaim:
    """Claim that a number is not above a limit."""
    return RecipeClaim(what, float(value), "at most", float(limit))
