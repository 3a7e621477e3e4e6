"""Every training of the benchmark: a task with or without a fault, its seed, its config, and its half of the split."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from labelled.operators import OPERATORS, Operator
from labelled.tasks import TASKS, Config, Task, changed
from rlx import files

FAULTY_SEEDS = 5
HEALTHY = ""


@dataclass(frozen=True)
class Case:
    """One training; a healthy one has no operator but a variant of the tuned config."""

    task_name: str
    operator_name: str
    variant: str
    place: int

    @property
    def name(self) -> str:
        return f"{self.task_name}/{self.operator_name or self.variant}/{self.place}"

    @property
    def task(self) -> Task:
        return TASKS[self.task_name]

    @property
    def operator(self) -> Operator | None:
        return OPERATORS[self.operator_name] if self.operator_name else None

    @property
    def is_healthy(self) -> bool:
        return not self.operator_name

    @property
    def split(self) -> str:
        """Return `dev` or `test`: by a hash of fault and world, so that a whole cell lies in one of them.

        All seeds and algorithms of an operator in a world are on one side; so are those of a healthy variant.
        """
        return split(self.operator_name or self.variant, self.task.world)

    @property
    def seed(self) -> int:
        """Return the training seed: another one in every training."""
        return int(hashlib.sha256(self.name.encode()).hexdigest()[:6], 16)

    @cached_property
    def config(self) -> Config:
        """Return the trained config."""
        return self._config(is_scored=False)

    @cached_property
    def scored_config(self) -> Config:
        """Return the scoring env: the task's own reward and ends, with the observations and actions of training.

        rlx removes the remaining reward wrappers when it evaluates.
        """
        return self._config(is_scored=True)

    @cached_property
    def plan(self) -> str:
        """Return a hash of the plan; rows of another plan are not counted."""
        patch = self.operator.patch if self.operator else ""
        return hashlib.sha256(files.encode([self.config, patch])).hexdigest()[:8]

    def _config(self, *, is_scored: bool) -> Config:
        operator, base = self.operator, self.task.config
        if operator is None:
            return changed(base, self.task.variants[self.variant])
        wrappers = operator.wrappers(self.task_name) if operator.shows or not is_scored else []
        return changed(base, {**operator.changes, "env.wrappers": wrappers})


def split(what: str, world: str) -> str:
    """Return the half of the split that something planted in a world belongs to."""
    return "dev" if hashlib.sha256(f"{what} in {world}".encode()).digest()[0] % 2 else "test"


@cache
def cases() -> tuple[Case, ...]:
    """Return every training, in an order that is independent of the planted faults.

    The first seeds of all cells come first, so that a part of the trainings is a part of every cell.
    """
    return tuple(sorted((*_faulty(), *_healthy()), key=_turn))


def _turn(case: Case) -> tuple[float, str]:
    seeds = case.task.healthy_seeds if case.is_healthy else FAULTY_SEEDS
    return case.place / seeds, hashlib.sha256(case.name.encode()).hexdigest()


def _faulty() -> Iterator[Case]:
    for name, operator in OPERATORS.items():
        for task in operator.tasks:
            for place in range(FAULTY_SEEDS):
                yield Case(task, name, "tuned", place)


def _healthy() -> Iterator[Case]:
    for name, task in TASKS.items():
        for variant in task.variants:
            for place in range(task.healthy_seeds):
                yield Case(name, HEALTHY, variant, place)
