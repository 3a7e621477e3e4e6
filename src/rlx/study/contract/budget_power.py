"""Calculate what a budget pays for: seeds, candidates, one claim, and the smallest effect that the claim can find."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rlx.compare.power import detectable_effect
from rlx.compare.race_thresholds import RULE
from rlx.number_format import counted, figure
from rlx.study.contract.contract import ContractBudget, Metric

POWER = 0.8
# Trial lengths that the hint may suggest, as shares of the training steps.
SHARES = (0.5, 0.3, 0.2, 0.1)


@dataclass(frozen=True)
class SeedTime:
    """How long one seed trains at full length. `basis` explains an estimate; it is empty for a measured time."""

    seconds: float
    basis: str = ""

    @classmethod
    def of(
        cls, budget: ContractBudget, measured_seconds: float | None = None, rehearsed_seconds: float | None = None
    ) -> SeedTime:
        """Return the measured time, or an estimate from the rehearsal, or the longest time that a seed may take."""
        longest = budget.per_seed_minutes * 60
        if measured_seconds is not None:
            return cls(measured_seconds)
        if rehearsed_seconds is None:
            return cls(longest, "if every seed takes the longest time allowed (not measured yet)")
        if rehearsed_seconds > longest:
            return cls(longest, "if every seed takes the longest time allowed (the rehearsal was slower)")
        return cls(rehearsed_seconds, f"at the speed of the rehearsal, {rehearsed_seconds:.3g} s per seed")


@dataclass(frozen=True)
class BudgetPower:
    """What a budget pays for. `seeds` counts full-length seeds.

    `candidates` holds the fewest and the most candidates. The fewest is reached if all of them go to the last look
    and become the head, the most if all are dropped at the first look. `expected` lies between the two.
    A candidate counts only if the rest of the budget pays for its trial and a new head, as in `rlx next`.
    `effect` is the effect that the claim finds 4 times in 5, in standard deviations. `effect_in_unit` is the same in
    the metric's unit, if the spread of the baseline is known.
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
    seed_time: SeedTime
    hint: str

    def lines(self, metric: str) -> tuple[str, ...]:
        """Return lines for people."""
        limit = f"{counted(self.seeds, 'seed')}, limited by the {self.limit}"
        if self.seed_time.basis:
            limit += f", {self.seed_time.basis}"
        fewest, most = self.candidates
        candidates = counted(most, "candidate")
        if fewest != most:
            candidates = f"{fewest}–{candidates}"
        effect = f"{self.effect:.2f} sd"
        if self.effect_in_unit is not None:
            effect += f", {figure(self.effect_in_unit)} of {metric}"
        lines = [
            limit,
            f"baseline {self.baseline} + confirmation {self.confirmation} leaves {max(self.left, 0)} for the search",
            f"{candidates} raced at {RULE.first}–{RULE.last} seeds, about {self.expected}; one claim",
            f"the claim finds {effect} 4 times in 5",
        ]
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return tuple(lines)


def budget_power(
    budget: ContractBudget, metric: Metric, *, seed_time: SeedTime, baseline_sd: float | None = None
) -> BudgetPower:
    """Calculate what a budget pays for after the baseline's pool and one confirmation."""
    left = _trial_seeds_left(budget, metric, seed_time, budget.trial_steps)
    candidates, expected = _candidates(left, budget)
    limit = "seeds"
    seeds_by_hours = int(budget.hours * 3600 / seed_time.seconds)
    if seeds_by_hours < budget.seeds:
        limit = "hours"
    effect = claim_effect(metric)
    effect_in_unit = None
    if baseline_sd is not None:
        effect_in_unit = effect * baseline_sd
    hint = ""
    if not candidates[1]:
        hint = _hint(budget, metric, seed_time)
    return BudgetPower(
        seeds=min(budget.seeds, seeds_by_hours),
        limit=limit,
        baseline=_pool_size(metric),
        confirmation=2 * metric.seeds,
        left=left,
        candidates=candidates,
        expected=expected,
        effect=effect,
        effect_in_unit=effect_in_unit,
        seed_time=seed_time,
        hint=hint,
    )


def claim_effect(metric: Metric) -> float:
    """Return the effect that a claim finds 4 times in 5, in standard deviations."""
    return detectable_effect(metric.seeds, alpha=metric.alpha / metric.claims, power=POWER)


def _pool_size(metric: Metric) -> int:
    return max(metric.seeds, RULE.head)


def _trial_seeds_left(budget: ContractBudget, metric: Metric, seed_time: SeedTime, share: float) -> int:
    """Return the trial seeds that both limits leave. Pool and race have trial length, the claim has full length."""
    pool = _pool_size(metric)
    claim = 2 * metric.seeds
    trial_seconds = seed_time.seconds * share
    by_hours = (budget.hours * 3600 - claim * seed_time.seconds - pool * trial_seconds) / trial_seconds
    return min(budget.seeds - pool - claim, math.floor(by_hours + 1e-9))


def _candidates(left: int, budget: ContractBudget) -> tuple[tuple[int, int], int]:
    """Return the fewest and the most candidates for the trial seeds left, and the number to expect."""
    left = max(left, 0)
    fewest = min(_started(left, RULE.last + RULE.head), budget.candidates)
    most = min(_started(left, RULE.first), budget.candidates)
    # The expected cost of a candidate that is as good as the head.
    typical = RULE.first + RULE.go_on * (RULE.last - RULE.first) + RULE.move * RULE.head
    return (fewest, most), min(max(fewest, int(left / typical)), most)


def _started(left: int, seeds_per_candidate: int) -> int:
    """Return how many candidates start: each start needs enough seeds left for its trial and a new head."""
    return max(0, (left - RULE.first - RULE.head) // seeds_per_candidate + 1)


def _hint(budget: ContractBudget, metric: Metric, seed_time: SeedTime) -> str:
    """Return what makes room for a candidate: shorter trials if time is short, otherwise more seeds."""
    for share in SHARES:
        (_, most), expected = _candidates(_trial_seeds_left(budget, metric, seed_time, share), budget)
        if share < budget.trial_steps and most:
            candidates = counted(max(expected, 1), "candidate")
            return f"shorten the trials: budget.trial_steps: {share:g} pays for about {candidates}"
    seeds = _pool_size(metric) + 2 * metric.seeds + RULE.first + RULE.head
    hours = seeds * seed_time.seconds / 3600
    return f"a study with one candidate needs {seeds} seeds, {hours:.1f} h at {seed_time.seconds:.3g} s per seed"
