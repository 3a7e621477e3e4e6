"""A run's reward terms and task metric, read from its training metrics and its stored evaluations.

Terms are the training's (`reward/term/NAME`) where it logged them, else those of the evaluation episodes. The task
metric is one that the reward does not make up: the declared `eval.metric`, the training episodes' success rate, that of
the evaluations, or the return of an evaluation environment that is another than the training's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rlx import files
from rlx.diagnose.divergence import FEWEST_POINTS, POINTS, RATES
from rlx.diagnose.terms import SeedTerms, is_flat
from rlx.errors import FileDamaged
from rlx.runs.metrics import Series
from rlx.runs.run import Run, Seed

TERM, SIZE = "reward/term/", "reward/term_abs/"
UNREADABLE = (ValueError, TypeError, LookupError, AttributeError)
"""What other people's rows raise; `FileDamaged` is a ValueError."""


@dataclass(frozen=True)
class RewardHistory:
    """The terms of every seed that has some, and what is missing; `metric` is the task metric, empty where none is."""

    seeds: tuple[SeedTerms, ...]
    metric: str
    source: Literal["training", "evaluations"]
    notes: tuple[str, ...]


def read(run: Run) -> RewardHistory:
    """Read what a run tells about its reward terms; what cannot be read is left out and named."""
    notes: list[str] = []
    evaluations = _evaluations(run, notes)
    trained = [one for seed in run.seeds if (one := _trained_terms(seed, notes)) is not None]
    evaluated = [one for seed in run.seeds if (one := _evaluated_terms(seed.number, evaluations)) is not None]
    seeds = trained or evaluated
    metric, tasks = _task(run, evaluations)
    if seeds and not metric:
        notes.append(
            "no task metric apart from the reward: hacking and domination cannot be judged "
            '(report info["is_success"], or set eval.metric or eval.env)'
        )
    judged = tuple(SeedTerms(**{**vars(one), "task": tasks.get(one.seed)}) for one in seeds)
    return RewardHistory(judged, metric, "training" if trained else "evaluations", tuple(notes))


def _evaluations(run: Run, notes: list[str]) -> list[dict[str, Any]]:
    """Return the evaluations made while training, and of the untrained policy, by step."""
    try:
        found = [
            one for one in run.evaluations() if one.get("purpose") == "selection" or one["name"].endswith("_untrained")
        ]
        return sorted(found, key=lambda document: int(document["step"]))
    except UNREADABLE as error:
        notes.append(f"evaluations left out: {error}")
        return []


def _trained_terms(seed: Seed, notes: list[str]) -> SeedTerms | None:
    try:
        return _logged_terms(seed)
    except UNREADABLE as error:
        notes.append(f"seed {seed.number}: metrics left out: {error}")
        return None


def _logged_terms(seed: Seed) -> SeedTerms | None:
    names = dict.fromkeys(key.removeprefix(TERM) for row in seed.rows for key in row if key.startswith(TERM))
    if not names:
        return None
    per_step = {name: seed.series(TERM + name) for name in names}
    lengths = _lengths(seed.series("rollout/length_mean"), seed.series("rollout/episodes"))
    return SeedTerms(
        seed.number,
        per_step,
        {name: seed.series(SIZE + name) for name in names},
        {name: _per_episode(series, lengths) for name, series in per_step.items()},
        seed.series("rollout/return_mean"),
    )


def _lengths(recent: Series, episodes: Series) -> Series:
    """Return how long episodes were, in twentieths of the run: steps by episodes that ended.

    `recent` is the mean of the last hundred episodes, which lags; it counts where no other figure is to be had: at the
    start, when episodes have begun and none has ended, where there is no count, and where the length never changes.
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
    """Multiply a term's mean by the length of episodes, where that is known."""
    if not len(lengths):
        return per_step
    return Series(per_step.steps, per_step.values * np.interp(per_step.steps, lengths.steps, lengths.values))


