"""The race for a study's head, and the confirmation that may claim an improvement. Pure functions on scores.

A search cannot afford ten seeds per candidate, and a claim needs at least that many. So rlx separates the two. The
*head*, the best guess of the search, moves on weak evidence. It is claimed only after a fresh comparison with the
original baseline.

The race tests 3 seeds of a candidate against 6 of the head. If the one-sided permutation p on the mean is below .35,
the candidate gets 3 more seeds. It becomes the head if p ≤ .17 at six. The new head then runs on 6 fresh seeds: the
seeds it won with are too good on average and would block every later gain. Looks always use the first seeds, so
further seeds never change an answer.

The confirmation tests the head against the original baseline on ten fresh seeds per side. It needs p ≤ α/m for m
claims, an effect of at least the smallest that counts, and no harmed guardrail. Only a confirmation moves an incumbent.

`bench/campaign.py` measures both over whole studies (`bench/campaign.md`). Thirty candidates that change nothing end in
a false claim 4 times in 100. Thirty of which 15 % gain one sd and 35 % lose half a sd end 2.6 sd higher for 162 seeds.
With .15 instead of .17 they end 2.5 sd higher for 161 seeds; with .20, 2.7 sd for 165.

Ties go to the simpler side: a gain below the smallest that counts does not move the head to a more complex candidate.
A candidate that is simpler and not shown to be better is only named. It never becomes the head, as it may be worse.

A score of None is a crashed seed. A candidate's crashed seed gets the worst value of the metric. If that is unknown, it
lies as far below the worst score as the best lies above it: crashing must not score better than finishing badly. If all
of a candidate's seeds crashed, the race is invalid, because the change was not tried. Crashed seeds of a head or
baseline are left out and must be replaced, which flatters that side. NaN and infinity make a race invalid.

Limits: the test is only approximate if the spread differs much between the sides. A candidate that fails on a quarter
of its seeds passes 10 times in 100 at ten seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from rlx.compare.guardrails import Better, GuardrailResult, Tail, tail_check
from rlx.compare.interim_plan import with_failures
from rlx.compare.permutation import permutation_interval, permutation_tails
from rlx.compare.power import seeds_needed
from rlx.compare.race_thresholds import ROUNDING, RULE, RaceRule
from rlx.compare.stats import Floats, Interval, pooled_deviation
from rlx.number_format import counted, figure, plain, signed

Scores = Sequence[float | None]
Step = Literal["more", "advance", "drop", "invalid"]
Answer = Literal["confirmed", "not shown", "harmful", "provisional", "invalid"]

LEAST_SEEDS = 10
"""A claim on fewer seeds per side is provisional, whatever its p."""
ERRORS: Mapping[int, float] = {3: 0.33, 4: 0.28, 5: 0.24, 6: 0.18, 7: 0.14, 8: 0.11, 9: 0.10, 10: 0.10}
"""How often p ≤ .05 at so many seeds per side passes a change of equal mean that fails on a quarter of its seeds.

