"""The engine behind every finding: how a rule is declared, and how rules run on a subject.

A subject is whatever a family of rules looks at: a run (`rules`), the record of an environment inspection
(`env_checks`), a reward's source or its played episodes (`reward_review`). A rule yields a `Sighting` for each failure
that it sees. `run_rules` turns sightings into sorted findings, and names the rules that could not look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from rlx.diagnose.finding import AdvisedCommand, Evidence, Finding, Severity

Kind = Literal["broken", "cause", "symptom", "cost"]
KINDS: tuple[Kind, ...] = ("broken", "cause", "symptom", "cost")
"""In the order of a report: a cause comes before its symptoms."""
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")

Subject = TypeVar("Subject", contravariant=True)


@dataclass(frozen=True)
class Sighting:
    """One failure that a rule saw. Empty fields mean that the rule's own severity, tries and changes apply.

    With `has_own_advice`, the rule's general advice is left out: this failure has another cause.
    """

    evidence: tuple[Evidence, ...]
    claim: str = ""
    severity: Severity | None = None
    tries: tuple[str, ...] = ()
    changes: tuple[Mapping[str, Any], ...] = ()
    has_own_advice: bool = False
    term: str = ""
    commands: tuple[AdvisedCommand, ...] = ()


Look = Callable[[Subject], Iterable[Sighting]]


@dataclass(frozen=True)
class Rule(Generic[Subject]):
    """One failure mode: how rlx finds it, the source of its limits, its blind spots and what to try."""

    id: str
    severity: Severity
    look: Look[Subject]
    tries: tuple[str, ...] = ()
    source: str = ""
    cannot_see: str = ""
    kind: Kind = "cause"

    def blindness(self, subject: Subject) -> str | None:
        """Say why this rule cannot look at the subject, or return None if it can."""
        return None

    def find(self, subject: Subject) -> tuple[Finding, ...]:
        """Return a finding for each failure that the rule sees. A rule that cannot look finds nothing."""
        if self.blindness(subject) is not None:
            return ()
        return tuple(self.finding(sighting, subject) for sighting in self.look(subject))

    def finding(self, sighting: Sighting, subject: Subject) -> Finding:
        """Turn a sighting into a finding."""
        severity = sighting.severity or self.severity
        return Finding(
            self.id, severity, sighting.claim, sighting.evidence, sighting.tries or self.tries, sighting.changes,
            sighting.term, sighting.commands,
        )  # fmt: skip


@dataclass(frozen=True)
class RuleReport:
    """Sorted findings. `silent` rules looked and found nothing. `blind` ones could not look (rule → why)."""

    findings: tuple[Finding, ...]
    silent: tuple[str, ...]
    blind: dict[str, str]

    def document(self) -> dict[str, Any]:
        """Return the report as JSON-able data."""
        findings = [finding.document() for finding in self.findings]
        return {"findings": findings, "silent": list(self.silent), "blind": self.blind}


def by_severity(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings of several runs of rules, the gravest first."""
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


def run_rules(rules: Iterable[Rule[Subject]], subject: Subject) -> RuleReport:
    """Run rules on a subject. Findings are sorted by kind, then by severity, then by the order of the rules."""
    findings: list[tuple[int, Finding]] = []
    silent: list[str] = []
    blind: dict[str, str] = {}
    for rule in rules:
        reason = rule.blindness(subject)
        if reason is not None:
            blind[rule.id] = reason
            continue
        failures = rule.find(subject)
        findings += [(KINDS.index(rule.kind), finding) for finding in failures]
        if not failures:
            silent.append(rule.id)
    findings.sort(key=lambda pair: (pair[0], SEVERITIES.index(pair[1].severity)))
    return RuleReport(tuple(finding for _, finding in findings), tuple(silent), blind)
