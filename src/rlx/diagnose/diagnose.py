"""All rules on one case: what was found, the cause before its symptom, and which rules could not look, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlx.diagnose.case import Case
from rlx.diagnose.finding import Finding
from rlx.diagnose.rule import KINDS, SEVERITIES, Rule
from rlx.diagnose.rules import every, load


@dataclass(frozen=True)
class Diagnosis:
    """Findings, ranked; `silent` rules looked and saw nothing, `blind` ones could not look (rule → why)."""

    findings: tuple[Finding, ...]
    silent: tuple[str, ...]
    blind: dict[str, str]

    def document(self) -> dict[str, Any]:
        """Return the diagnosis as JSON-able data."""
        return {
            "findings": [finding.document() for finding in self.findings],
            "silent": list(self.silent),
            "blind": self.blind,
        }


def diagnose(case: Case) -> Diagnosis:
    """Let every rule look."""
    blind = {rule.id: why for rule in every() if (why := rule.blindness(case))}
    looked = [rule for rule in every() if rule.id not in blind]
    found = [finding for finding in (rule.find(case) for rule in looked) if finding]
    names = {finding.rule for finding in found}
    return Diagnosis(tuple(sorted(found, key=_rank)), tuple(r.id for r in looked if r.id not in names), blind)


def _rank(finding: Finding) -> tuple[int, int]:
    """Order by kind, then severity; rules of equal rank keep the order of their table."""
    rule: Rule = load(finding.rule)
    return KINDS.index(rule.kind), SEVERITIES.index(finding.severity)
