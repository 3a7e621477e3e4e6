"""Format numbers and time spans for people: about four digits, thousands separators, a true minus. Also deviations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

NOTHING = "–"
# Numbers that are this close, as a share of the largest, differ only by the order of summation.
ROUNDING = 1e-12


def deviation(values: Iterable[float]) -> float:
    """Return the standard deviation of a sample of at least two. It is 0 if the numbers differ only by rounding."""
    known = [float(value) for value in values]
    mean = sum(known) / len(known)
    apart = math.hypot(*(value - mean for value in known))
    if math.isfinite(apart) and max(known) - min(known) <= ROUNDING * max(map(abs, known)):
        return 0.0
    return apart / math.sqrt(len(known) - 1)


def plain(value: float) -> float | None:
    """Return a number for JSON: None for an open end (±∞) and for an unknown value (NaN)."""
    if not math.isfinite(value):
        return None
    return float(value)


def figure(value: float | str | None) -> str:
    """Format a metric's value. It also reads the three stored words for non-finite numbers."""
    if value is None:
        return NOTHING
    number = float(value)
    if not math.isfinite(number):
        return str(number).replace("-", "−")
    spelled = f"{number:,.0f}" if 1000 <= abs(number) < 1e7 else f"{number:.4g}"
    mantissa, exponent, power = spelled.partition("e")
    return mantissa.replace("-", "−") + exponent + power


def spread_decimals(spreads: Iterable[float | None]) -> int | None:
    """Return the decimals at which the smallest spread has two digits: more would be noise. None without a spread."""
    known = [spread for spread in spreads if spread and math.isfinite(spread)]
    if not known:
        return None
    return max(0, 1 - math.floor(math.log10(min(known))))


def signed(value: float) -> str:
    """Format a difference: `+1,250`, `−0.5`."""
    spelled = figure(value)
    return spelled if spelled[0] in "−–" else f"+{spelled}"


def listed(names: Sequence[str], *, most: int = 8) -> str:
    """Spell the first names of a list, and how many more there are."""
    text = ", ".join(names[:most])
    if len(names) > most:
        text += f" and {len(names) - most} more"
    return text


def counted(count: int, noun: str) -> str:
    """Format a count: `1 seed`, `1,200 seeds`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def duration(seconds: float | None) -> str:
    """Spell a time span: 12s, 3m 20s, 2h 05m, 3d 4h."""
    if seconds is None:
        return NOTHING
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d {whole % 86400 // 3600}h"
