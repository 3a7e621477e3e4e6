"""Why a program failed, by what it printed last: the line that says so, which is not always the last one."""

from __future__ import annotations

import re

LAST_LINES = 60
"""So far back a cause is looked for: what was printed long before the end is not the end's cause."""
ADVICE = "HYDRA_FULL_ERROR"
"""What Hydra prints below every failure."""
_SIGNS = (
    re.compile(r"^(\w+\.)*\w*(Error|Exception|Interrupt)(:|$)|(^|[\s:])(error|fatal): +(?![\d.+-])", re.I),
    re.compile(r"\b(could not|cannot|can't|not found|no such|not in struct|unknown|invalid|fault)\b", re.I),
    re.compile(r"\S"),
)
"""What tells a cause: an exception or an error by its name, then words of complaint, then anything."""


def outcry(printed: str) -> str:
    """Return the line that says why a program failed: the last of the most telling kind; nothing where it was mute."""
    lines = [line.rstrip() for line in printed.replace("\r", "\n").splitlines() if line.strip() and ADVICE not in line]
    latest = lines[-LAST_LINES:]
    return next((line.strip() for sign in _SIGNS for line in reversed(latest) if sign.search(line)), "")
