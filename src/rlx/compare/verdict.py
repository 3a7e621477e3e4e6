"""The verdict on a candidate: better, worse, inconclusive or invalid, with the reason and what would settle it.

The rule. One unpaired permutation test on the mean of the training seeds' scores, at ten seeds a side or more; nothing
is ever decided on fewer, because accepting at 3–5 seeds passes candidates that fail on a quarter of their seeds 4
times in 10. The 5 % error that `better` and `worse` may make together between equal learners is split .04 and .01: a
missed improvement costs more than harm that is called inconclusive, and at .04 ten a side still find a shift of
1.5 standard deviations 9 times in 10 (an even split finds it 88 %). The interval has the same two levels, so it
excludes zero exactly where the verdict decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rlx.compare.stats import Floats, Interval, permutation_interval, permutation_p, seeds_needed

DECIDING_SEEDS = 10
BETTER_LEVEL, WORSE_LEVEL = 0.04, 0.01
LEANING_LEVEL = 0.05
"""Each end of the interval shown before a decision is possible: 90 %, the most that 3 v 3 can bound."""
MOST_SEEDS = 200
"""An effect that needs more seeds a side than this is called too small to find."""


@dataclass(frozen=True)
class Verdict:
    """What the evidence says: `leaning` is the candidate's mean minus the baseline's, `n` the seeds of both sides.

    `p` is one-sided, in the direction of the leaning; `settle` says what would decide it, empty where nothing is open.
    """

    verdict: Literal["better", "worse", "inconclusive", "invalid"]
    leaning: float
    interval: Interval
    p: float
    n: tuple[int, int]
    reason: str
    settle: str = ""

    def line(self) -> str:
        """Return the verdict in one line, as people read it."""
        if self.verdict == "invalid":
            return f"invalid: {self.reason}"
        effect = f"{self.effect()} at {self.n[0]} v {self.n[1]}, p = {self.p:.2g}"
        if self.verdict == "inconclusive" and min(self.n) < DECIDING_SEEDS:
            return f"inconclusive: leaning {self.effect()}, undecided at {self.n[0]} v {self.n[1]}"
        return f"{self.verdict}: {effect}" if self.verdict != "inconclusive" else f"inconclusive: leaning {effect}"

    def effect(self) -> str:
        """Return the difference with its interval: `+11 [−9, +31]`."""
        shown = [value for value in (self.leaning, self.interval.low, self.interval.high) if math.isfinite(value)]
        decimals = _decimals(max(map(abs, shown)))
        low, high = (_signed(end, decimals) for end in (self.interval.low, self.interval.high))
        return f"{_signed(self.leaning, decimals)} [{low}, {high}]"

    def document(self) -> dict[str, object]:
        """Return the verdict as JSON-able data."""
        return {
            "verdict": self.verdict,
            "leaning": self.leaning,
            "interval": [self.interval.low, self.interval.high],
            "level": self.interval.level,
            "p": self.p,
            "n": list(self.n),
            "reason": self.reason,
            "settle": self.settle,
        }


def judge(baseline: ArrayLike, candidate: ArrayLike, *, seed: int = 0) -> Verdict:
    """Judge a candidate's per-seed scores against the baseline's: (n,), (m,) → Verdict.

    `seed` draws the random splits where there are too many to enumerate (above 10 v 10).
    """
    base, new = np.asarray(baseline, dtype=np.float64), np.asarray(candidate, dtype=np.float64)
    for side, scores in (("baseline", base), ("candidate", new)):
        if scores.size == 0 or not np.isfinite(scores).all():
            count = int(np.count_nonzero(~np.isfinite(scores)))
            why = (
                f"{count} of the {side}'s {scores.size} seeds have no finite score"
                if scores.size
                else f"no {side} seeds"
            )
            return invalid(why, n=(base.size, new.size))
    return _undecided(base, new) if min(base.size, new.size) < DECIDING_SEEDS else _decide(base, new, seed=seed)


def invalid(reason: str, *, n: tuple[int, int]) -> Verdict:
    """Return the verdict on evidence that cannot be used."""
    nothing = Interval(-math.inf, math.inf, 0.0)
    return Verdict("invalid", math.nan, nothing, math.nan, n, reason)


def _undecided(base: Floats, new: Floats) -> Verdict:
    leaning = float(new.mean() - base.mean())
    interval = permutation_interval(base, new, below=LEANING_LEVEL, above=LEANING_LEVEL)
    return Verdict(
        "inconclusive", leaning, interval, _leaning_p(base, new, leaning), (base.size, new.size),
        f"nothing is decided on fewer than {DECIDING_SEEDS} seeds a side", _more_seeds(base.size, new.size),
    )  # fmt: skip


def _more_seeds(n: int, m: int) -> str:
    missing = [(max(0, DECIDING_SEEDS - count), side) for count, side in ((n, "baseline"), (m, "candidate"))]
    parts = [f"{count} more for the {side}" for count, side in missing if count]
    return f"{DECIDING_SEEDS} seeds a side: {', '.join(parts)}"


def _leaning_p(base: Floats, new: Floats, leaning: float, *, seed: int = 0) -> float:
    return float(permutation_p(base, new, alternative="greater" if leaning >= 0 else "less", seed=seed))


def _decide(base: Floats, new: Floats, *, seed: int) -> Verdict:
    n = (base.size, new.size)
    leaning = float(new.mean() - base.mean())
    p = _leaning_p(base, new, leaning, seed=seed)
    interval = permutation_interval(base, new, below=BETTER_LEVEL, above=WORSE_LEVEL, seed=seed)
    if leaning > 0 and p <= BETTER_LEVEL:
        return Verdict("better", leaning, interval, p, n, f"p = {p:.2g} ≤ {BETTER_LEVEL:g}")
    if leaning < 0 and p <= WORSE_LEVEL:
        return Verdict("worse", leaning, interval, p, n, f"p = {p:.2g} ≤ {WORSE_LEVEL:g}")
    level = BETTER_LEVEL if leaning >= 0 else WORSE_LEVEL
    return Verdict("inconclusive", leaning, interval, p, n, f"p = {p:.2g} > {level:g}", _fresh_pools(base, new))


def _fresh_pools(base: Floats, new: Floats) -> str:
    """Say how many seeds an effect of the size seen would take; the seeds already looked at are spent."""
    spread = math.sqrt((base.var(ddof=1) + new.var(ddof=1)) / 2)
    effect = abs(float(new.mean() - base.mean())) / spread if spread > 0 else 0.0
    needed = max(2 * DECIDING_SEEDS, seeds_needed(effect, alpha=WORSE_LEVEL)) if effect > 0 else MOST_SEEDS + 1
    if needed > MOST_SEEDS:
        return f"nothing practical: a difference of {effect:.2g} sd takes more than {MOST_SEEDS} seeds a side"
    return f"new runs of about {needed} fresh seeds a side (looking again at these is peeking)"


def _decimals(largest: float) -> int:
    """Return the decimals that show the largest number with two digits."""
    return max(0, 1 - math.floor(math.log10(largest))) if largest > 0 else 0


def _signed(value: float, decimals: int) -> str:
    if math.isinf(value):
        return "+∞" if value > 0 else "−∞"
    return f"{value:+.{decimals}f}".replace("-", "−")
