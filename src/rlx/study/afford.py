"""What a budget affords: seeds, candidates, one claim, and the smallest effect that it can find; pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rlx.compare.planning import detectable_effect
from rlx.compare.race import RULE, Rule
from rlx.figures import counted, figure
from rlx.study.terms import Budget, Metric

POWER = 0.8
SHARES = (0.5, 0.3, 0.2, 0.1)
"""Shares of the training steps that a shorter trial is tried with, for the hint."""


@dataclass(frozen=True)
class Cost:
    """What one seed takes at full length, and what that rests on where it was not measured."""

    seconds: float
    basis: str = ""

    @property
    def is_measured(self) -> bool:
        return not self.basis

    @classmethod
    def of(cls, budget: Budget, measured_seconds: float | None = None, rehearsed_seconds: float | None = None) -> Cost:
        """Return the cost that was measured, else what the rehearsal lets expect, at most what ends a seed."""
        most = budget.per_seed_minutes * 60
        if measured_seconds is not None:
            return cls(measured_seconds)
        if rehearsed_seconds is None:
            return cls(most, "at the longest that one may take (what it takes was not measured yet)")
        if rehearsed_seconds > most:
            return cls(most, "at the longest that one may take, which the rehearsal's pace would pass")
        return cls(rehearsed_seconds, f"at the rehearsal's pace, {rehearsed_seconds:.3g} s each")


@dataclass(frozen=True)
class Affords:
    """What a budget pays for. `seeds` are all at full length; `candidates` from the fewest to the most.

    The fewest all reach the last look and move the head, the most are all dropped at the first; `expected` is between.
    Each is begun only where what is left pays for its trial and for a new head, as `rlx next` has it.
    `effect` is what the claim finds 4 times in 5, in standard deviations, and `effect_in_unit` where the spread of the
    baseline is known.
    """

    seeds: int
    limit: str
    baseline: int
    confirmation: int
    left: int
    candidates: tuple[int, int]
    expected: int
    effect: float
    effect_in_unit: float | None
    cost: Cost
    hint: str

    def lines(self, metric: str) -> tuple[str, ...]:
        """Say it to people."""
        cost = f", {self.cost.basis}" if self.cost.basis else ""
        few, most = self.candidates
        several = f"{few}–{most} candidates" if few != most else counted(few, "candidate")
        unit = f", {figure(self.effect_in_unit)} of {metric}" if self.effect_in_unit is not None else ""
        return (
            f"{counted(self.seeds, 'seed')}: the {self.limit} are the limit{cost}",
            f"baseline {self.baseline} + confirmation {self.confirmation} leaves {max(self.left, 0)} for the search",
            f"{several} raced at {RULE.first}–{RULE.last} seeds, about {self.expected}; one claim",
            f"the claim finds {self.effect:.2f} sd{unit} 4 times in 5",
            *([f"hint: {self.hint}"] if self.hint else []),
        )

    def document(self) -> dict[str, Any]:
        """Return this as JSON-able data."""
        return {
            "seeds": self.seeds, "limit": self.limit, "baseline": self.baseline, "confirmation": self.confirmation,
            "left": self.left, "candidates": list(self.candidates), "expected": self.expected,
            "effect_sd": self.effect, "effect": self.effect_in_unit, "is_measured": self.cost.is_measured,
            "hint": self.hint,
        }  # fmt: skip


def affords(
    budget: Budget, metric: Metric, *, cost: Cost, baseline_sd: float | None = None, rule: Rule = RULE
) -> Affords:
    """Work out what a budget pays for: the baseline's pool, the race, and one confirmation that is kept aside."""
    left = _left(budget, metric, cost, budget.trial_steps, rule)
    by_hours = int(budget.hours * 3600 / cost.seconds)
    effect = claim_effect(metric)
    candidates, expected = _candidates(left, budget, rule)
    return Affords(
        seeds=min(budget.seeds, by_hours),
        limit="hours" if by_hours < budget.seeds else "seeds",
        baseline=_pool(metric, rule),
        confirmation=2 * metric.seeds,
        left=left,
        candidates=candidates,
        expected=expected,
        effect=effect,
        effect_in_unit=effect * baseline_sd if baseline_sd is not None else None,
        cost=cost,
        hint="" if candidates[1] else _hint(budget, metric, cost, rule),
    )


def claim_effect(metric: Metric) -> float:
    """Return what a claim finds 4 times in 5, in standard deviations."""
    return detectable_effect(metric.seeds, alpha=metric.alpha / metric.claims, power=POWER)


def _pool(metric: Metric, rule: Rule) -> int:
    return max(metric.seeds, rule.head)


def _left(budget: Budget, metric: Metric, cost: Cost, share: float, rule: Rule) -> int:
    """Return the trial seeds left of both limits; pool and race are of trial length, the claim of full length."""
    pool, claim = _pool(metric, rule), 2 * metric.seeds
    by_seeds = budget.seeds - pool - claim
    trial = cost.seconds * share
    by_hours = (budget.hours * 3600 - claim * cost.seconds - pool * trial) / trial
    return min(by_seeds, math.floor(by_hours + 1e-9))


def _candidates(left: int, budget: Budget, rule: Rule) -> tuple[tuple[int, int], int]:
    room = max(left, 0)
    typical = rule.first + rule.go_on * (rule.last - rule.first) + rule.move * rule.head  # as if all were equal
    begun = (_begun(room, rule.last + rule.head, rule), _begun(room, rule.first, rule))
    few, most = (min(count, budget.candidates) for count in begun)
    return (few, most), min(max(few, int(room / typical)), most)


def _begun(room: int, each: int, rule: Rule) -> int:
    """Return how many candidates are begun where each takes so many seeds: a trial and a new head must be left."""
    least = rule.first + rule.head
    return (room - least) // each + 1 if room >= least else 0


def _hint(budget: Budget, metric: Metric, cost: Cost, rule: Rule) -> str:
    """Return what would make room for a candidate: shorter trials where time is short, else the seeds it takes."""
    for share in SHARES:
        (_, most), expected = _candidates(_left(budget, metric, cost, share, rule), budget, rule)
        if share < budget.trial_steps and most:
            about = counted(max(expected, 1), "candidate")
            return f"shorten the trials: budget.trial_steps: {share:g} affords about {about}"
    need = _pool(metric, rule) + 2 * metric.seeds + rule.first + rule.head
    hours = need * cost.seconds / 3600
    return f"one candidate takes {need} seeds in all, {hours:.1f} h at this cost"
