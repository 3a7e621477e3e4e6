"""Count how good a set of rules is on the labelled runs; pure.

A run is *flagged* if it has a finding that is more than a remark (high or medium). A fault *counts* if the final true
returns of its seeds are significantly below those of all healthy runs of the same world and algorithm (one-sided
permutation test, .05). A healthy run *counts* if it learned: `REACHED` of the way from the random policy's return to a
good one. A tuned config whose seed was unlucky is neither healthy nor faulty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from labelled.cases import Case
from rlx.compare.permutation import permutation_p

LEVEL = 0.05
REACHED = 0.6


@dataclass(frozen=True)
class Judged:
    """One run and its findings, the first finding first."""

    case: Case
    score: float
    random: float
    found: tuple[str, ...]

    @property
    def is_flagged(self) -> bool:
        return bool(self.found)

    @property
    def is_right(self) -> bool:
        operator = self.case.operator
        return operator is not None and bool(self.found) and self.found[0] in operator.right

    @property
    def has_learned(self) -> bool:
        way = self.case.task.good - self.random
        return self.score >= self.random + REACHED * way


Cell = tuple[str, str]


def effects(runs: Sequence[Judged]) -> dict[Cell, float]:
    """Return p of every fault in every task: how surely it lowers the true return."""
    cells: dict[Cell, list[Judged]] = {}
    for run in runs:
        cells.setdefault((run.case.operator_name, run.case.task_name), []).append(run)
    healthy = {task: [one for (name, of), some in cells.items() if not name and of == task for one in some]
               for _, task in cells}  # fmt: skip
    return {cell: _p(healthy[cell[1]], some) for cell, some in cells.items() if cell[0] and healthy[cell[1]]}


def _p(healthy: Sequence[Judged], faulty: Sequence[Judged]) -> float:
    return float(permutation_p(*([one.score for one in side] for side in (healthy, faulty)), alternative="less"))


@dataclass(frozen=True)
class Figures:
    """Counts of one split; a share of nothing is `None`."""

    faults: int
    flagged: int
    right: int
    healthy: int
    alarms: int
    ineffective: int
    unlucky: int

    @property
    def precision(self) -> float | None:
        return _share(self.flagged, self.flagged + self.alarms)

    @property
    def recall(self) -> float | None:
        return _share(self.flagged, self.faults)

    @property
    def top_one(self) -> float | None:
        """The share of the flagged faults whose first finding is right."""
        return _share(self.right, self.flagged)

    @property
    def right_of_all(self) -> float | None:
        """The share of all faults whose first finding is right: one that is not flagged has none."""
        return _share(self.right, self.faults)

    @property
    def false_alarms(self) -> float | None:
        return _share(self.alarms, self.healthy)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def figures(runs: Sequence[Judged], effect: Mapping[Cell, float]) -> Figures:
    """Count one split; the effects are those of the whole benchmark."""
    faulty = [run for run in runs if not run.case.is_healthy]
    counted = [run for run in faulty if counts(run, effect)]
    tuned = [run for run in runs if run.case.is_healthy]
    healthy = [run for run in tuned if run.has_learned]
    return Figures(
        faults=len(counted),
        flagged=sum(run.is_flagged for run in counted),
        right=sum(run.is_right for run in counted),
        healthy=len(healthy),
        alarms=sum(run.is_flagged for run in healthy),
        ineffective=len(faulty) - len(counted),
        unlucky=len(tuned) - len(healthy),
    )


def counts(run: Judged, effect: Mapping[Cell, float]) -> bool:
    """Say whether a faulty run's fault does harm."""
    return effect.get((run.case.operator_name, run.case.task_name), 1.0) < LEVEL
