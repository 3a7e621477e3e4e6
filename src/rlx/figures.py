"""How numbers read, wherever people see them: about four digits, thousands apart, a true minus; and their spread."""

from __future__ import annotations

import math
from collections.abc import Iterable

NOTHING = "–"
ROUNDING = 1e-12
"""Numbers that are no further apart, as a share of the largest, differ by how they were added up."""


def deviation(values: Iterable[float]) -> float:
    """Return the standard deviation of a sample of two at least; 0 where its numbers differ by rounding alone."""
    known = [float(value) for value in values]
    mean = sum(known) / len(known)
    apart = math.hypot(*(value - mean for value in known))
    if math.isfinite(apart) and max(known) - min(known) <= ROUNDING * max(map(abs, known)):
        return 0.0
    return apart / math.sqrt(len(known) - 1)


def figure(value: float | str | None) -> str:
    """Spell a metric's value; the three non-finite words as they are stored are read too."""
    if value is None:
        return NOTHING
    number = float(value)
    if not math.isfinite(number):
        return str(number).replace("-", "−")
    spelled = f"{number:,.0f}" if 1000 <= abs(number) < 1e7 else f"{number:.4g}"
    mantissa, exponent, power = spelled.partition("e")
    return mantissa.replace("-", "−") + exponent + power


def signed(value: float) -> str:
    """Spell a difference: `+1,250`, `−0.5`."""
    spelled = figure(value)
    return spelled if spelled[0] in "−–" else f"+{spelled}"


def counted(count: int, noun: str) -> str:
    """Spell how many of something: `1 seed`, `1,200 seeds`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
