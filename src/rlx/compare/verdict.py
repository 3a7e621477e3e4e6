"""The verdict on a candidate: better, worse, inconclusive or invalid, with the reason and what would settle it.

Drawn from the declared looks alone (see `looks`): the first look that decides is the verdict, and it stands whatever
is trained afterwards. The interval beside it has the look's own two levels, so it excludes zero exactly where the look
decided. Before a look can decide, the interval is the 90 % one, the most that 3 v 3 can bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rlx.compare.guardrails import Guardrail
from rlx.compare.looks import PLAN, Decision, Look, Plan, holm_shares, take, with_failures
from rlx.compare.permutation import permutation_interval, permutation_tails
from rlx.compare.planning import seeds_needed
from rlx.compare.stats import Floats, Interval, plain, pooled_deviation
from rlx.figures import signed

LEANING_LEVEL = 0.05
"""Each end of the interval shown before a decision is possible."""


@dataclass(frozen=True)
class Rules:
    """How a pair is judged: the plan of looks, the smallest effect that counts, and whether `worse` may be said.

    `worse` may not be said where crashed baseline seeds were left out: that flatters the baseline.
    """

    plan: Plan = PLAN
    minimum_effect: float = 0.0
    can_be_worse: bool = True

    def decision(self, look: Look, *, share: float) -> Decision | None:
        """Return what a look decides under these rules."""
        found = look.decision(share=share, minimum_effect=self.minimum_effect)
        return None if found == "worse" and not self.can_be_worse else found


@dataclass(frozen=True)
class Verdict:
    """What the evidence says: `leaning` is the candidate's mean minus the baseline's, `n` the seeds of both sides.

    `p` is one-sided, in the direction of the leaning. `look` is the size of the look that decided, `next_look` that of
    the next one that can; `settle` says what would decide it, empty where nothing is open.
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
        """Return the verdict in one line, as people read it."""
        if self.verdict == "invalid":
            return f"invalid: {self.reason}"
        if math.isnan(self.leaning):
            return f"inconclusive: {self.reason}"
        size = f"at {self.n[0]} v {self.n[1]}"
        if self.verdict != "inconclusive":
            return f"{self.verdict}: {self.effect()} {size}, p = {self.p:.2g}"
        word = "inconclusive, futile" if self.is_futile else "inconclusive"
        return f"{word}: leaning {self.effect()}, undecided {size}"

    def effect(self) -> str:
        """Return the difference with its interval: `+11 [−9, +31]`."""
        shown = [value for value in (self.leaning, self.interval.low, self.interval.high) if math.isfinite(value)]
        decimals = _decimals(max(map(abs, shown)))
        low, high = (_signed(end, decimals) for end in (self.interval.low, self.interval.high))
        return f"{_signed(self.leaning, decimals)} [{low}, {high}]"

    def document(self) -> dict[str, object]:
        """Return the verdict as JSON-able data; None is an open end of the interval, or a number that is not known."""
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
    rules: Rules | None = None,
    floor: float | None = None,
    looks: Sequence[Look] | None = None,
    share: float = 1.0,
) -> Verdict:
    """Judge a candidate's scores against the baseline's, one a seed in the order trained: (n,), (m,) → Verdict.

    A candidate score that is not finite is a crashed seed and scores min(`floor`, worst seen), `floor` being the random
    policy's score; a baseline score that is not finite must be retrained. `looks` are those taken already (by default
    all that the scores allow); `share` scales their levels where several candidates are judged together.
    """
    rules = rules or Rules()
    base, new = np.asarray(baseline, dtype=np.float64), np.asarray(candidate, dtype=np.float64)
    problem = _unusable(base, new)
    if problem:
        return invalid(problem, n=(base.size, new.size))
    if looks is None:
        looks = take(base, new, plan=rules.plan, floor=floor)
    for look in looks:
        decision = rules.decision(look, share=share)
        if decision:
            return _decided(look, decision, share)
    return _undecided(base, with_failures(base, new, floor=floor), looks, rules, share)


