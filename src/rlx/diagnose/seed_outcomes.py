"""Which seeds of a run succeed, and which are stuck: one definition for `analyze`, `suggest` and `seeds_disagree`.

A seed is measured by the task's success rate if there is one and some seed reaches a fifth, otherwise by its final
return. As in `rlx noise`, a seed fails if it gains less than half of what the best seed gains. It is stuck if it gains
less than a quarter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlx.compare.seed_noise import FAILING, failing_limit
from rlx.diagnose.reward_terms.proxy_divergence import RATES, finite_mean
from rlx.diagnose.run_case import RunCase, SeedCase
from rlx.runs.metrics import Series

STUCK = 0.25
WORTH_SUCCESS = 0.2
LATE = 0.2  # of the logged success rates or returns


@dataclass(frozen=True)
class SeedOutcomes:
    """The final score of every seed that has one, by seed. `floor` is the score without training."""

    metric: str
    scores: dict[int, float]
    floor: float

    def below(self, share: float) -> tuple[int, ...]:
        """Return the seeds that gain less than this share of the best seed's gain, the worst first."""
        if not self.scores:
            return ()
        limit = failing_limit(list(self.scores.values()), self.floor, share=share)
        if limit is None:
            return ()
        ordered = sorted(self.scores, key=lambda seed: self.scores[seed])
        return tuple(seed for seed in ordered if self.scores[seed] < limit)

    @property
    def failing(self) -> tuple[int, ...]:
        """The seeds that gain less than half of what the best seed gains."""
        return self.below(FAILING)

    @property
    def stuck(self) -> tuple[int, ...]:
        """The seeds that gain less than a quarter of what the best seed gains."""
        return self.below(STUCK)


def seed_outcomes(case: RunCase) -> SeedOutcomes:
    """Return how the seeds of a run ended. Without any seed that learned, there is nothing to compare with."""
    rates = success_rates(case)
    if len(rates) > 1 and max(rates.values()) >= WORTH_SUCCESS:
        return SeedOutcomes(case.reward_history.metric, rates, 0.0)
    returns = {}
    for seed in case.seeds:
        end = final_return(seed, case)
        if np.isfinite(end):
            returns[seed.seed] = end
    if not any(map(case.is_above_floor, case.seeds)):
        return SeedOutcomes("return", {}, 0.0)
    floors = [floor for floor in (case.curve_floor(seed) for seed in case.seeds) if floor is not None]
    if not floors:
        floors = [case.shapes[seed].start for seed in returns if np.isfinite(case.shapes[seed].start)]
    floor = float(np.median(floors)) if floors else min(returns.values(), default=0.0)
    return SeedOutcomes("return", returns, floor)


def final_return(seed: SeedCase, case: RunCase) -> float:
    """Return the seed's final evaluation, or the mean at the end of its curve, whatever shape the curve seems to have.

    A curve that is called flat because noise hides its trend still ends where it ends.
    """
    if seed.report and case.has_same_reward:
        return seed.report.mean
    if case.shapes[seed.seed].answer == "unknown":
        return float("nan")
    return late_mean(seed.curve)


def success_rates(case: RunCase) -> dict[int, float]:
    """Return the success or pass rate of every seed in the last fifth of its training, if there is one."""
    if case.reward_history.metric not in RATES:
        return {}
    rates = {}
    for seed in case.reward_history.seeds:
        if seed.task is None or not len(seed.task):
            continue
        rate = late_mean(seed.task)
        if np.isfinite(rate):
            rates[seed.seed] = rate
    return rates


def late_mean(series: Series) -> float:
    """Return the mean of the last fifth of a series, or NaN if nothing there is finite."""
    late = series.values[-max(1, round(LATE * len(series))) :]
    return finite_mean(late)
