"""The rule that decides whether a candidate run is better: better, worse, inconclusive or invalid, and why.

A verdict uses only the declared looks (see `interim_plan`). The first look that decides is the verdict, and training
more seeds never changes it. The interval next to it has the same two levels as the look, so it excludes zero exactly
if the look decided. Before a look can decide, the interval has 90 %, the most that 3 v 3 can bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rlx.compare.guardrails import GuardrailResult
from rlx.compare.interim_plan import PLAN, Decision, InterimLook, InterimPlan, take, with_failures
from rlx.compare.permutation import permutation_interval, permutation_tails
from rlx.compare.power import seeds_needed
from rlx.compare.stats import Floats, Interval, pooled_deviation
from rlx.number_format import plain, signed

LEANING_LEVEL = 0.05
"""One-sided level of each end of the interval before a decision is possible."""
_UNKNOWN = Interval(-math.inf, math.inf, 0.0)


@dataclass(frozen=True)
class VerdictRules:
    """How a pair is judged: the plan of looks, the smallest effect that counts, and whether `worse` is allowed.

    `worse` is not allowed if crashed baseline seeds were left out, because that flatters the baseline.
    """

    plan: InterimPlan = PLAN
    minimum_effect: float = 0.0
    can_be_worse: bool = True

    def decision(self, look: InterimLook, *, share: float) -> Decision | None:
        """Return what a look decides under these rules."""
        decision = look.decision(share=share, minimum_effect=self.minimum_effect)
        if decision == "worse" and not self.can_be_worse:
            return None
        return decision


@dataclass(frozen=True)
class Verdict:
    """The verdict on a pair: `leaning` is the candidate's mean minus the baseline's, `n` the seeds of both sides.

    `p` is one-sided, in the direction of the leaning. `look` is the size of the look that decided, and `next_look` the
    size of the next one that can. `settle` says what would decide an open verdict.
    """

    verdict: Literal["better", "worse", "inconclusive", "invalid"]
    leaning: float
    interval: Interval
    p: float
    n: tuple[int, int]
    reason: str
    settle: str = ""
    look: int | None = None
    next_look: int | None = None
    is_futile: bool = False

    def line(self) -> str:
        """Return the verdict in one line for people."""
        if self.verdict == "invalid" or math.isnan(self.leaning):
            return f"{self.verdict}: {self.reason}"
        size = f"at {self.n[0]} v {self.n[1]}"
        if self.verdict != "inconclusive":
            return f"{self.verdict}: {self.effect()} {size}, p = {self.p:.2g}"
        futile = ""
        if self.is_futile:
            futile = ", futile"
        return f"inconclusive{futile}: leaning {self.effect()}, undecided {size}"

    def effect(self) -> str:
        """Return the difference with its interval: `+11 [−9, +31]`."""
        values = (self.leaning, self.interval.low, self.interval.high)
        decimals = _decimals(max(abs(value) for value in values if math.isfinite(value)))
        leaning, low, high = (_signed(value, decimals) for value in values)
        return f"{leaning} [{low}, {high}]"

    def document(self) -> dict[str, object]:
        """Return the verdict as JSON-able data. None is an open end of the interval, or an unknown number."""
        return {
            "verdict": self.verdict,
            "leaning": plain(self.leaning),
            "interval": [plain(self.interval.low), plain(self.interval.high)],
            "level": round(self.interval.level, 9),
            "p": plain(self.p),
            "n": list(self.n),
            "reason": self.reason,
            "settle": self.settle,
            "look": self.look,
            "next_look": self.next_look,
            "is_futile": self.is_futile,
        }


def judge(
    baseline: ArrayLike,
    candidate: ArrayLike,
    *,
    rules: VerdictRules | None = None,
    floor: float | None = None,
    looks: Sequence[InterimLook] | None = None,
    share: float = 1.0,
) -> Verdict:
    """Judge a candidate's scores against the baseline's, one per seed in training order: (n,), (m,) → Verdict.

    A candidate score that is not finite is a crashed seed. It scores min(`floor`, worst seen), with `floor` the random
    policy's score. A baseline seed without a finite score must be retrained. `looks` are the looks taken so far (by
    default all that the scores allow). `share` scales their levels if several candidates are judged together.
    """
    rules = rules or VerdictRules()
    base = np.asarray(baseline, dtype=np.float64)
    new = np.asarray(candidate, dtype=np.float64)
    problem = _problem(base, new)
    if problem:
        return invalid(problem, n=(base.size, new.size))
    if looks is None:
        looks = take(base, new, plan=rules.plan, floor=floor)
    for look in looks:
        decision = rules.decision(look, share=share)
        if decision:
            return _decided(look, decision, share)
    return _undecided(base, with_failures(base, new, floor=floor), looks, rules, share)


def strength(looks: Sequence[InterimLook], rules: VerdictRules) -> float:
    """Return the share of the plan's levels at which these looks would just decide, or infinity if none can."""
    shares = [math.inf]
    for look in looks:
        if look.stage.better and look.leaning >= rules.minimum_effect:
            shares.append(look.above / look.stage.better)
        if look.stage.worse and rules.can_be_worse:
            shares.append(look.below / look.stage.worse)
    return min(shares)


