"""Diagnose a run: all rules on one case."""

from __future__ import annotations

from rlx.diagnose.rule import RuleReport, run_rules
from rlx.diagnose.rules import all_rules
from rlx.diagnose.run_case import RunCase


def diagnose(case: RunCase) -> RuleReport:
    """Run every rule on a run."""
    return run_rules(all_rules(), case)
