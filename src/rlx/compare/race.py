"""The race for a study's head, and the one confirmation that may claim an improvement; pure.

A search cannot afford ten seeds a candidate, and a claim cannot rest on fewer. So the two are apart: the *head*, where
the search stands, moves on weak evidence, and is only claimed after a fresh comparison with the original baseline.

The race: 3 seeds of a candidate against 6 of the head; where the one-sided permutation p on the mean is below .35 it
gets 3 more; it takes the head's place where p ≤ .17 at six. The new head is then run on 6 fresh seeds, because those
it won with are too good on average and would block every later gain. Looks are always on the first seeds, so more of
them change no answer.

The confirmation: ten fresh seeds a side, head against the original baseline, p ≤ α/m for m claims, an effect of at
least the smallest that counts, no guardrail harmed. Only this moves an incumbent.

`bench/campaign.py` measures both over whole studies (`bench/campaign.md`): 30 candidates that change nothing end in a
false claim 4 times in 100, and 30 of which 15 % gain one sd and 35 % lose half a sd end 2.6 sd higher for 162 seeds.
With .15 in the place of .17 they end 2.5 sd higher for 161; with .20, 2.7 sd for 165.

Ties go to the simpler: a gain below the smallest that counts does not move the head to something more complex. A
candidate that is simpler and not shown better is only named: nothing that may be worse moves the head.

A score of None is a crashed seed. A candidate's scores the worst that the metric can be, or where that is not known as
far below the worst seen as the best lies above it: crashing must not score better than finishing badly. Where all of
them did it is invalid, for it was not tried. A head's or a baseline's is left out and must be replaced, which flatters
that side. NaN and infinity are no scores: they make it invalid.

What is not covered: scores whose spread differs much between the sides (a permutation test of means is then only
approximate), and a candidate that fails on few seeds (one that fails on a quarter passes 10 times in 100 at ten).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlx.compare.guardrails import Better, Guardrail, Tail, tail_check
from rlx.compare.looks import with_failures
from rlx.compare.permutation import permutation_interval, permutation_tails
from rlx.compare.planning import seeds_needed
from rlx.compare.stats import Floats, Interval, plain, pooled_deviation
from rlx.figures import figure, signed

Scores = Sequence[float | None]
Step = Literal["more", "advance", "drop", "invalid"]
Answer = Literal["confirmed", "not shown", "harmful", "provisional", "invalid"]

LEAST_SEEDS = 10
"""A claim on fewer seeds a side is provisional, whatever its p."""
ERRORS: Mapping[int, float] = {3: 0.33, 4: 0.28, 5: 0.24, 6: 0.18, 7: 0.14, 8: 0.11, 9: 0.10, 10: 0.10}
"""How often p ≤ .05 at so many seeds a side passes a change of equal mean that fails on a quarter of its seeds.

Measured by `bench/campaign.py`; with two seeds or one there is no p of .05, and the higher mean is right by chance.
"""
_SHOWN_LEVEL = 0.05
"""Each end of the interval beside a race: 90 %, the most that 3 v 6 bound well."""
_ROUNDING = 1e-12
_NOTHING = Interval(-math.inf, math.inf, 0.0)


@dataclass(frozen=True)
class Rule:
    """How the head is raced: the seeds of the two looks and of the head, and the p-values that go on and that move."""

    first: int = 3
    last: int = 6
    head: int = 6
    go_on: float = 0.35
    move: float = 0.17

    def goes_on(self, p: ArrayLike) -> NDArray[np.bool_]:
        """Say whether the first look's p earns the second: (…) → (…)."""
        return np.asarray(p) < self.go_on - _ROUNDING

    def moves(self, p: ArrayLike) -> NDArray[np.bool_]:
        """Say whether the last look's p moves the head: (…) → (…)."""
        return np.asarray(p) <= self.move + _ROUNDING


RULE = Rule()


@dataclass(frozen=True)
class Complexity:
    """What a policy costs its readers: the lines and keys changed since the original baseline, and its parameters.

    Parameters that nobody can count (of a policy that is not rlx's own: None) are no difference.
    """

    lines: int = 0
    parameters: int | None = None

    def is_simpler_than(self, other: Complexity) -> bool:
        """Say whether it has less of one and no more of the other."""
        is_known = self.parameters is not None and other.parameters is not None
        ours, theirs = (self.parameters or 0, other.parameters or 0) if is_known else (0, 0)
        return self.lines <= other.lines and ours <= theirs and (self.lines, ours) != (other.lines, theirs)


