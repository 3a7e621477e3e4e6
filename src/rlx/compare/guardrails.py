"""Guardrails on metrics other than the one being improved: harm that blocks, safety that must be shown, failing seeds.

All answers are invariant: scaling or shifting scores and margin together changes none of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rlx.compare.interim_plan import with_failures
from rlx.compare.permutation import permutation_interval, permutation_tails
from rlx.compare.stats import as_runs
from rlx.number_format import counted, figure, plain, signed

Answer = Literal["passes", "harm", "unproven"]
Better = Literal["higher", "lower"]

HARM_LEVEL = 0.10
SAFETY_LEVEL = 0.05
TAIL_SEEDS = 3
TAIL_P = 0.11


@dataclass(frozen=True)
class GuardrailResult:
    """The answer on one guarded metric. `change` is candidate − baseline, `bound` the end of it that was tested.

    `passes` and `harm` are statements, and `unproven` asks for more seeds. Only `harm` blocks an improvement for good.
    `leans_to_harm` says that the observed change is beyond the margin but not shown to be.
    """

    answer: Answer
    change: float
    bound: float
    reason: str
    leans_to_harm: bool = False

    def document(self) -> dict[str, object]:
        """Return the result as JSON-able data. The bound is None if it is open."""
        return {**vars(self), "change": plain(self.change), "bound": plain(self.bound)}


@dataclass(frozen=True)
class Guard:
    """A metric to watch. If `must_be_shown`, the candidate must be shown to be safe; otherwise only harm blocks it."""

    metric: str
    margin: float = 0.0
    better: Better = "higher"
    must_be_shown: bool = False

    @property
    def name(self) -> str:
        if self.must_be_shown:
            return f"{self.metric} (safety)"
        return self.metric

    def test(self, baseline: ArrayLike, candidate: ArrayLike) -> GuardrailResult:
        """Test the metric, one value per seed: (n,), (m,) → GuardrailResult.

        A candidate seed without a finite value counts as the worst seen, and such a baseline seed is left out. The
        guard is unproven if a side has no value at all.
        """
        sign = _sign(self.better)
        base = np.asarray(baseline, dtype=np.float64)
        new = np.asarray(candidate, dtype=np.float64)
        for side, values in (("baseline", base), ("candidate", new)):
            if not np.isfinite(values).any():
                return GuardrailResult("unproven", math.nan, math.nan, f"no seed of the {side} has a value")
        kept = base[np.isfinite(base)]
        filled = sign * with_failures(sign * kept, sign * new)
        if self.must_be_shown:
            result = require_safety(kept, filled, margin=self.margin, better=self.better)
        else:
            result = block_on_harm(kept, filled, margin=self.margin, better=self.better)
        reason = result.reason
        if kept.size < base.size:
            reason += f"; {counted(base.size - kept.size, 'seed')} of the baseline without a value left out"
        worst = int(np.count_nonzero(~np.isfinite(new)))
        if worst:
            reason += f"; {counted(worst, 'seed')} of the candidate without a value counted as the worst"
        return replace(result, reason=reason)


def _sign(better: Better) -> float:
    """Return the factor that turns values so that higher is better."""
    if better == "lower":
        return -1.0
    return 1.0


def block_on_harm(
    baseline: ArrayLike,
    candidate: ArrayLike,
    *,
    margin: float = 0.0,
    better: Better = "higher",
    level: float = HARM_LEVEL,
    seed: int = 0,
) -> GuardrailResult:
    """Answer `harm` if the candidate is shown to be worse by more than `margin`, and `passes` otherwise.

    This is a one-sided permutation test at `level`. It passes everything that cannot be shown to be harmful, so it
    needs no more seeds than the verdict. Use `require_safety` to rule harm out. (n,), (m,) → GuardrailResult.
    """
    base = _sign(better) * as_runs(baseline)
    new = _sign(better) * as_runs(candidate)
    _, below = permutation_tails(base, new + abs(margin), seed=seed)
    bound = permutation_interval(base, new, below=level, above=level, seed=seed).high
    answer: Answer = "passes"
    relation = ">"
    if float(below) <= level:
        answer = "harm"
        relation = "≤"
    reason = f"worse by more than {figure(abs(margin))}: p = {float(below):.2g} {relation} {level:g}"
    return _result(answer, float(new.mean() - base.mean()), bound, margin, better, reason)


def require_safety(
    baseline: ArrayLike,
    candidate: ArrayLike,
    *,
    margin: float,
    better: Better = "higher",
    level: float = SAFETY_LEVEL,
    seed: int = 0,
) -> GuardrailResult:
    """Answer `passes` only if the candidate is shown to lose less than `margin`: (n,), (m,) → GuardrailResult.

    The one-sided 1 − `level` bound of candidate − baseline must lie above −`margin` (non-inferiority). The answer is
    `harm` if the other bound lies below it, and `unproven` otherwise. Equal learners pass a margin of .5 sd at 30 seeds
    per side only 16–36 times in 100 on tails: guard means, or plan for many seeds.
    """
    base = _sign(better) * as_runs(baseline)
    new = _sign(better) * as_runs(candidate)
    interval = permutation_interval(base, new, below=level, above=level, seed=seed)
    answer: Answer = "unproven"
    if interval.low > -abs(margin):
        answer = "passes"
    elif interval.high < -abs(margin):
        answer = "harm"
    reason = f"at worst {signed(interval.low)}, allowed {signed(-abs(margin))}"
    return _result(answer, float(new.mean() - base.mean()), interval.low, margin, better, reason)


def _result(answer: Answer, change: float, bound: float, margin: float, better: Better, reason: str) -> GuardrailResult:
    leans_to_harm = answer != "harm" and change < -abs(margin)
    return GuardrailResult(answer, _sign(better) * change, _sign(better) * bound, reason, leans_to_harm)


@dataclass(frozen=True)
class Tail:
    """How many candidate runs lie below every baseline run, and how likely that is between equal learners."""

    below: int
    p: float

    @property
    def is_flagged(self) -> bool:
        """Whether seeds fail that did not fail before: at least 3, and as unlikely as 3 of 10 v 10 (p .105)."""
        return self.below >= TAIL_SEEDS and self.p <= TAIL_P


def tail_check(baseline: ArrayLike, candidate: ArrayLike) -> Tail:
    """Count the candidate runs below the baseline's worst: (n,), (m,) → Tail.

    p is the chance that the `below` lowest of all n + m runs all belong to the candidate. It is a flag and not a gate,
    because ten seeds say too little about tails to decide.
    """
    base = as_runs(baseline)
    new = as_runs(candidate)
    below = int(np.count_nonzero(new < base.min()))
    return Tail(below, math.comb(new.size, below) / math.comb(new.size + base.size, below))
