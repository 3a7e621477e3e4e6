"""The reward terms and the task metric of a run, from its training metrics and its periodic evaluations. Pure.

Terms are those that training logged (`reward/term/NAME`), or else those of the evaluation episodes. The task metric is
one that the reward does not define. rlx takes the first of these: the declared `eval.metric`, the success rate of
training episodes, the rates of evaluations, the return of an evaluation environment that differs from the training's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rlx.diagnose.reward_terms.proxy_divergence import FEWEST_POINTS, POINTS, RATES, finite_mean
from rlx.diagnose.reward_terms.term_stats import SeedTerms, is_flat
from rlx.number_format import plain
from rlx.runs.metrics import Series

if TYPE_CHECKING:
    from rlx.diagnose.run_case import PeriodicEvaluation, SeedCase

TERM = "reward/term/"
SIZE = "reward/term_abs/"


@dataclass(frozen=True)
class RewardHistory:
    """The reward of every seed over training. `metric` is the task metric, empty if there is none."""

    seeds: tuple[SeedTerms, ...]
    metric: str
    source: Literal["training", "evaluations"]

    @property
    def has_terms(self) -> bool:
        return any(seed.has_terms for seed in self.seeds)

    @property
    def names(self) -> list[str]:
        """The names of all terms."""
        return list(dict.fromkeys(name for seed in self.seeds for name in seed.per_step))

    def mean_curve(self, series_of: Callable[[SeedTerms], Series | None]) -> tuple[float | None, ...]:
        """Average a series, in tenths of the run, over the seeds that have it; None where it is not known."""
        curves = [seed.points(series) for seed in self.seeds if (series := series_of(seed)) is not None]
        columns = np.array(curves).reshape(-1, POINTS)
        return tuple(plain(finite_mean(columns[:, index])) for index in range(POINTS))


def load_terms(config: Mapping[str, Any], seeds: Sequence[SeedCase]) -> RewardHistory:
    """Return the terms of every seed that has some. If no seed has any, every seed has only its return."""
    source: Literal["training", "evaluations"] = "training"
    histories = [_trained_terms(seed) for seed in seeds]
    if not any(history.has_terms for history in histories):
        evaluated = [_evaluated_terms(seed) for seed in seeds]
        if any(history.has_terms for history in evaluated):
            source = "evaluations"
            histories = evaluated
    with_terms = [history for history in histories if history.has_terms]
    metric, tasks = _task_metric(config, seeds)
    chosen = tuple(replace(history, task=tasks.get(history.seed)) for history in with_terms or histories)
    return RewardHistory(chosen, metric, source)


def _trained_terms(seed: SeedCase) -> SeedTerms:
    nothing = _series({})
    per_step = {name.removeprefix(TERM): series for name, series in seed.series.items() if name.startswith(TERM)}
    lengths = nothing
    if per_step:
        episodes = seed.series.get("rollout/episodes", nothing)
        lengths = _lengths(seed.series.get("rollout/length_mean", nothing), episodes)
    return SeedTerms(
        seed.seed,
        per_step,
        {name.removeprefix(SIZE): series for name, series in seed.series.items() if name.startswith(SIZE)},
        {name: _per_episode(series, lengths) for name, series in per_step.items()},
        _logged_means(seed, "rollout/return_mean"),
    )


def _logged_means(seed: SeedCase, metric: str) -> Series:
    """Return a mean over the last episodes, without the first rows of few episodes."""
    return seed.without_few_episodes(seed.series.get(metric, _series({})))


def _lengths(recent: Series, episodes: Series) -> Series:
    """Return how long episodes were, in twentieths of the run: steps / episodes that ended.

    `recent` is the mean of the last hundred episodes, which lags. It is used only if nothing else is known: before the
    first episode ends, without a count of episodes, and if the length never changes.
    """
    if len(episodes) < 2 or not len(recent) or is_flat(recent.values):
        return recent
    edges = np.linspace(0.0, float(episodes.steps[-1]), 2 * POINTS + 1)
    ended = np.diff(np.interp(edges, np.append(0.0, episodes.steps), np.append(0.0, episodes.values)))
    middles = (edges[1:] + edges[:-1]) / 2
    lengths = np.interp(middles, recent.steps, recent.values)
    is_counted = (ended >= 1.0) & (np.arange(len(ended)) > 0)
    lengths[is_counted] = np.diff(edges)[is_counted] / ended[is_counted]
    return Series(middles, lengths)


def _per_episode(per_step: Series, lengths: Series) -> Series:
    """Multiply a term's mean by the length of episodes, if that is known."""
    if not len(lengths):
        return per_step
    return Series(per_step.steps, per_step.values * np.interp(per_step.steps, lengths.steps, lengths.values))