@dataclass(frozen=True)
class Race:
    """Where a candidate stands against the head; `p` is one-sided, for the candidate being better.

    `effect` is candidate − head in the metric's own unit, whatever its direction. `need` and `need_head` are the seeds
    to train before the next look. `n` are the seeds that were looked at, head first. `crashed` are the candidate's that
    did, `replaced` the head's. `prefers_candidate` names a simpler candidate that is not shown to be better.
    """

    step: Step
    reason: str
    p: float = math.nan
    effect: float = math.nan
    interval: Interval = _NOTHING
    need: int = 0
    need_head: int = 0
    n: tuple[int, int] = (0, 0)
    crashed: int = 0
    replaced: int = 0
    prefers_candidate: bool = False

    def document(self) -> dict[str, Any]:
        """Return the race as JSON-able data; None is what is not known."""
        return {
            "step": self.step, "reason": self.reason, "p": plain(self.p), "effect": plain(self.effect),
            "interval": [plain(self.interval.low), plain(self.interval.high)],
            "level": round(self.interval.level, 9), "need": self.need, "need_head": self.need_head,
            "n": list(self.n), "crashed": self.crashed, "replaced": self.replaced,
            "prefers_candidate": self.prefers_candidate,
        }  # fmt: skip


def race(
    head: Scores,
    candidate: Scores,
    *,
    better: Better = "higher",
    floor: float | None = None,
    min_effect: float = 0.0,
    complexity: tuple[Complexity, Complexity] | None = None,
    rule: Rule = RULE,
) -> Race:
    """Race a candidate against the head, one score a seed in the order trained: (n,), (m,) → Race.

    `floor` is the worst that the metric can be where that is known: a crashed seed scores it. `complexity` is the
    head's and the candidate's, for ties; a gain below `min_effect` is one.
    """
    problem = _unusable({"head": head, "candidate": candidate}) or _scoreless(candidate)
    if problem:
        return Race("invalid", problem)
    sign = 1.0 if better == "higher" else -1.0
    ours, theirs = _finite(head, sign), _with_gaps(candidate, sign)
    waiting = _missing(ours.size, theirs.size, rule)
    if waiting:
        return waiting
    replaced = sum(score is None for score in head)
    looks = [_Look.take(ours[: rule.head], theirs[:size], replaced, floor=floor, sign=sign)
             for size in (rule.first, rule.last)]  # fmt: skip
    if not rule.goes_on(looks[0].p):
        p, limit = _apart(looks[0].p, rule.go_on)
        return looks[0].race("drop", f"p = {p}, and {limit} or more ends it at {rule.first} seeds")
    if theirs.size < rule.last:
        why = f"p = {' < '.join(_apart(looks[0].p, rule.go_on))} at {rule.first} seeds"
        return looks[0].race("more", why, need=rule.last - theirs.size)
    return _decided(looks[1], rule, min_effect, complexity or (Complexity(), Complexity()))


def _missing(head: int, candidate: int, rule: Rule) -> Race | None:
    """Return what must be trained before the first look; None where it can be taken."""
    need, need_head = max(0, rule.first - candidate), max(0, rule.head - head)
    if not need and not need_head:
        return None
    wanted = [f"{count} of the {side}" for side, count in (("head", need_head), ("candidate", need)) if count]
    reason = f"the first look takes {rule.first} v {rule.head} seeds: {' and '.join(wanted)} to come"
    return Race("more", reason, need=need, need_head=need_head)


def _decided(look: _Look, rule: Rule, min_effect: float, complexity: tuple[Complexity, Complexity]) -> Race:
    of_head, of_candidate = complexity
    p, limit = _apart(look.p, rule.move)
    if not rule.moves(look.p):
        is_named = of_candidate.is_simpler_than(of_head)
        told = "; it is simpler, and not shown to be better or worse" if is_named else ""
        return look.race("drop", f"p = {p} > {limit} at {rule.last} seeds{told}", prefers_candidate=is_named)
    if look.gain < min_effect and of_head.is_simpler_than(of_candidate):
        small = f"a change of {signed(look.effect)} is less than the {figure(min_effect)} that counts"
        return look.race("drop", f"p = {p} ≤ {limit}, but {small}, and the head is simpler")
    return look.race("advance", f"p = {p} ≤ {limit} at {rule.last} seeds")


