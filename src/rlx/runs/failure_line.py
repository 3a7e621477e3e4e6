"""The printed line that explains why a program failed, which is not always the last one."""

from __future__ import annotations

import re

LAST_LINES = 60
"""How many last lines are searched; earlier lines rarely explain the failure."""
ADVICE = "HYDRA_FULL_ERROR"
"""Hydra prints a line with this word below every failure."""
_LAUNCHERS = re.compile(r"\b(ChildFailedError|ProcessRaisedException|CalledProcessError)\b")
"""Exceptions that a launcher such as torchrun prints below the program's own: they only say that it failed."""
_SIGNS = (
    re.compile(r"^(\w+\.)*\w*(Error|Exception|Interrupt)(:|$)|(^|[\s:])(error|fatal): +(?![\d.+-])", re.I),
    re.compile(r"\b(could not|cannot|can't|not found|no such|not in struct|unknown|invalid|fault)\b", re.I),
    re.compile(r"\S"),
)
"""Signs of a cause, best first: the name of an exception or error, words such as `cannot`, then any text."""


def failure_line(printed: str) -> str:
    """Return the last line with the best sign of a cause; empty if the program printed nothing."""
    lines = [line.rstrip() for line in printed.replace("\r", "\n").splitlines() if line.strip() and ADVICE not in line]
    latest = lines[-LAST_LINES:]
    own = [line for line in latest if not _LAUNCHERS.search(line)]
    if any(_SIGNS[0].search(line) for line in own):
        latest = own
    return next((line.strip() for sign in _SIGNS for line in reversed(latest) if sign.search(line)), "")
