"""Algorithms × tasks: normalised scores, aggregates and the probability of improvement."""

from __future__ import annotations

import numpy as np
import pytest

from rlx.compare.task_aggregate import Cell, aggregate_cells, improvement_probability

ENDS = {"one": (0.0, 10.0), "two": (-200.0, -100.0)}
SOURCES = {"one": "given", "two": "given"}


def cells(shift: float = 0.0, *, seeds: int = 8) -> list[Cell]:
    rng = np.random.default_rng(1)
    made = []
    for algorithm, gain in (("base", 0.0), ("new", shift)):
        for task, (floor, top) in ENDS.items():
            scores = floor + (top - floor) * (0.5 + gain + 0.1 * rng.normal(size=seeds))
            made.append(Cell(algorithm, task, tuple(scores)))
    return made


def test_scores_are_normalised_between_floor_and_reference() -> None:
    found = aggregate_cells(cells(0.3), ENDS, references=SOURCES)
    assert found.aggregates["base"]["IQM"].value == pytest.approx(0.5, abs=0.1)
    assert found.aggregates["new"]["mean"].value == pytest.approx(0.8, abs=0.1)
    assert found.aggregates["new"]["optimality gap"].value == pytest.approx(0.2, abs=0.1)
    interval = found.aggregates["base"]["IQM"].interval
    assert interval is not None
    assert interval.low < found.aggregates["base"]["IQM"].value < interval.high
    assert found.best("two") == "new"


def test_a_better_algorithm_has_a_high_probability_of_improvement_and_a_low_p() -> None:
    (better,) = aggregate_cells(cells(0.3), ENDS, references=SOURCES).improvements
    assert better.probability.value > 0.9
    assert better.p < 0.01
    (equal,) = aggregate_cells(cells(0.0), ENDS, references=SOURCES).improvements
    assert 0.2 < equal.probability.value < 0.8
    assert equal.p > 0.05


def test_the_probability_counts_ties_half_and_compares_only_within_a_task() -> None:
    ones = np.array([[1.0, 100.0], [1.0, 100.0]])
    assert float(improvement_probability(ones, ones)) == 0.5
    assert float(improvement_probability(ones, ones + 1)) == 1.0


def test_unequal_seeds_crashes_and_single_seeds_are_named() -> None:
    some = cells()
    some[0] = Cell("base", "one", some[0].scores[:5], crashed=1)
    found = aggregate_cells(some, ENDS, references=SOURCES)
    assert any("5 to 8 seeds" in note for note in found.notes)
    assert any("1 seeds crashed" in note for note in found.notes)
    single = aggregate_cells([Cell(c.algorithm, c.task, c.scores[:1]) for c in cells()], ENDS, references=SOURCES)
    assert single.aggregates["new"]["IQM"].interval is None
    assert any("no intervals" in note for note in single.notes)