def guarded(verdict: Verdict, guardrails: Mapping[str, GuardrailResult]) -> Verdict:
    """Hold back a `better` that harms a guarded metric, or that must be shown to be safe for it and is not yet."""
    if verdict.verdict != "better":
        return verdict
    harmed = [f"{name} ({result.reason})" for name, result in guardrails.items() if result.answer == "harm"]
    unproven = [f"{name} ({result.reason})" for name, result in guardrails.items() if result.answer == "unproven"]
    if harmed:
        return replace(verdict, verdict="inconclusive", reason=f"better, but it harms {', '.join(harmed)}")
    if unproven:
        reason = f"better, but not shown to be safe for {', '.join(unproven)}"
        return replace(verdict, verdict="inconclusive", reason=reason, settle="more seeds per side narrow the bound")
    return verdict


def invalid(reason: str, *, n: tuple[int, int]) -> Verdict:
    """Return the verdict on evidence that cannot be used."""
    return Verdict("invalid", math.nan, _UNKNOWN, math.nan, n, reason)


def undecided(reason: str, *, n: tuple[int, int]) -> Verdict:
    """Return the verdict while there is nothing to compare yet."""
    return Verdict("inconclusive", math.nan, _UNKNOWN, math.nan, n, reason, next_look=PLAN.deciding[0].seeds)


def _problem(base: Floats, new: Floats) -> str:
    for side, scores in (("baseline", base), ("candidate", new)):
        if scores.size == 0:
            return f"no {side} seeds"
    crashed = int(np.count_nonzero(~np.isfinite(base)))
    if crashed:
        return f"{crashed} of the baseline's {base.size} seeds have no finite score: a baseline seed must be retrained"
    if np.isfinite(new).any():
        return ""
    return f"none of the candidate's {new.size} seeds has a finite score"


def _decided(look: InterimLook, decision: Decision, share: float) -> Verdict:
    stage = look.stage
    levels = {"better": (look.above, stage.better), "worse": (look.below, stage.worse)}
    p, level = levels[decision]
    interval = permutation_interval(
        look.baseline, look.candidate, below=stage.better * share, above=stage.worse * share
    )
    reason = f"p = {p:.2g} ≤ {level * share:.2g} at the look of {stage.seeds}{_share_note(share)}"
    n = (len(look.baseline), len(look.candidate))
    return Verdict(decision, look.leaning, interval, p, n, reason, look=stage.seeds)


def _share_note(share: float) -> str:
    if not (share < 1):
        return ""
    return f" (levels shared by {round(1 / share)} candidates)"