def judge_all(
    baseline: ArrayLike,
    candidates: Sequence[ArrayLike],
    *,
    rules: Rules | None = None,
    floor: float | None = None,
) -> list[Verdict]:
    """Judge several candidates against one baseline, corrected for their number (Holm): (n,), [(m,), …] → Verdicts."""
    rules = rules or Rules()
    base = np.asarray(baseline, dtype=np.float64)
    arrays = [np.asarray(candidate, dtype=np.float64) for candidate in candidates]
    usable = [index for index, new in enumerate(arrays) if not _unusable(base, new)]
    looks = {index: take(base, arrays[index], plan=rules.plan, floor=floor) for index in usable}
    shares = dict(zip(usable, holm_shares([strength(looks[index], rules) for index in usable]), strict=True))
    return [
        judge(base, new, rules=rules, floor=floor, looks=looks.get(index), share=shares.get(index, 1.0))
        for index, new in enumerate(arrays)
    ]


def strength(looks: Sequence[Look], rules: Rules) -> float:
    """Return the share of the plan's levels at which these looks would just decide; infinite where none can."""
    decidable = [look for look in looks if look.stage.can_decide]
    minimum = rules.minimum_effect
    if rules.can_be_worse:
        return min((look.strength(minimum_effect=minimum) for look in decidable), default=math.inf)
    found = (look.above / look.stage.better for look in decidable if look.leaning >= minimum)
    return min(found, default=math.inf)


def guarded(verdict: Verdict, guardrails: Mapping[str, Guardrail]) -> Verdict:
    """Hold back a `better` that harms a guarded metric, or whose safety on one is required and not shown yet."""
    if verdict.verdict != "better":
        return verdict
    harmed = [f"{name} ({one.reason})" for name, one in guardrails.items() if one.answer == "harm"]
    unproven = [f"{name} ({one.reason})" for name, one in guardrails.items() if one.answer == "unproven"]
    if harmed:
        return replace(verdict, verdict="inconclusive", reason=f"better, but it harms {', '.join(harmed)}")
    if unproven:
        wanted = f"better, but not shown to be safe for {', '.join(unproven)}"
        return replace(verdict, verdict="inconclusive", reason=wanted, settle="more seeds a side narrow the bound")
    return verdict


def invalid(reason: str, *, n: tuple[int, int]) -> Verdict:
    """Return the verdict on evidence that cannot be used."""
    nothing = Interval(-math.inf, math.inf, 0.0)
    return Verdict("invalid", math.nan, nothing, math.nan, n, reason)


def undecided(reason: str, *, n: tuple[int, int]) -> Verdict:
    """Return the verdict while there is nothing to compare yet."""
    nothing = Interval(-math.inf, math.inf, 0.0)
    return Verdict("inconclusive", math.nan, nothing, math.nan, n, reason, next_look=PLAN.deciding[0].seeds)


def _unusable(base: Floats, new: Floats) -> str:
    for side, scores in (("baseline", base), ("candidate", new)):
        if scores.size == 0:
            return f"no {side} seeds"
    crashed = int(np.count_nonzero(~np.isfinite(base)))
    if crashed:
        return f"{crashed} of the baseline's {base.size} seeds have no finite score: a baseline seed must be retrained"
    return "" if np.isfinite(new).any() else f"none of the candidate's {new.size} seeds has a finite score"


def _decided(look: Look, decision: Decision, share: float) -> Verdict:
    stage = look.stage
    level, p = (stage.better, look.above) if decision == "better" else (stage.worse, look.below)
    interval = _interval(np.array(look.baseline), np.array(look.candidate), stage.better * share, stage.worse * share)
    reason = f"p = {p:.2g} ≤ {level * share:.2g} at the look of {stage.seeds}{_shared(share)}"
    n = (len(look.baseline), len(look.candidate))
    return Verdict(decision, look.leaning, interval, p, n, reason, look=stage.seeds)


def _shared(share: float) -> str:
    return f" (levels shared by {round(1 / share)} candidates)" if share < 1 else ""


