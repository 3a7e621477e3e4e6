"""The defects of an environment: all rules on the record of an inspection.

High findings are defects, and medium ones probably are. Low ones are true of many environments by design.
Limits: whether a reward means what its author wants, and anything that takes more steps than were played.
"""

from __future__ import annotations

from rlx.diagnose.env_checks import (
    action_findings,
    api_findings,
    episode_findings,
    seeding_findings,
    trainable_findings,
)
from rlx.diagnose.finding import Finding
from rlx.diagnose.rule import run_rules
from rlx.envs.inspect.record import Inspection

RULES = (
    *api_findings.RULES, *trainable_findings.RULES, *seeding_findings.RULES, *action_findings.RULES,
    *episode_findings.RULES,
)  # fmt: skip


def check_env(record: Inspection) -> tuple[Finding, ...]:
    """Return the findings, the gravest first."""
    return run_rules(RULES, record).findings