def _apart(p: float, limit: float) -> tuple[str, str]:
    """Spell a p-value and its limit, with as many digits as tell on which side of it the p-value lies."""
    order = 0.0 if abs(p - limit) <= _ROUNDING else math.copysign(1.0, p - limit)
    pairs = ((f"{p:.{digits}g}", f"{limit:.{max(digits, 3)}g}") for digits in range(2, 17))
    return next((one for one in pairs if np.sign(float(one[0]) - float(one[1])) == order), (f"{p:g}", f"{limit:g}"))


@dataclass(frozen=True)
class _Look:
    """One look of two sides, turned so that higher is better; crashed candidate seeds are filled in."""

    base: Floats
    new: Floats
    crashed: int
    replaced: int
    sign: float
    p: float
    p_worse: float

    @classmethod
    def take(cls, base: Floats, gapped: Floats, replaced: int, *, floor: float | None, sign: float) -> _Look:
        new = with_failures(base, gapped, floor=_beneath(base, gapped) if floor is None else sign * floor)
        above, below = permutation_tails(base, new)
        return cls(base, new, int(np.isnan(gapped).sum()), replaced, sign, float(above), float(below))

    @property
    def failures(self) -> str:
        """What of either side has no score, in words."""
        told = f"; {self.crashed} crashed" if self.crashed else ""
        return told + (f"; {self.replaced} of the other side's crashed: others stand in" if self.replaced else "")

    @property
    def gain(self) -> float:
        return float(self.new.mean() - self.base.mean())

    @property
    def effect(self) -> float:
        return self.sign * self.gain

    def settled_by(self, level: float) -> str:
        """Say what a claim would take that shows a gain as large as was seen four times in five; empty without any."""
        spread = pooled_deviation(self.base, self.new) if min(self.base.size, self.new.size) > 1 else 0.0
        if not (self.gain > 0 and spread > 0):
            return ""
        seeds = seeds_needed(self.gain / spread, alpha=level)
        return f"; if the gain is as large as it looks, a new study would show it with some {seeds} seeds a side"

    def interval(self, level: float) -> Interval:
        """Return the interval of the effect, each end at this one-sided level."""
        found = permutation_interval(self.base, self.new, below=level, above=level)
        ends = sorted((self.sign * found.low, self.sign * found.high))
        return Interval(ends[0], ends[1], found.level)

    def race(self, step: Step, reason: str, *, need: int = 0, prefers_candidate: bool = False) -> Race:
        return Race(
            step, reason + self.failures, self.p, self.effect, self.interval(_SHOWN_LEVEL), need,
            n=(self.base.size, self.new.size), crashed=self.crashed, replaced=self.replaced,
            prefers_candidate=prefers_candidate,
        )  # fmt: skip


