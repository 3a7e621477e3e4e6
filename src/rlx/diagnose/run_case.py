"""What a diagnosis looks at, as plain values: a run's config, series, scores and how each seed ended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from rlx.diagnose.curve_shape import FEW_POINTS, FEWEST_POINTS, CurveShape, Floats, classify_curve
from rlx.diagnose.reward_terms.load_terms import RewardHistory, load_terms
from rlx.runs.metrics import Series

EPISODES = "rollout/episodes"
FEW_EPISODES = 10
RETURN = "rollout/return_mean"
SUCCESS = "rollout/success_rate"
EVALUATIONS = "evaluations"
REPORT = "final evaluation"
TERMS = "reward/term/*"
NOTHING = Series(np.empty(0), np.empty(0))
BEGUN = 0.3  # of the planned steps: earlier, learning may still come
ABOVE_FLOOR = 0.1  # of the range from floor to best
HALF = 0.5
BY_CHANCE = 3.0  # standard errors above the random policy that chance may give
COMPLETED = "completed"
FAILED = "failed"
RUNNING = "running"
NOT_FINITE = ("is nan", "is inf", "is -inf", "not finite", "non-finite")


@dataclass(frozen=True)
class EvaluationScore:
    """One stored evaluation: its mean return over episodes, its `eval.metric` score, and how it was measured."""

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
class PeriodicEvaluation:
    """An evaluation during training: its mean, success and pass rates, environment, and episodes.

    Each episode has its length, its return and its reward terms.
    """

    step: int
    figures: Mapping[str, float]
    env: Mapping[str, Any]
    episodes: tuple[tuple[float, float, Mapping[str, float]], ...]


@dataclass(frozen=True)
class OtherRunScore:
    """The best score of another run of the project, under the same evaluation and in no more steps."""

    run: str
    mean: float
    steps: int


@dataclass(frozen=True)
class SeedCase:
    """One training seed. `claimed` is the score at which `best` was chosen, `best` its score afterwards.

    `evaluations` are the periodic means over steps, `evaluated` the periodic evaluations in full. `missing` says what
    could not be read.
    """

    seed: int
    state: str = COMPLETED
    reason: str = ""
    step: int = 0
    series: Mapping[str, Series] = field(default_factory=dict)
    evaluations: Series = NOTHING
    evaluated: tuple[PeriodicEvaluation, ...] = ()
    untrained: EvaluationScore | None = None
    report: EvaluationScore | None = None
    best: EvaluationScore | None = None
    claimed: EvaluationScore | None = None
    missing: tuple[str, ...] = ()

    def values(self, metric: str) -> Floats:
        """Return a metric's values, empty if it was not logged."""
        return self.series.get(metric, NOTHING).values

    def until(self, step: float) -> SeedCase:
        """Return the seed at an earlier step of its training."""
        series = {name: _until(values, step) for name, values in self.series.items()}
        return SeedCase(
            self.seed,
            RUNNING,
            step=int(step),
            series={name: values for name, values in series.items() if len(values)},
            evaluations=_until(self.evaluations, step),
            evaluated=tuple(evaluation for evaluation in self.evaluated if evaluation.step <= step),
        )

    @property
    def has_diverged(self) -> bool:
        """Whether it failed because a number was not finite. The reason may come from any training program."""
        return self.state == FAILED and any(words in self.reason.lower() for words in NOT_FINITE)

    @property
    def logged_curve(self) -> Series:
        """The returns over training: those of its episodes if they were logged, otherwise the periodic evaluations."""
        rollouts = self.series.get(RETURN, NOTHING)
        if len(rollouts) < FEWEST_POINTS:
            return self.evaluations
        return rollouts

    @property
    def curve(self) -> Series:
        """The logged curve without the first rows, which are means over very few episodes."""
        return self.without_few_episodes(self.logged_curve)

    def without_few_episodes(self, logged: Series) -> Series:
        """Leave out the rows of few episodes in a series of means over the last episodes.

        In the first quarter, rows of fewer than ten episodes are left out: one lucky episode is not a peak.
        """
        episodes = self.series.get(EPISODES, NOTHING)
        if len(episodes) != len(logged):
            return logged
        is_kept = episodes.values >= FEW_EPISODES
        is_kept[len(logged) // 4 :] = True
        return Series(logged.steps[is_kept], logged.values[is_kept])


def _until(series: Series, step: float) -> Series:
    is_before = series.steps <= step
    return Series(series.steps[is_before], series.values[is_before])


@dataclass(frozen=True)
class RunCase:
    """One run. `random` is the random policy's score, `reachable` a return that was reached on this environment.

    `reachable_steps` is how many steps that took. `has_same_reward` says that evaluations pay the same reward as
    training; otherwise the two cannot be compared. Without `are_returns_judged`, only signs that count alone count.
    `missing` says what could not be read.
    """

    name: str
    algorithm: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    planned_steps: int = 0
    seeds: tuple[SeedCase, ...] = ()
    random: EvaluationScore | None = None
    reachable: float | None = None
    reachable_steps: int = 0
    best_other_run: OtherRunScore | None = None
    has_same_reward: bool = True
    is_script: bool = False
    is_imported: bool = False
    are_returns_judged: bool = True
    missing: tuple[str, ...] = ()

    def setting(self, key: str) -> Any:
        """Return a config value by its dotted key, or None if it is not set."""
        value: Any = self.config
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    def seed(self, number: int) -> SeedCase:
        """Return the seed with this number."""
        return next(seed for seed in self.seeds if seed.seed == number)

    def has(self, metric: str) -> bool:
        """Say whether any seed logged a metric or has this kind of evidence."""
        if metric == EVALUATIONS:
            return any(len(seed.evaluations) for seed in self.seeds)
        if metric == REPORT:
            return any(self.above_random(seed) is not None for seed in self.seeds)
        if metric == TERMS:
            return self.reward_history.has_terms
        return any(len(seed.values(metric)) for seed in self.seeds)

    def floor(self, seed: SeedCase) -> float | None:
        """Return the evaluation score without training: the random policy's, or else the seed's untrained policy's."""
        score = self.random or seed.untrained
        return score.mean if score and np.isfinite(score.mean) else None

    def curve_floor(self, seed: SeedCase) -> float | None:
        """Return the score without training in the unit of the seed's curve, or None if the units differ."""
        has_same_unit = self.has_same_reward or seed.curve is seed.evaluations
        if not has_same_unit:
            return None
        return self.floor(seed)

    @cached_property
    def shapes(self) -> Mapping[int, CurveShape]:
        """The shape of every seed's curve."""
        return {seed.seed: self._shape(seed) for seed in self.seeds}

    def _shape(self, seed: SeedCase) -> CurveShape:
        floor = self.curve_floor(seed)
        best = self.reachable
        if floor is None or best is None or best <= floor:
            best = None
        return classify_curve(seed.curve.steps, seed.curve.values, floor=floor, best=best)

    def evaluations_rise(self, seed: SeedCase) -> bool:
        """Say whether the periodic evaluations end clearly above their lowest level, and did not fall."""
        return classify_curve(seed.evaluations.steps, seed.evaluations.values).is_learning

    def has_learned(self, seed: SeedCase) -> bool:
        """Say whether its evaluations rise above the score without training. Too few of them leave it to the returns.

        The evaluations measure what the final evaluation measures. Evaluations that rise from a bad start to the score
        of the random policy are not learning.
        """
        if len(seed.evaluations) < FEWEST_POINTS:
            return self.returns_rise(seed)
        shape = classify_curve(seed.evaluations.steps, seed.evaluations.values)
        floor = self.floor(seed)
        return shape.is_learning and (floor is None or shape.end - floor > shape.visible)

    def returns_rise(self, seed: SeedCase) -> bool:
        """Say whether its training returns rise above the floor, if they pay the same reward as evaluations."""
        is_same_unit = self.has_same_reward and self.setting("eval.env") is None
        return is_same_unit and self.shapes[seed.seed].is_learning and self._ends_above_floor(seed)

    @cached_property
    def reward_history(self) -> RewardHistory:
        """The reward terms and the task metric of every seed."""
        return load_terms(self.config, self.seeds)

    def until(self, step: float) -> RunCase:
        """Return the run at an earlier step, without the scores that were measured at its end."""
        return replace(self, random=None, best_other_run=None, seeds=tuple(seed.until(step) for seed in self.seeds))

    def progress(self, seed: SeedCase) -> float:
        """Return the share of the planned steps that was trained: 1 if no plan is known, or if it is complete."""
        if not self.planned_steps or seed.state == COMPLETED:
            return 1.0
        return min(1.0, seed.step / self.planned_steps)

    def has_begun(self, seed: SeedCase) -> bool:
        """Say whether a seed has trained long enough to judge its returns."""
        return self.progress(seed) >= BEGUN

    def is_above_floor(self, seed: SeedCase) -> bool:
        """Say whether the curve ends clearly above the score without training."""
        shape = self.shapes[seed.seed]
        floor = self.curve_floor(seed)
        above = self.above_random(seed)
        beats_chance = above is not None and above > BY_CHANCE
        if floor is None or shape.answer == "unknown":
            return shape.is_learning or beats_chance
        if shape.points <= FEW_POINTS and beats_chance:
            return True  # so few points show their noise badly, and the evaluation does not need them
        return self._ends_above_floor(seed)

    def _ends_above_floor(self, seed: SeedCase) -> bool:
        shape = self.shapes[seed.seed]
        floor = self.curve_floor(seed)
        if floor is None:
            return True
        top = self.reachable
        if top is None:
            top = shape.peak
        return shape.end - floor > max(shape.visible, ABOVE_FLOOR * (top - floor))

    def above_random(self, seed: SeedCase) -> float | None:
        """Return how many standard errors the final evaluation lies above the random policy's, if both are known."""
        if seed.report is None or self.random is None:
            return None
        gain = seed.report.mean - self.random.mean
        error = math.hypot(seed.report.error, self.random.error)
        if not math.isfinite(gain) or not math.isfinite(error):
            return None
        if error:
            return gain / error
        return math.copysign(math.inf, gain) if gain else 0.0

    def share_of_best_other_run(self, seed: SeedCase) -> float | None:
        """Return the share of another run's gain over the random policy, if it is clearly less than half."""
        other = self.best_other_run
        if other is None or seed.report is None or self.random is None or seed.step < other.steps:
            return None
        gain = seed.report.mean - self.random.mean
        other_gain = other.mean - self.random.mean
        error = BY_CHANCE * math.hypot(seed.report.error, self.random.error)
        if other_gain <= 2 * error or HALF * other_gain - gain <= error:
            return None
        return gain / other_gain

    def is_short(self, seed: SeedCase) -> bool:
        """Say whether a seed ends less than half the way to the reachable return, with at least as many steps."""
        shape = self.shapes[seed.seed]
        floor = self.curve_floor(seed)
        if self.reachable is None or floor is None or shape.answer == "unknown" or seed.step < self.reachable_steps:
            return False
        return shape.end - floor < (self.reachable - floor) / 2

    def is_harmed(self, seed: SeedCase) -> bool:
        """Say whether a seed's returns show that something is wrong."""
        if seed.state == FAILED:
            return True
        if not self.are_returns_judged or not self.has_begun(seed):
            return False
        shape = self.shapes[seed.seed]
        if shape.answer in ("declining", "collapsed", "unstable") or shape.is_plateau:
            return True
        if shape.answer == "flat" and not self.is_above_floor(seed):
            return True
        above = self.above_random(seed)
        is_random = above is not None and above <= BY_CHANCE and not self.has_learned(seed)
        return is_random or self.is_short(seed) or self.share_of_best_other_run(seed) is not None