def _undecided(base: Floats, new: Floats, looks: Sequence[Look], rules: Rules, share: float) -> Verdict:
    leaning = float(new.mean() - base.mean())
    above, below = permutation_tails(base, new)
    last = max((look.stage.seeds for look in looks if look.stage.can_decide), default=0)
    coming = rules.plan.next_deciding(last)
    is_futile = bool(looks) and looks[-1].is_futile
    return Verdict(
        "inconclusive",
        leaning,
        _leaning_interval(base, new, rules.plan, share),
        float(above if leaning >= 0 else below),
        (base.size, new.size),
        _why(looks, rules, share),
        _futile(looks[-1]) if is_futile else _settle(base, new, rules.plan, last),
        next_look=coming.seeds if coming else None,
        is_futile=is_futile,
    )


def _why(looks: Sequence[Look], rules: Rules, share: float) -> str:
    made = [look for look in looks if look.stage.can_decide]
    if not made:
        return f"nothing is decided on fewer than {rules.plan.deciding[0].seeds} seeds a side"
    last = made[-1]
    if last.above <= last.stage.better * share and last.leaning < rules.minimum_effect:
        return f"{signed(last.leaning)} is less than the {signed(rules.minimum_effect)} asked for"
    p, level = (last.above, last.stage.better) if last.leaning >= 0 else (last.below, last.stage.worse)
    if last.leaning < 0 and p <= level * share:
        return "crashed baseline seeds were left out, which flatters the baseline: `worse` is not said"
    return f"p = {p:.2g} > {level * share:.2g} at the look of {last.stage.seeds}{_shared(share)}"


def _futile(look: Look) -> str:
    chance = f"p = {look.above:.2g} > {look.stage.futile:g} at the look of {look.stage.seeds}"
    return f"nothing worth its cost: more seeds are unlikely to show an improvement ({chance})"


def _settle(base: Floats, new: Floats, plan: Plan, last: int) -> str:
    """Say what would decide it: the next declared look, or fresh runs; never a size at which nothing is decided."""
    coming = plan.next_deciding(last)
    if coming is None:
        return _spent(base, new, plan)
    missing = [
        f"{coming.seeds - count} more for the {side}"
        for count, side in ((base.size, "baseline"), (new.size, "candidate"))
        if count < coming.seeds
    ]
    return f"the look at {coming.seeds} seeds a side: {', '.join(missing)}"


def _spent(base: Floats, new: Floats, plan: Plan) -> str:
    most = plan.deciding[-1]
    spread = pooled_deviation(base, new)
    effect = abs(float(new.mean() - base.mean())) / spread if spread > 0 else 0.0
    if effect == 0 or seeds_needed(effect, alpha=plan.deciding[0].better) > most.seeds:
        return f"nothing practical: {effect:.2g} sd, as seen here, is too little for {most.seeds} seeds a side to find"
    return "the plan is spent on these seeds: only new runs of both on fresh seeds can decide"


def _leaning_interval(base: Floats, new: Floats, plan: Plan, share: float) -> Interval:
    """Return the interval at the levels of the look that has or will have this many seeds; 90 % before the first."""
    size = min(base.size, new.size)
    if size < plan.deciding[0].seeds:
        return _interval(base, new, LEANING_LEVEL, LEANING_LEVEL)
    stage = next((stage for stage in plan.deciding if stage.seeds >= size), plan.deciding[-1])
    return _interval(base, new, stage.better * share, stage.worse * share)


def _interval(base: Floats, new: Floats, below: float, above: float) -> Interval:
    return permutation_interval(base, new, below=below, above=above)


def _decimals(largest: float) -> int:
    """Return the decimals that show the largest number with two digits."""
    return max(0, 1 - math.floor(math.log10(largest))) if largest > 0 else 0


def _signed(value: float, decimals: int) -> str:
    if math.isinf(value):
        return "+∞" if value > 0 else "−∞"
    return f"{round(value, decimals) + 0.0:+,.{decimals}f}".replace("-", "−")  # + 0.0 turns −0 into +0