@dataclass(frozen=True)
class Confirmation:
    """What fresh seeds say of the head against the original baseline; only `confirmed` moves an incumbent.

    `effect` is head − baseline in the metric's own unit; the interval's ends have the level of the claim, so it
    excludes zero exactly where p ≤ `level`. `crashed` are the head's seeds that did, `replaced` the baseline's. `error`
    is how often a claim on so few seeds passes a risky change.
    """

    answer: Answer
    reason: str
    p: float = math.nan
    level: float = math.nan
    effect: float = math.nan
    interval: Interval = _NOTHING
    n: tuple[int, int] = (0, 0)
    crashed: int = 0
    replaced: int = 0
    error: float | None = None
    tail: Tail | None = None
    guardrails: Mapping[str, Guardrail] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the confirmation as JSON-able data; None is what is not known."""
        tail = self.tail and {"below": self.tail.below, "p": self.tail.p, "is_flagged": self.tail.is_flagged}
        return {
            "answer": self.answer, "reason": self.reason, "p": plain(self.p), "level": plain(self.level),
            "effect": plain(self.effect), "interval": [plain(self.interval.low), plain(self.interval.high)],
            "n": list(self.n), "crashed": self.crashed, "replaced": self.replaced, "error": self.error, "tail": tail,
            "guardrails": {name: one.document() for name, one in self.guardrails.items()},
        }  # fmt: skip


def confirm(
    baseline: Scores,
    head: Scores,
    *,
    better: Better = "higher",
    alpha: float = 0.05,
    claims: int = 1,
    min_effect: float = 0.0,
    seeds: int = LEAST_SEEDS,
    guardrails: Mapping[str, Guardrail] | None = None,
    floor: float | None = None,
) -> Confirmation:
    """Judge the head against the original baseline, both on fresh seeds: (n,), (m,) → Confirmation.

    Each of `claims` is held to α/m, so the chance that any is false stays below `alpha` (Bonferroni). The first `seeds`
    of either side count, ten at least. `guardrails` are the answers of `guardrails.Guard.test`, by name.
    """
    guards = dict(guardrails or {})
    problem = _unusable({"baseline": baseline, "head": head}) or _absent(baseline, head)
    if problem:
        return Confirmation("invalid", problem, guardrails=guards)
    sign, planned, level = 1.0 if better == "higher" else -1.0, max(seeds, LEAST_SEEDS), alpha / claims
    ours, theirs = _finite(baseline, sign)[:planned], _with_gaps(head, sign)[:planned]
    look = _Look.take(ours, theirs, sum(score is None for score in baseline), floor=floor, sign=sign)
    answer, reason, error = *_answered(look, level, min_effect, guards), None
    if min(ours.size, theirs.size) < planned:
        answer, reason, error = "provisional", *_provisional(look, reason, planned)
    tail = tail_check(look.base, look.new)
    told = f"; {tail.below} of its seeds are below the baseline's worst" if tail.is_flagged else ""
    return Confirmation(
        answer, reason + look.failures + told, look.p, level, look.effect, look.interval(level),
        (ours.size, theirs.size), look.crashed, look.replaced, error, tail, guards,
    )  # fmt: skip


def _answered(look: _Look, level: float, min_effect: float, guards: Mapping[str, Guardrail]) -> tuple[Answer, str]:
    """Return what the scores and the guardrails say, as if there were seeds enough."""
    harmed = [f"{name} ({one.reason})" for name, one in guards.items() if one.answer == "harm"]
    unproven = [f"{name} ({one.reason})" for name, one in guards.items() if one.answer == "unproven"]
    if harmed:
        return "harmful", f"it harms {', '.join(harmed)}"
    if not look.replaced and look.p_worse <= level + _ROUNDING:
        return "harmful", f"it is worse: p = {' ≤ '.join(_apart(look.p_worse, level))}"
    if look.p > level + _ROUNDING:
        return "not shown", f"p = {' > '.join(_apart(look.p, level))}{look.settled_by(level)}"
    if look.gain < min_effect:
        return "not shown", f"a change of {signed(look.effect)} is less than the {figure(min_effect)} that counts"
    if unproven:
        return "not shown", f"p = {look.p:.2g}, but not shown to be safe for {', '.join(unproven)}"
    return "confirmed", f"p = {' ≤ '.join(_apart(look.p, level))}"


def _provisional(look: _Look, reason: str, planned: int) -> tuple[str, float]:
    """Return why nothing is claimed yet, and how often a claim on so few seeds errs."""
    fewest = min(look.base.size, look.new.size)
    error = ERRORS.get(min(fewest, LEAST_SEEDS), 0.5)
    parts = [f"{look.new.size} v {look.base.size} of {planned} seeds ({reason})"]
    parts += [f"a claim on {fewest} seeds passes a risky change {error:.0%} of the time"]
    return "; ".join(parts), error


def _beneath(base: Floats, gapped: Floats) -> float:
    """Return what a crashed seed scores where the metric has no end: as far below the worst seen as the best is above.

    With the worst seen alone a change that crashes its bad seeds would be claimed three times as often as one that
    finishes them.
    """
    seen = np.concatenate([base, gapped[np.isfinite(gapped)]])
    return float(2 * seen.min() - seen.max())


def _unusable(sides: Mapping[str, Scores]) -> str:
    for side, scores in sides.items():
        bad = sum(score is not None and not math.isfinite(score) for score in scores)
        if bad:
            return f"{bad} of the {side}'s {len(scores)} scores are NaN or infinite"
    return ""


def _scoreless(candidate: Scores) -> str:
    """Say that nothing of a candidate could be measured: then it was not tried, rather than found worse."""
    is_so = bool(candidate) and all(score is None for score in candidate)
    return f"none of the candidate's {len(candidate)} seeds has a score" if is_so else ""


def _absent(baseline: Scores, head: Scores) -> str:
    if all(score is None for score in baseline):
        return "the baseline has no scores"
    return "" if head else "the head has no scores"


def _finite(scores: Scores, sign: float) -> Floats:
    """Return the scores without crashed seeds, turned so that higher is better."""
    return sign * np.array([score for score in scores if score is not None], dtype=np.float64)


def _with_gaps(scores: Scores, sign: float) -> Floats:
    """Return the scores with NaN for crashed seeds, turned so that higher is better."""
    return sign * np.array([math.nan if score is None else score for score in scores], dtype=np.float64)
