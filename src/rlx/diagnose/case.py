"""What a diagnosis looks at, as plain values: a run's config, series, scores and how each seed ended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from rlx.diagnose.curve import FEWEST_POINTS, Floats, Shape, shape
from rlx.runs.metrics import Series

RETURN = "rollout/return_mean"
EVALUATIONS = "evaluations"
REPORT = "final evaluation"
NOTHING = Series(np.empty(0), np.empty(0))
BEGUN = 0.3  # of the planned steps: what is not learned before that may come
ABOVE_FLOOR = 0.1  # of the range from floor to best
HALF = 0.5
BY_CHANCE = 3.0  # standard errors above the random policy: what luck may give
COMPLETED, FAILED, RUNNING = "completed", "failed", "running"
NOT_FINITE = ("is nan", "is inf", "is -inf", "not finite", "non-finite")


@dataclass(frozen=True)
class Score:
    """One stored evaluation: its mean return over episodes, what `eval.metric` made of it, and how it was measured."""

    mean: float
    sd: float
    episodes: int
    score: float
    step: int = 0
    is_greedy: bool = True

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        return self.sd / math.sqrt(max(self.episodes, 1))


@dataclass(frozen=True)
class Precedent:
    """The best that another run of the project scored, under the same evaluation and in no more steps."""

    run: str
    mean: float
    steps: int


@dataclass(frozen=True)
class SeedCase:
    """One training seed. `claimed` is what `best` scored when it was chosen, `best` what it scored afterwards.

    `evaluations` are the periodic ones, over steps; `missing` says what could not be read.
    """

    seed: int
    state: str = COMPLETED
    reason: str = ""
    step: int = 0
    series: Mapping[str, Series] = field(default_factory=dict)
    evaluations: Series = NOTHING
    untrained: Score | None = None
    report: Score | None = None
    best: Score | None = None
    claimed: Score | None = None
    missing: tuple[str, ...] = ()

    def values(self, metric: str) -> Floats:
        """Return a metric's values, empty where it was not logged."""
        return self.series.get(metric, NOTHING).values

    def until(self, step: float) -> SeedCase:
        """Return the seed as it was when it had trained so far."""
        series = {name: cut for name, one in self.series.items() if len(cut := _until(one, step))}
        return SeedCase(self.seed, RUNNING, step=int(step), series=series, evaluations=_until(self.evaluations, step))

    @property
    def has_diverged(self) -> bool:
        """Whether it ended because a number was not finite."""
        return self.state == FAILED and any(word in self.reason.lower() for word in NOT_FINITE)

    @property
    def curve(self) -> Series:
        """The returns over training: of its episodes where they were logged, else of the periodic evaluations."""
        rollouts = self.series.get(RETURN, NOTHING)
        return rollouts if len(rollouts) >= FEWEST_POINTS else self.evaluations


def _until(series: Series, step: float) -> Series:
    is_there = series.steps <= step
    return Series(series.steps[is_there], series.values[is_there])


