"""Several tasks at once: algorithms × environments with normalised scores, aggregates and profiles.

A score is normalised between a floor (the random policy, 0) and a reference (1). The reference is given, or measured by
rlx's catalog, or else the best algorithm's mean on that task. Aggregates are those of Agarwal et al. 2021
(arXiv 2108.13264): the interquartile mean (IQM), the mean and the optimality gap, with stratified bootstrap intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlx.compare.permutation import permutation_p_over_tasks
from rlx.compare.stats import Floats, Interval, bootstrap_interval, iqm, mean
from rlx.number_format import deviation, plain

ENDS = tuple[float, float]
"""A task's floor and reference."""
RESAMPLES = 5_000
FEWEST_RESAMPLED = 2


@dataclass(frozen=True)
class Cell:
    """The scores of one algorithm on one task, one per training seed. A crashed seed scores the floor."""

    algorithm: str
    task: str
    scores: tuple[float, ...]
    crashed: int = 0
    runs: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return the cell as JSON-able data."""
        spread = None
        if len(self.scores) > 1:
            spread = plain(deviation(np.array(self.scores)))
        return {
            "algorithm": self.algorithm, "task": self.task, "runs": list(self.runs), "n": len(self.scores),
            "crashed": self.crashed, "mean": plain(float(np.mean(self.scores))), "sd": spread,
        }  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """A figure with its 95 % interval, or without one if a task has a single seed."""

    value: float
    interval: Interval | None = None

    def document(self) -> dict[str, Any]:
        """Return the figure as JSON-able data."""
        low = high = None
        if self.interval is not None:
            low = plain(self.interval.low)
            high = plain(self.interval.high)
        return {"value": plain(self.value), "low": low, "high": high}


@dataclass(frozen=True)
class Improvement:
    """How often a run of an algorithm beats one of the baseline on the same task, and the p-value of a difference.

    The p-value is one-sided, with seeds permuted only within a task.
    """

    algorithm: str
    probability: Figure
    p: float


@dataclass(frozen=True)
class TaskAggregate:
    """Algorithms × tasks. `scores` are normalised, (seeds, tasks) per algorithm."""

    algorithms: tuple[str, ...]
    tasks: tuple[str, ...]
    metric: str
    cells: tuple[Cell, ...]
    ends: Mapping[str, ENDS]
    references: Mapping[str, str]
    scores: Mapping[str, Floats]
    aggregates: Mapping[str, Mapping[str, Figure]]
    improvements: tuple[Improvement, ...]
    notes: tuple[str, ...] = ()

    def cell(self, algorithm: str, task: str) -> Cell:
        """Return one algorithm's scores on one task."""
        return next(cell for cell in self.cells if (cell.algorithm, cell.task) == (algorithm, task))

    def best(self, task: str) -> str:
        """Return the algorithm with the highest mean on a task, or nothing if two share it."""
        means = {algorithm: float(np.mean(self.cell(algorithm, task).scores)) for algorithm in self.algorithms}
        highest = [algorithm for algorithm, score in means.items() if score == max(means.values())]
        return highest[0] if len(highest) == 1 else ""

    def document(self) -> dict[str, Any]:
        """Return everything as JSON-able data."""
        return {
            "algorithms": list(self.algorithms),
            "tasks": [
                {"task": task, "floor": self.ends[task][0], "reference": self.ends[task][1],
                 "reference_from": self.references[task], "best": self.best(task)}
                for task in self.tasks
            ],
            "metric": self.metric,
            "cells": [cell.document() for cell in self.cells],
            "aggregates": {
                algorithm: {name: figure.document() for name, figure in figures.items()}
                for algorithm, figures in self.aggregates.items()
            },
            "improvements": [
                {"algorithm": row.algorithm, "over": self.algorithms[0], "probability": row.probability.document(),
                 "p": row.p}
                for row in self.improvements
            ],
            "notes": list(self.notes),
        }  # fmt: skip


def optimality_gap(scores: Floats) -> Floats:
    """Return by how much runs miss the reference on average: (…, runs, tasks) → (…). Above it counts as reached."""
    return np.asarray(np.maximum(0.0, 1.0 - scores).mean(axis=(-2, -1)))


STATISTICS = {"IQM": iqm, "mean": mean, "optimality gap": optimality_gap}


def aggregate_cells(
    cells: Sequence[Cell], ends: Mapping[str, ENDS], *, references: Mapping[str, str], metric: str = "return"
) -> TaskAggregate:
    """Aggregate cells of which every algorithm has every task. The first algorithm is the baseline."""
    algorithms = tuple(dict.fromkeys(cell.algorithm for cell in cells))
    tasks = tuple(dict.fromkeys(cell.task for cell in cells))
    by_name = {(cell.algorithm, cell.task): cell for cell in cells}
    scores: dict[str, Floats] = {}
    notes = []
    for algorithm in algorithms:
        counts = [len(by_name[algorithm, task].scores) for task in tasks]
        fewest = min(counts)
        if max(counts) > fewest:
            notes.append(
                f"{algorithm}: its tasks have {fewest} to {max(counts)} seeds; the first {fewest} of each count"
            )
        columns = [_normalise(by_name[algorithm, task].scores[:fewest], ends[task]) for task in tasks]
        scores[algorithm] = np.column_stack(columns)
    crashed = sum(cell.crashed for cell in cells)
    if crashed:
        notes.append(f"{crashed} seeds crashed: they count as the floor")
    if any(len(matrix) < FEWEST_RESAMPLED for matrix in scores.values()):
        notes.append("one seed per task says nothing about spread: no intervals")
    aggregates = {algorithm: _figures(matrix) for algorithm, matrix in scores.items()}
    baseline = algorithms[0]
    improvements = tuple(
        _improvement(algorithm, scores[baseline], scores[algorithm]) for algorithm in algorithms[1:]
    )  # fmt: skip
    return TaskAggregate(
        algorithms, tasks, metric, tuple(cells), dict(ends), dict(references), scores, aggregates, improvements,
        tuple(notes),
    )  # fmt: skip


def _normalise(scores: Sequence[float], ends: ENDS) -> Floats:
    floor, top = ends
    return (np.asarray(scores, dtype=np.float64) - floor) / (top - floor)


def _figures(matrix: Floats) -> dict[str, Figure]:
    figures = {}
    for name, statistic in STATISTICS.items():
        interval = None
        if len(matrix) >= FEWEST_RESAMPLED:
            interval = bootstrap_interval(statistic, matrix, resamples=RESAMPLES)
        figures[name] = Figure(float(statistic(matrix)), interval)
    return figures


def improvement_probability(base: Floats, new: Floats) -> Floats:
    """Return how often a new run beats a base run of the same task, ties half: (…, runs, tasks) each → (…)."""
    wins = (new[..., :, None, :] > base[..., None, :, :]).mean(axis=(-3, -2))
    ties = (new[..., :, None, :] == base[..., None, :, :]).mean(axis=(-3, -2))
    return np.asarray((wins + ties / 2).mean(axis=-1))


def _improvement(algorithm: str, base: Floats, new: Floats) -> Improvement:
    interval = None
    if min(len(base), len(new)) >= FEWEST_RESAMPLED:
        interval = bootstrap_interval(improvement_probability, base, new, resamples=RESAMPLES)
    probability = Figure(float(improvement_probability(base, new)), interval)
    return Improvement(algorithm, probability, permutation_p_over_tasks(base, new, alternative="greater"))
