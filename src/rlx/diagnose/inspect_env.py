"""What is wrong with an environment: findings from the record of an inspection.

High is a defect, medium is probably one, low is true by design of many environments and worth knowing.
What is not covered: whether a reward says what its author means, and anything that takes more steps than were played.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rlx.diagnose import inspect_action, inspect_calls, inspect_course, inspect_seeding
from rlx.diagnose.finding import Finding
from rlx.envs.inspect_record import Inspection

Rule = Callable[[Inspection], Iterator[Finding]]
RULES: tuple[Rule, ...] = (
    *inspect_calls.RULES,
    *inspect_seeding.RULES,
    *inspect_action.RULES,
    *inspect_course.RULES,
)
_ORDER = ("high", "medium", "low")


def judge(record: Inspection) -> tuple[Finding, ...]:
    """Return the findings, the gravest first."""
    found = [finding for rule in RULES for finding in rule(record)]
    return tuple(sorted(found, key=lambda finding: _ORDER.index(finding.severity)))