def _evaluated_terms(seed: SeedCase) -> SeedTerms:
    """Return the terms of a seed's evaluation episodes."""
    per_step: dict[str, dict[int, float]] = {}
    size: dict[str, dict[int, float]] = {}
    per_episode: dict[str, dict[int, float]] = {}
    returns: dict[int, float] = {}
    names = dict.fromkeys(
        name for evaluation in seed.evaluated for _, _, terms in evaluation.episodes for name in terms
    )
    for evaluation in seed.evaluated:
        if not evaluation.episodes:
            continue
        count = len(evaluation.episodes)
        steps = sum(length for length, _, _ in evaluation.episodes)
        returns[evaluation.step] = sum(paid for _, paid, _ in evaluation.episodes) / count
        for name in names:
            paid = [terms.get(name, 0.0) for _, _, terms in evaluation.episodes]
            per_step.setdefault(name, {})[evaluation.step] = sum(paid) / steps
            size.setdefault(name, {})[evaluation.step] = sum(map(abs, paid)) / steps
            per_episode.setdefault(name, {})[evaluation.step] = sum(paid) / count
    tables = [{name: _series(points) for name, points in table.items()} for table in (per_step, size, per_episode)]
    return SeedTerms(seed.seed, tables[0], tables[1], tables[2], _series(returns))


def _series(points: Mapping[int, float]) -> Series:
    steps = sorted(points)
    return Series(np.array(steps, dtype=np.float64), np.array([points[step] for step in steps], dtype=np.float64))


def _task_metric(config: Mapping[str, Any], seeds: Sequence[SeedCase]) -> tuple[str, dict[int, Series]]:
    """Return the task metric and its curve for each seed: the first that is known often enough, or else at all."""
    known = [(metric, tasks) for metric, tasks in _candidates(config, seeds) if any(map(len, tasks.values()))]
    for metric, tasks in known:
        if any(len(series) >= FEWEST_POINTS for series in tasks.values()):
            return metric, tasks
    return next(iter(known), ("", {}))


def _candidates(config: Mapping[str, Any], seeds: Sequence[SeedCase]) -> Iterator[tuple[str, dict[int, Series]]]:
    declared = _section(config, "eval").get("metric")
    if declared in RATES:
        yield declared, {seed.seed: _evaluated(seed, declared) for seed in seeds}
    yield "success_rate", {seed.seed: _logged_means(seed, "rollout/success_rate") for seed in seeds}
    for key in RATES:
        yield key, {seed.seed: _evaluated(seed, key) for seed in seeds}
    env = _section(config, "env")
    if any(_is_other_env(env, evaluation) for seed in seeds for evaluation in seed.evaluated):
        yield "evaluation return", {seed.seed: _evaluated(seed, "mean") for seed in seeds}


def _evaluated(seed: SeedCase, key: str) -> Series:
    return _series({row.step: row.figures[key] for row in seed.evaluated if key in row.figures})


def _is_other_env(trained: Mapping[str, Any], evaluation: PeriodicEvaluation) -> bool:
    """Say whether an evaluation's environment differs from the training's."""
    usual = {"id": None, "kwargs": {}, "wrappers": [], **trained}
    return any(key in evaluation.env and evaluation.env[key] != usual[key] for key in ("id", "kwargs", "wrappers"))


def _section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = config.get(name)
    return section if isinstance(section, Mapping) else {}