Measured by `bench/campaign.py`. One or two seeds have no p of .05: there the higher mean is right by chance.
"""
_SHOWN_LEVEL = 0.05
"""One-sided level of the interval next to a race: 90 %, the most that 3 v 6 bound well."""
_UNKNOWN = Interval(-math.inf, math.inf, 0.0)


@dataclass(frozen=True)
class ScoreScale:
    """How scores are read: which direction is better, the worst possible score, and the smallest gain that counts.

    `shown_level` is the one-sided level of each end of a race's interval. It decides nothing.
    """

    better: Better = "higher"
    floor: float | None = None
    min_effect: float = 0.0
    shown_level: float = _SHOWN_LEVEL

    @property
    def sign(self) -> float:
        """The factor that turns scores so that higher is better."""
        if self.better == "lower":
            return -1.0
        return 1.0


SCALE = ScoreScale()


@dataclass(frozen=True)
class Claim:
    """What a confirmation must meet. Each of `claims` is held to α/m, so any false claim has chance < `alpha`."""

    alpha: float = 0.05
    claims: int = 1
    seeds: int = LEAST_SEEDS

    @property
    def level(self) -> float:
        return self.alpha / self.claims


CLAIM = Claim()


@dataclass(frozen=True)
class Complexity:
    """How complex a policy is: lines and keys changed since the original baseline, and its number of parameters.

    If the parameters of either side are unknown (None: the policy is not rlx's own), they count as equal.
    """

    lines: int = 0
    parameters: int | None = None

    def is_simpler_than(self, other: Complexity) -> bool:
        """Say whether it has less of one and no more of the other."""
        if self.parameters is None or other.parameters is None:
            return self.lines < other.lines
        own = (self.lines, self.parameters)
        others = (other.lines, other.parameters)
        return own != others and own[0] <= others[0] and own[1] <= others[1]


@dataclass(frozen=True)
class Race:
    """Where a candidate stands against the head. `p` is one-sided, for the candidate being better.

    `effect` is candidate − head in the metric's own unit. `need` and `need_head` are the seeds to train before the next
    look. `n` counts the seeds that were compared, head first. `crashed` counts the candidate's crashed seeds and
    `replaced` the head's. `prefers_candidate` names a simpler candidate that is not shown to be better.
    """

    step: Step
    reason: str
    p: float = math.nan
    effect: float = math.nan
    interval: Interval = _UNKNOWN
    need: int = 0
    need_head: int = 0
    n: tuple[int, int] = (0, 0)
    crashed: int = 0
    replaced: int = 0
    prefers_candidate: bool = False

    def document(self) -> dict[str, Any]:
        """Return the race as JSON-able data. None is an unknown number."""
        return {**_document(self), "level": round(self.interval.level, 9)}


def _document(result: Race | Confirmation) -> dict[str, Any]:
    """Return all fields of a result, with None for unknown numbers and the interval as its two ends."""
    document = {name: plain(value) if isinstance(value, float) else value for name, value in vars(result).items()}
    return {**document, "interval": [plain(result.interval.low), plain(result.interval.high)], "n": list(result.n)}


def race(
    head: Scores,
    candidate: Scores,
    *,
    scale: ScoreScale = SCALE,
    complexity: tuple[Complexity, Complexity] = (Complexity(), Complexity()),
    rule: RaceRule = RULE,
) -> Race:
    """Race a candidate against the head, one score per seed in training order: (n,), (m,) → Race.

    A gain below `scale.min_effect` is a tie. `complexity` of head and candidate decides ties.
    """
    problem = _not_finite({"head": head, "candidate": candidate})
    if not problem and candidate and all(score is None for score in candidate):
        problem = f"none of the candidate's {len(candidate)} seeds has a score"
    if problem:
        return Race("invalid", problem)
    base = _without_crashed(head, scale)
    new = _with_gaps(candidate, scale)
    waiting = _missing_seeds(base.size, new.size, rule)
    if waiting:
        return waiting
    replaced = sum(score is None for score in head)
    first = _Look.take(base[: rule.head], new[: rule.first], replaced, scale)
    if not rule.goes_on(first.p):
        p, limit = _spell_p(first.p, rule.go_on)
        return first.race("drop", f"p = {p}, and {limit} or more ends it at {rule.first} seeds")
    if new.size < rule.last:
        p, limit = _spell_p(first.p, rule.go_on)
        return first.race("more", f"p = {p} < {limit} at {rule.first} seeds", need=rule.last - new.size)
    return _decide(_Look.take(base[: rule.head], new[: rule.last], replaced, scale), rule, complexity)


def _missing_seeds(head: int, candidate: int, rule: RaceRule) -> Race | None:
    """Return what must be trained before the first look, or None if it can be taken."""
    need = max(0, rule.first - candidate)
    need_head = max(0, rule.head - head)
    if not need and not need_head:
        return None
    missing = [f"{count} of the {side}" for side, count in (("head", need_head), ("candidate", need)) if count]
    reason = f"the first look takes {rule.first} v {rule.head} seeds: {' and '.join(missing)} to come"
    return Race("more", reason, need=need, need_head=need_head)


def _decide(look: _Look, rule: RaceRule, complexity: tuple[Complexity, Complexity]) -> Race:
    of_head, of_candidate = complexity
    p, limit = _spell_p(look.p, rule.move)
    if not rule.moves(look.p):
        reason = f"p = {p} > {limit} at {rule.last} seeds"
        if of_candidate.is_simpler_than(of_head):
            reason += "; it is simpler, and not shown to be better or worse"
            return look.race("drop", reason, prefers_candidate=True)
        return look.race("drop", reason)
    if look.is_too_small and of_head.is_simpler_than(of_candidate):
        return look.race("drop", f"p = {p} ≤ {limit}, but {look.too_small}, and the head is simpler")
    return look.race("advance", f"p = {p} ≤ {limit} at {rule.last} seeds")


def _spell_p(p: float, limit: float) -> tuple[str, str]:
    """Write a p-value and its limit, with enough digits to see on which side of the limit the p-value lies."""
    order = np.sign(p - limit) * (abs(p - limit) > ROUNDING)
    for digits in range(2, 17):
        texts = f"{p:.{digits}g}", f"{limit:.{max(digits, 3)}g}"
        if np.sign(float(texts[0]) - float(texts[1])) == order:
            return texts
    return f"{p:g}", f"{limit:g}"


@dataclass(frozen=True)
class _Look:
    """One comparison of two sides, turned so that higher is better, with crashed candidate seeds filled in."""

    base: Floats
    new: Floats
    crashed: int
    replaced: int
    scale: ScoreScale
    p: float
    p_worse: float

    @classmethod
    def take(cls, base: Floats, gapped: Floats, replaced: int, scale: ScoreScale) -> _Look:
        """Compare two sides. NaN in `gapped` is a crashed seed."""
        if scale.floor is None:
            # Scoring a crash like the worst seed would claim a change that crashes its bad seeds three times as often
            # as one that finishes them. So a crash lies as far below the worst as the best lies above it.
            seen = np.concatenate([base, gapped[np.isfinite(gapped)]])
            floor = float(2 * seen.min() - seen.max())
        else:
            floor = scale.sign * scale.floor
        new = with_failures(base, gapped, floor=floor)
        above, below = permutation_tails(base, new)
        return cls(base, new, int(np.isnan(gapped).sum()), replaced, scale, float(above), float(below))

    @property
    def failures(self) -> str:
        """A note on the seeds of either side that have no score."""
        note = ""
        if self.crashed:
            note = f"; {self.crashed} crashed"
        if self.replaced:
            note += f"; {counted(self.replaced, 'crashed seed')} of the other side replaced"
        return note

    @property
    def gain(self) -> float:
        return float(self.new.mean() - self.base.mean())

    @property
    def effect(self) -> float:
        return self.scale.sign * self.gain

    @property
    def is_too_small(self) -> bool:
        return self.gain < self.scale.min_effect

    @property
    def too_small(self) -> str:
        return f"a change of {signed(self.effect)} is less than the {figure(self.scale.min_effect)} that counts"

    def seeds_hint(self, level: float) -> str:
        """Say how many seeds would show a gain as large as this one 4 times in 5, or nothing if there is no gain."""
        spread = 0.0
        if min(self.base.size, self.new.size) > 1:
            spread = pooled_deviation(self.base, self.new)
        if not (self.gain > 0 and spread > 0):
            return ""
        seeds = seeds_needed(self.gain / spread, alpha=level)
        return f"; if the gain is as large as it looks, a new study would need about {seeds} seeds per side to show it"

    def interval(self, level: float) -> Interval:
        """Return the interval of the effect, each end at this one-sided level."""
        found = permutation_interval(self.base, self.new, below=level, above=level)
        low, high = sorted((self.scale.sign * found.low, self.scale.sign * found.high))
        return Interval(low, high, found.level)

    def race(self, step: Step, reason: str, *, need: int = 0, prefers_candidate: bool = False) -> Race:
        return Race(
            step, reason + self.failures, self.p, self.effect, self.interval(self.scale.shown_level), need,
            n=(self.base.size, self.new.size), crashed=self.crashed, replaced=self.replaced,
            prefers_candidate=prefers_candidate,
        )  # fmt: skip


@dataclass(frozen=True)
class Confirmation:
    """What fresh seeds say about the head against the original baseline. Only `confirmed` moves an incumbent.

    `effect` is head − baseline in the metric's own unit. The interval's ends have the level of the claim, so it
    excludes zero exactly if p ≤ `level`. `crashed` counts the head's crashed seeds and `replaced` the baseline's.
    `error` is how often a claim on so few seeds passes a risky change.
    """

    answer: Answer
    reason: str
    p: float = math.nan
    level: float = math.nan
    effect: float = math.nan
    interval: Interval = _UNKNOWN
    n: tuple[int, int] = (0, 0)
    crashed: int = 0
    replaced: int = 0
    error: float | None = None
    tail: Tail | None = None
    guardrails: Mapping[str, GuardrailResult] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the confirmation as JSON-able data. None is an unknown number."""
        tail = self.tail and {**vars(self.tail), "is_flagged": self.tail.is_flagged}
        guardrails = {name: result.document() for name, result in self.guardrails.items()}
        return {**_document(self), "tail": tail, "guardrails": guardrails}


def confirm(
    baseline: Scores,
    head: Scores,
    *,
    scale: ScoreScale = SCALE,
    claim: Claim = CLAIM,
    guardrails: Mapping[str, GuardrailResult] | None = None,
) -> Confirmation:
    """Judge the head against the original baseline, both on fresh seeds: (n,), (m,) → Confirmation.

    The first `claim.seeds` of each side count, at least ten. `guardrails` are the results of `guardrails.Guard.test`.
    """
    guards = dict(guardrails or {})
    problem = _not_finite({"baseline": baseline, "head": head})
    if not problem and all(score is None for score in baseline):
        problem = "the baseline has no scores"
    if not problem and not head:
        problem = "the head has no scores"
    if problem:
        return Confirmation("invalid", problem, guardrails=guards)
    planned = max(claim.seeds, LEAST_SEEDS)
    base = _without_crashed(baseline, scale)[:planned]
    new = _with_gaps(head, scale)[:planned]
    look = _Look.take(base, new, sum(score is None for score in baseline), scale)
    answer, reason = _answer(look, claim.level, guards)
    fewest = min(base.size, new.size)
    error = None
    if fewest < planned:
        answer = "provisional"
        error = ERRORS.get(min(fewest, LEAST_SEEDS), 0.5)
        reason = f"{new.size} v {base.size} of {planned} seeds ({reason})"
        reason += f"; a claim on {fewest} seeds passes a risky change {error:.0%} of the time"
    tail = tail_check(look.base, look.new)
    reason += look.failures
    if tail.is_flagged:
        reason += f"; {tail.below} of its seeds are below the baseline's worst"
    return Confirmation(
        answer, reason, look.p, claim.level, look.effect, look.interval(claim.level),
        (base.size, new.size), look.crashed, look.replaced, error, tail, guards,
    )  # fmt: skip


def _answer(look: _Look, level: float, guards: Mapping[str, GuardrailResult]) -> tuple[Answer, str]:
    """Return the answer and its reason, as if there were enough seeds."""
    harmed = [f"{name} ({result.reason})" for name, result in guards.items() if result.answer == "harm"]
    unproven = [f"{name} ({result.reason})" for name, result in guards.items() if result.answer == "unproven"]
    if harmed:
        return "harmful", f"it harms {', '.join(harmed)}"
    if not look.replaced and look.p_worse <= level + ROUNDING:
        return "harmful", f"it is worse: p = {' ≤ '.join(_spell_p(look.p_worse, level))}"
    if look.p > level + ROUNDING:
        return "not shown", f"p = {' > '.join(_spell_p(look.p, level))}{look.seeds_hint(level)}"
    if look.is_too_small:
        return "not shown", look.too_small
    if unproven:
        return "not shown", f"p = {look.p:.2g}, but not shown to be safe for {', '.join(unproven)}"
    return "confirmed", f"p = {' ≤ '.join(_spell_p(look.p, level))}"


def _not_finite(sides: Mapping[str, Scores]) -> str:
    for side, scores in sides.items():
        bad = sum(score is not None and not math.isfinite(score) for score in scores)
        if bad:
            return f"{bad} of the {side}'s {len(scores)} scores are NaN or infinite"
    return ""


def _without_crashed(scores: Scores, scale: ScoreScale) -> Floats:
    """Return the scores without crashed seeds, turned so that higher is better."""
    return scale.sign * np.array([score for score in scores if score is not None], dtype=np.float64)


def _with_gaps(scores: Scores, scale: ScoreScale) -> Floats:
    """Return the scores with NaN for crashed seeds, turned so that higher is better."""
    return scale.sign * np.array(scores, dtype=np.float64)
