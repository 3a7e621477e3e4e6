"""How findings read: severity, rule and claim on one line, source lines and what to try below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlx.hosts.cli.output import paint

_COLOURS = {"high": "red", "medium": "yellow", "low": "dim"}


def lines_of(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Spell findings, each as its JSON document; says so where there is none."""
    if not findings:
        return ["findings: none"]
    lines = []
    for one in findings:
        severity = paint(one["severity"], _COLOURS[one["severity"]])
        lines.append(f"{severity} {one['rule']}: {one['claim']}")
        lines += [f"  {seen['what']}: {seen['value']}" for seen in one["evidence"] if isinstance(seen["value"], str)]
        lines += [f"  try: {text}" for text in one["try"]]
    return lines
