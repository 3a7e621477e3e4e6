"""Spell findings: severity, rule and claim on one line, then evidence and what to try."""

from collections.abc import Mapping, Sequence
from typing import Any

from rlx.hosts.cli.output import paint

SEVERITY_COLOURS = {"high": "red", "medium": "yellow", "low": "dim"}


def paint_severity(finding: Mapping[str, Any]) -> str:
    """Return the severity of a finding in its colour."""
    severity: str = finding["severity"]
    return paint(severity, SEVERITY_COLOURS[severity])


def finding_lines(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Spell findings that are JSON documents."""
    lines = []
    for finding in findings:
        lines.append(f"{paint_severity(finding)} {finding['rule']}: {finding['claim']}")
        lines += [f"  {row['what']}: {row['value']}" for row in finding["evidence"] if isinstance(row["value"], str)]
        lines += [f"  try: {advice}" for advice in finding["try"]]
    return lines or ["findings: none"]