def _evaluated_terms(seed: int, evaluations: Sequence[Mapping[str, Any]]) -> SeedTerms | None:
    """Return the terms of a seed's evaluation episodes; None where they have none."""
    played = {int(one["step"]): _episodes(one) for one in evaluations if one.get("seed") == seed}
    names = dict.fromkeys(name for rows in played.values() for row in rows for name in row.get("terms") or {})
    if not names:
        return None
    sums = {name: {step: [_term(row, name) for row in rows] for step, rows in played.items()} for name in names}
    lengths = {step: [float(row["length"]) for row in rows] for step, rows in played.items()}
    return SeedTerms(
        seed,
        {name: _series({s: sum(v) / sum(lengths[s]) for s, v in of.items()}) for name, of in sums.items()},
        {name: _series({s: sum(map(abs, v)) / sum(lengths[s]) for s, v in of.items()}) for name, of in sums.items()},
        {name: _series({s: sum(v) / len(v) for s, v in of.items()}) for name, of in sums.items()},
        _series({s: sum(files.number(row["return"]) for row in rows) / len(rows) for s, rows in played.items()}),
    )


def _episodes(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [row for row in document.get("episodes") or [] if "scenario" not in row and row.get("length")]


def _term(row: Mapping[str, Any], name: str) -> float:
    return files.number((row.get("terms") or {}).get(name, 0.0))


def _series(points: Mapping[int, float]) -> Series:
    steps = sorted(points)
    return Series(np.array(steps, dtype=np.float64), np.array([points[step] for step in steps], dtype=np.float64))


def _task(run: Run, evaluations: Sequence[Mapping[str, Any]]) -> tuple[str, dict[int, Series]]:
    """Return the task metric and its curve for each seed: the first known often enough, else the first known."""
    known = [
        (metric, tasks) for metric, tasks in _candidates(run, evaluations) if any(len(one) for one in tasks.values())
    ]
    often = [one for one in known if any(len(series) >= FEWEST_POINTS for series in one[1].values())]
    return (often or known or [("", {})])[0]


def _candidates(run: Run, evaluations: Sequence[Mapping[str, Any]]) -> Iterable[tuple[str, dict[int, Series]]]:
    numbers = [seed.number for seed in run.seeds]
    declared = (_section(run, "eval") or {}).get("metric")
    if declared in RATES:
        yield declared, {number: _evaluated(evaluations, number, declared) for number in numbers}
    yield "success_rate", {seed.number: _trained_rate(seed) for seed in run.seeds}
    for key in RATES:
        yield key, {number: _evaluated(evaluations, number, key) for number in numbers}
    if any(_is_another_env(run, document) for document in evaluations):
        yield "evaluation return", {number: _evaluated(evaluations, number, "mean") for number in numbers}


def _evaluated(evaluations: Sequence[Mapping[str, Any]], seed: int, key: str) -> Series:
    own = [one for one in evaluations if one.get("seed") == seed and files.is_number(one.get(key))]
    return _series({int(one["step"]): files.number(one[key]) for one in own})


def _trained_rate(seed: Seed) -> Series:
    try:
        return seed.series("rollout/success_rate")
    except UNREADABLE:  # said once, where the terms are read
        return _series({})


def _is_another_env(run: Run, document: Mapping[str, Any]) -> bool:
    """Say whether an evaluation's environment is another than the one that was trained in."""
    trained, measured = _section(run, "env") or {}, (document.get("protocol") or {}).get("env") or {}
    return any(key in measured and measured[key] != _plain(trained, key) for key in ("id", "kwargs", "wrappers"))


def _plain(env: Mapping[str, Any], key: str) -> Any:
    return env.get(key, {"kwargs": {}, "wrappers": []}.get(key))


def _section(run: Run, name: str) -> Mapping[str, Any] | None:
    try:
        section = run.config.get(name)
    except (OSError, FileDamaged, ValueError):
        return None
    return section if isinstance(section, dict) else None
