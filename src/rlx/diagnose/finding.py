"""A finding: one diagnosed failure, with its evidence, the rule that found it and what to try."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["high", "medium", "low"]


@dataclass(frozen=True)
class Evidence:
    """One measured value: its name, the limit that it crossed, at which steps and on which seeds.

    `series` is how it got there: its mean over these seeds in each tenth of the run, None where it is not known.
    """

    what: str
    value: float | str
    limit: float | None = None
    steps: tuple[int, int] | None = None
    seeds: tuple[int, ...] = ()
    series: tuple[float | None, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the evidence as JSON-able data without empty fields."""
        document: dict[str, Any] = {"what": self.what, "value": self.value}
        if self.limit is not None:
            document["limit"] = self.limit
        if self.steps is not None:
            document["steps"] = list(self.steps)
        if self.seeds:
            document["seeds"] = list(self.seeds)
        if self.series:
            document["series"] = list(self.series)
        return document


@dataclass(frozen=True)
class AdvisedCommand:
    """A command that is worth running because of a finding, as words, and what it is for."""

    words: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Finding:
    """One failure. `claim` is a sentence with figures. `tries` are changes worth trying, the likeliest first.

    `changes` are config changes (dotted key → value), each one a try that a command can make. `commands` are those
    that the tries name.
    """

    rule: str
    severity: Severity
    claim: str
    evidence: tuple[Evidence, ...]
    tries: tuple[str, ...] = ()
    changes: tuple[Mapping[str, Any], ...] = ()
    term: str = ""
    """The reward term that it is about, if it is about one."""
    commands: tuple[AdvisedCommand, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the finding as JSON-able data."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "claim": self.claim,
            "evidence": [evidence.document() for evidence in self.evidence],
            "try": list(self.tries),
            "changes": [dict(change) for change in self.changes],
        }
