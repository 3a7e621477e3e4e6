"""A finding: one diagnosed failure mode, with its evidence, the rule that found it and what to try."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["high", "medium", "low"]


@dataclass(frozen=True)
class Evidence:
    """One measured value: a metric or a probe's observation, the limit it crossed, where and on which seeds."""

    what: str
    value: float | str
    limit: float | None = None
    steps: tuple[int, int] | None = None
    seeds: tuple[int, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the evidence as JSON-able data; what it does not have is left out."""
        row: dict[str, Any] = {"what": self.what, "value": self.value}
        if self.limit is not None:
            row["limit"] = self.limit
        if self.steps is not None:
            row["steps"] = list(self.steps)
        return {**row, "seeds": list(self.seeds)} if self.seeds else row


@dataclass(frozen=True)
class Finding:
    """One failure mode: `claim` is a sentence with figures, `tries` are changes worth trying, the likeliest first."""

    rule: str
    severity: Severity
    claim: str
    evidence: tuple[Evidence, ...]
    tries: tuple[str, ...] = ()
    changes: tuple[Mapping[str, Any], ...] = ()
    """Config changes (dotted key → value) that each stand for one try a command can make."""

    def document(self) -> dict[str, Any]:
        """Return the finding as JSON-able data."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "claim": self.claim,
            "evidence": [one.document() for one in self.evidence],
            "try": list(self.tries),
            "changes": [dict(change) for change in self.changes],
        }