@dataclass(frozen=True)
class Case:
    """One run. `random` is the random policy's score, `reachable` a return that was seen on this very environment.

    `reachable_steps` is what that took. `is_paid_alike` says that evaluations pay as training does: else the two cannot
    be compared. Where `are_returns_judged` is not set, signs count only where they count alone. `missing` says what
    could not be read of the run.
    """

    name: str
    algorithm: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    planned_steps: int = 0
    seeds: tuple[SeedCase, ...] = ()
    random: Score | None = None
    reachable: float | None = None
    reachable_steps: int = 0
    precedent: Precedent | None = None
    is_paid_alike: bool = True
    is_script: bool = False
    are_returns_judged: bool = True
    missing: tuple[str, ...] = ()

    def setting(self, key: str) -> Any:
        """Return a config value by its dotted key, None where it is not set."""
        value: Any = self.config
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    def has(self, metric: str) -> bool:
        """Say whether any seed logged a metric (`reward/term/*`: any of them), or was evaluated, ever or at its end."""
        if metric == EVALUATIONS:
            return any(len(seed.evaluations) for seed in self.seeds)
        if metric == REPORT:
            return any(self.above_random(seed) is not None for seed in self.seeds)
        if metric.endswith("*"):
            return any(name.startswith(metric[:-1]) for seed in self.seeds for name in seed.series)
        return any(len(seed.values(metric)) for seed in self.seeds)

    def floor(self, seed: SeedCase) -> float | None:
        """Return what no training scores in evaluations: the random policy, else the seed's untrained one."""
        told = self.random or seed.untrained
        return told.mean if told and np.isfinite(told.mean) else None

    def curve_floor(self, seed: SeedCase) -> float | None:
        """Return what no training scores in the unit of the seed's curve; None where that is another one."""
        is_told_alike = self.is_paid_alike or seed.curve is seed.evaluations
        return self.floor(seed) if is_told_alike else None

    @cached_property
    def shapes(self) -> Mapping[int, Shape]:
        """The shape of every seed's curve."""
        return {one.seed: self._shape(one) for one in self.seeds}

    def _shape(self, seed: SeedCase) -> Shape:
        floor = self.curve_floor(seed)
        best = self.reachable if floor is not None and self.reachable is not None and self.reachable > floor else None
        return shape(seed.curve.steps, seed.curve.values, floor=floor, best=best)

    def until(self, step: float) -> Case:
        """Return the run as it was when its seeds had trained so far: without what was measured at their end."""
        return replace(self, random=None, precedent=None, seeds=tuple(seed.until(step) for seed in self.seeds))

    def done(self, seed: SeedCase) -> float:
        """Return the share of the planned steps that was trained; 1 where no plan is known, or it is complete."""
        if not self.planned_steps or seed.state == COMPLETED:
            return 1.0
        return min(1.0, seed.step / self.planned_steps)

    def is_begun(self, seed: SeedCase) -> bool:
        """Say whether a seed is far enough for its returns to be held against it."""
        return self.done(seed) >= BEGUN

    def is_above_floor(self, seed: SeedCase) -> bool:
        """Say whether the curve ends surely above what no training scores."""
        found, floor = self.shapes[seed.seed], self.curve_floor(seed)
        if floor is None or found.answer == "unknown":
            above = self.above_random(seed)
            return found.is_learning or (above is not None and above > BY_CHANCE)
        span = (self.reachable if self.reachable is not None else found.peak) - floor
        return found.end - floor > max(found.visible, ABOVE_FLOOR * span)

    def above_random(self, seed: SeedCase) -> float | None:
        """Return how many standard errors the final evaluation lies above the random policy's; None without both."""
        if seed.report is None or self.random is None:
            return None
        gain, error = seed.report.mean - self.random.mean, math.hypot(seed.report.error, self.random.error)
        if not math.isfinite(gain) or not math.isfinite(error):
            return None
        return gain / error if error else math.copysign(math.inf, gain) if gain else 0.0

    def is_better_than_random(self, seed: SeedCase) -> bool:
        """Say whether the final evaluation is above the random policy's, as far as is known."""
        above = self.above_random(seed)
        return above is None or above > BY_CHANCE

    def share_of_precedent(self, seed: SeedCase) -> float | None:
        """Return the share of another run's gain over the random policy, where it is surely less than half."""
        if self.precedent is None or seed.report is None or self.random is None or seed.step < self.precedent.steps:
            return None
        gain, known = seed.report.mean - self.random.mean, self.precedent.mean - self.random.mean
        error = math.hypot(seed.report.error, self.random.error)
        is_known = known > 2 * BY_CHANCE * error
        return gain / known if is_known and HALF * known - gain > BY_CHANCE * error else None

    def is_short(self, seed: SeedCase) -> bool:
        """Say whether a seed ends less than half the way to what was seen here, with as many steps."""
        found, floor = self.shapes[seed.seed], self.curve_floor(seed)
        if self.reachable is None or floor is None or found.answer == "unknown" or seed.step < self.reachable_steps:
            return False
        return found.end - floor < (self.reachable - floor) / 2

    def is_harmed(self, seed: SeedCase) -> bool:
        """Say whether a seed's returns show that something is wrong, whatever it is."""
        if seed.state == FAILED:
            return True
        if not self.are_returns_judged or not self.is_begun(seed):
            return False
        answer = self.shapes[seed.seed].answer
        if answer in ("declining", "collapsed", "unstable", "plateau"):
            return True
        is_stuck = answer == "flat" and not self.is_above_floor(seed)
        is_outdone = self.share_of_precedent(seed) is not None
        return is_stuck or is_outdone or self.is_short(seed) or not self.is_better_than_random(seed)
