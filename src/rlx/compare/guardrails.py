"""Guardrails beside the metric that is improved: harm that blocks, safety that must be shown, and failing seeds.

All of them are invariant: scaling or shifting scores and margin alike changes no answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rlx.compare.looks import with_failures
from rlx.compare.permutation import permutation_interval, permutation_tails
from rlx.compare.stats import Floats, as_runs, plain
from rlx.figures import counted, figure, signed

Answer = Literal["passes", "harm", "unproven"]
Better = Literal["higher", "lower"]

HARM_LEVEL = 0.10
SAFETY_LEVEL = 0.05
TAIL_SEEDS = 3
TAIL_P = 0.11


@dataclass(frozen=True)
class Guardrail:
    """The answer on one guarded metric; `change` is candidate − baseline, `bound` the end of it that was tested.

    `passes` and `harm` are statements, `unproven` asks for more seeds; only `harm` blocks an improvement for good.
    """

    answer: Answer
    change: float
    bound: float
    reason: str
    leans_to_harm: bool = False
    """Whether the change as it was seen is beyond the margin, and not shown to be."""

    def document(self) -> dict[str, object]:
        """Return the guardrail as JSON-able data; the bound is None where it is open."""
        return {
            "answer": self.answer, "change": plain(self.change), "bound": plain(self.bound), "reason": self.reason,
            "leans_to_harm": self.leans_to_harm,
        }  # fmt: skip


@dataclass(frozen=True)
class Guard:
    """A metric to watch beside the one that is improved; `must_be_shown` asks for safety, else harm blocks."""

    metric: str
    margin: float = 0.0
    better: Better = "higher"
    must_be_shown: bool = False

    @property
    def name(self) -> str:
        return f"{self.metric} (safety)" if self.must_be_shown else self.metric

    def test(self, baseline: ArrayLike, candidate: ArrayLike) -> Guardrail:
        """Test the metric, one value a seed: (n,), (m,) → Guardrail.

        What is not finite is no value: a candidate's seed without one counts as the worst seen, a baseline's is left
        out, and a side without any leaves the guard unproven.
        """
        sign = 1.0 if self.better == "higher" else -1.0
        base, new = np.asarray(baseline, dtype=np.float64), np.asarray(candidate, dtype=np.float64)
        kept, lacking = base[np.isfinite(base)], int(np.count_nonzero(~np.isfinite(new)))
        for side, values in (("baseline", base), ("candidate", new)):
            if not np.isfinite(values).any():
                return Guardrail("unproven", math.nan, math.nan, f"no seed of the {side} has a value")
        rule = require_safety if self.must_be_shown else block_on_harm
        found = rule(kept, sign * with_failures(sign * kept, sign * new), margin=self.margin, better=self.better)
        return replace(found, reason=found.reason + _gaps(base.size - kept.size, lacking))


def _gaps(left_out: int, worst: int) -> str:
    """Say how seeds without a value were counted."""
    told = f"; {counted(left_out, 'seed')} of the baseline without a value left out" if left_out else ""
    return told + (f"; {counted(worst, 'seed')} of the candidate without a value counted as the worst" if worst else "")


def block_on_harm(
    baseline: ArrayLike,
    candidate: ArrayLike,
    *,
    margin: float = 0.0,
    better: Better = "higher",
    level: float = HARM_LEVEL,
    seed: int = 0,
) -> Guardrail:
    """Say `harm` where the candidate is shown to be worse by more than `margin`, `passes` else: (n,), (m,) → Guardrail.

    A one-sided permutation test at `level`: it lets through what nobody can show to be harmful, so it needs no more
    seeds than the verdict has. Where harm must be ruled out, use `require_safety`.
    """
    base, new = _upwards(baseline, candidate, better)
    _, below = permutation_tails(base, new + abs(margin), seed=seed)
    interval = permutation_interval(base, new, below=level, above=level, seed=seed)
    is_harm = float(below) <= level
    relation = "≤" if is_harm else ">"
    reason = f"worse by more than {figure(abs(margin))}: p = {float(below):.2g} {relation} {level:g}"
    found = _guardrail("harm" if is_harm else "passes", base, new, interval.high, better=better, reason=reason)
    return _leaning(found, base, new, margin)


def require_safety(
    baseline: ArrayLike,
    candidate: ArrayLike,
    *,
    margin: float,
    better: Better = "higher",
    level: float = SAFETY_LEVEL,
    seed: int = 0,
) -> Guardrail:
    """Say `passes` only where the candidate is shown to lose less than `margin`: (n,), (m,) → Guardrail.

    The one-sided 1 − `level` bound of candidate − baseline must lie above −`margin` (non-inferiority); `unproven` else,
    `harm` where the other bound lies below it. Equal learners pass a margin of .5 sd at 30 seeds a side only 16–36
    times in 100 on tails: guard means, or plan for many seeds.
    """
    base, new = _upwards(baseline, candidate, better)
    interval = permutation_interval(base, new, below=level, above=level, seed=seed)
    answer: Answer = "passes" if interval.low > -abs(margin) else "harm" if interval.high < -abs(margin) else "unproven"
    reason = f"at worst {signed(interval.low)}, allowed {signed(-abs(margin))}"
    return _leaning(_guardrail(answer, base, new, interval.low, better=better, reason=reason), base, new, margin)


def _leaning(found: Guardrail, base: Floats, new: Floats, margin: float) -> Guardrail:
    return replace(found, leans_to_harm=found.answer != "harm" and bool(new.mean() - base.mean() < -abs(margin)))


def _upwards(baseline: ArrayLike, candidate: ArrayLike, better: Better) -> tuple[Floats, Floats]:
    """Turn both sides so that higher is better."""
    sign = 1.0 if better == "higher" else -1.0
    return sign * as_runs(baseline), sign * as_runs(candidate)


def _guardrail(answer: Answer, base: Floats, new: Floats, bound: float, *, better: Better, reason: str) -> Guardrail:
    sign = 1.0 if better == "higher" else -1.0
    return Guardrail(answer, sign * float(new.mean() - base.mean()), sign * bound, reason)


@dataclass(frozen=True)
class Tail:
    """How many candidate runs lie below every baseline run, and how likely that is between equal learners."""

    below: int
    p: float

    @property
    def is_flagged(self) -> bool:
        """Whether seeds fail that did not fail before: ≥ 3, and as unlikely as 3 of 10 v 10 (p .105)."""
        return self.below >= TAIL_SEEDS and self.p <= TAIL_P


def tail_check(baseline: ArrayLike, candidate: ArrayLike) -> Tail:
    """Count the candidate runs below the baseline's worst: (n,), (m,) → Tail.

    p is the chance that the `below` lowest of all n + m runs are all the candidate's. A flag, not a gate: tails are
    too thin at ten seeds to decide on.
    """
    base, new = as_runs(baseline), as_runs(candidate)
    below = int(np.count_nonzero(new < base.min()))
    return Tail(below, math.comb(new.size, below) / math.comb(new.size + base.size, below))