def _undecided(base: Floats, new: Floats, looks: Sequence[InterimLook], rules: VerdictRules, share: float) -> Verdict:
    leaning = float(new.mean() - base.mean())
    above, below = permutation_tails(base, new)
    last = max((look.stage.seeds for look in looks if look.stage.can_decide), default=0)
    next_stage = rules.plan.next_deciding(last)
    is_futile = bool(looks) and looks[-1].is_futile
    return Verdict(
        "inconclusive",
        leaning,
        _leaning_interval(base, new, rules.plan, share),
        float(above if leaning >= 0 else below),
        (base.size, new.size),
        _why_undecided(looks, rules, share),
        _futile(looks[-1]) if is_futile else _settle(base, new, rules.plan, last),
        next_look=next_stage.seeds if next_stage else None,
        is_futile=is_futile,
    )


def _why_undecided(looks: Sequence[InterimLook], rules: VerdictRules, share: float) -> str:
    deciding = [look for look in looks if look.stage.can_decide]
    if not deciding:
        return f"no decision is made on fewer than {rules.plan.deciding[0].seeds} seeds per side"
    last = deciding[-1]
    if last.above <= last.stage.better * share and last.leaning < rules.minimum_effect:
        return f"{signed(last.leaning)} is less than the required {signed(rules.minimum_effect)}"
    p = last.above
    level = last.stage.better * share
    if last.leaning < 0:
        p = last.below
        level = last.stage.worse * share
        if p <= level:
            return "crashed baseline seeds were left out, which flatters the baseline, so `worse` is not allowed"
    return f"p = {p:.2g} > {level:.2g} at the look of {last.stage.seeds}{_share_note(share)}"


def _futile(look: InterimLook) -> str:
    p = f"p = {look.above:.2g} > {look.stage.futile:g} at the look of {look.stage.seeds}"
    return f"nothing worth its cost: more seeds are unlikely to show an improvement ({p})"


def _settle(base: Floats, new: Floats, plan: InterimPlan, last: int) -> str:
    """Say what would decide it: the next look, or fresh runs. It never names a size at which nothing is decided."""
    stage = plan.next_deciding(last)
    if stage is None:
        return _settle_after_plan(base, new, plan)
    sides = (("baseline", base.size), ("candidate", new.size))
    missing = [f"{stage.seeds - count} more for the {side}" for side, count in sides if count < stage.seeds]
    return f"the look at {stage.seeds} seeds per side: {', '.join(missing)}"


def _settle_after_plan(base: Floats, new: Floats, plan: InterimPlan) -> str:
    most = plan.deciding[-1].seeds
    spread = pooled_deviation(base, new)
    effect = 0.0
    if spread > 0:
        effect = abs(float(new.mean() - base.mean())) / spread
    if effect == 0 or seeds_needed(effect, alpha=plan.deciding[0].better) > most:
        return f"nothing practical: {effect:.2g} sd, as seen here, is too small for {most} seeds per side to find"
    return "the plan has no more looks for these seeds: only new runs of both on fresh seeds can decide"


def _leaning_interval(base: Floats, new: Floats, plan: InterimPlan, share: float) -> Interval:
    """Return the interval at the levels of the look with this many seeds, or the 90 % one before the first look."""
    size = min(base.size, new.size)
    if size < plan.deciding[0].seeds:
        return permutation_interval(base, new, below=LEANING_LEVEL, above=LEANING_LEVEL)
    stage = next((stage for stage in plan.deciding if stage.seeds >= size), plan.deciding[-1])
    return permutation_interval(base, new, below=stage.better * share, above=stage.worse * share)


def _decimals(largest: float) -> int:
    """Return the decimals that show the largest number with two digits."""
    if not (largest > 0):
        return 0
    return max(0, 1 - math.floor(math.log10(largest)))


def _signed(value: float, decimals: int) -> str:
    if math.isinf(value):
        if value > 0:
            return "+∞"
        return "−∞"
    return f"{round(value, decimals) + 0.0:+,.{decimals}f}".replace("-", "−")  # + 0.0 turns −0 into +0
