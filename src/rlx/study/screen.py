"""The eight points of a contract as one screen shows them: what each says, whether it is settled, and why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rlx.figures import counted
from rlx.study.points import Problem
from rlx.study.task import Place, Task
from rlx.study.terms import POINTS, Contract, Point


@dataclass(frozen=True)
class Row:
    """One point: its number and title, what the contract says about it, and what keeps it from being settled."""

    point: Point
    number: int
    title: str
    lines: tuple[str, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_settled(self) -> bool:
        return not self.problems

    def document(self) -> dict[str, Any]:
        """Return the point as JSON-able data."""
        return {
            "point": self.point, "number": self.number, "title": self.title, "settled": self.is_settled,
            "lines": list(self.lines), "problems": list(self.problems), "notes": list(self.notes),
        }  # fmt: skip


def screen(
    contract: Contract,
    task: Task,
    *,
    problems: Sequence[Problem],
    notes: Sequence[Problem] = (),
    affords: Sequence[str] = (),
    forgeable: Sequence[str] = (),
) -> tuple[Row, ...]:
    """Return the eight points in their order.

    `problems` and `notes` are the contract's; `affords` is said under the budget, `forgeable` under automation.
    """
    extra: dict[Point, tuple[str, ...]] = {
        "budget": tuple(affords),
        "automation": tuple(f"not ruled out: {line}" for line in forgeable),
    }
    return tuple(
        Row(
            point=point,
            number=number,
            title=title,
            lines=(*_LINES[point](contract, task), *extra.get(point, ())),
            problems=tuple(_spelled(one) for one in problems if one.point == point),
            notes=tuple(one.says for one in notes if one.point == point),
        )
        for number, (point, title) in enumerate(POINTS.items(), start=1)
    )


def _spelled(problem: Problem) -> str:
    return f"{problem.says} ({problem.hint})" if problem.hint else problem.says


def _task(contract: Contract, task: Task) -> Iterator[str]:
    yield f"{contract.task}: {task.card.mission or '(no mission yet)'}"
    yield from (f"must stay true: {text}" for text in task.card.constraints)
    yield from (f"not asked for: {text}" for text in task.card.non_goals)


def _metric(contract: Contract, task: Task) -> Iterator[str]:
    metric = contract.metric
    if metric is not None:
        least = f" by at least {metric.min_effect:g}" if metric.min_effect else ""
        yield f"{metric.direction} {metric.name} ({metric.aggregate} over seeds, from {metric.source}){least}"
        yield f"{counted(metric.seeds, 'seed')} a side, alpha {metric.alpha:g}, {counted(metric.claims, 'claim')}"
    for one in contract.guardrails:
        rule = "blocked by shown harm" if one.mode == "harm" else "safety must be shown"
        yield f"guardrail {one.expression}: {rule}, margin {one.margin:g}"


def _scope(contract: Contract, task: Task) -> Iterator[str]:
    if contract.scope is None:
        return
    scope = contract.scope
    for name in scope.surfaces:
        place = task.surfaces.get(name, Place())
        yield f"surface {name}: {', '.join((*place.keys, *place.paths)) or 'nothing'}"
    for what, named in (("keys", scope.keys), ("paths", scope.paths), ("forbidden", scope.forbidden)):
        if named:
            yield f"{what}: {', '.join(named)}"


def _budget(contract: Contract, task: Task) -> Iterator[str]:
    budget = contract.budget
    if budget is None:
        return
    until = f", until {budget.until}" if budget.until else ""
    yield f"{counted(budget.seeds, 'seed')}, {budget.hours:g} h, at most {budget.per_seed_minutes:g} min a seed{until}"
    trial = f"trials of {budget.trial_steps:.0%} of the steps" if budget.trial_steps < 1 else "trials of full length"
    yield f"at most {budget.candidates} candidates, {trial}"


def _hardware(contract: Contract, task: Task) -> Iterator[str]:
    hardware = contract.hardware
    if hardware is None:
        return
    memory = f"{hardware.memory_gb:g} GB of memory" if hardware.memory_gb else "memory without a limit (memory_gb)"
    cores = counted(hardware.cores, "core")
    yield f"a seed: {cores}, {hardware.gpus:g} GPUs, {memory}; {hardware.parallel} side by side"
    yield f"{hardware.disk_gb:g} GB of disk kept free, and the most a run takes (a file or folder counts 4 kB at least)"
    yield f"carried by {task.adapter.launcher.executor}"
    if hardware.reads:
        yield f"jobs also read {', '.join(hardware.reads)}"


def _baseline(contract: Contract, task: Task) -> Iterator[str]:
    if contract.baseline is not None:
        yield f"{contract.baseline.command} at commit {contract.baseline.commit[:12]}"


def _evaluation(contract: Contract, task: Task) -> Iterator[str]:
    evaluation = contract.evaluation
    if evaluation is None:
        return
    played = ", without exploration" if evaluation.deterministic else ", with exploration"
    how = played if evaluation.level == "sealed" else ""
    yield f"level {evaluation.level} or better{how}, at most {evaluation.minutes:g} minutes"
    yield f"{evaluation.episodes} episodes a seed; {evaluation.confirm_episodes} for the claim, drawn afterwards"


def _automation(contract: Contract, task: Task) -> Iterator[str]:
    automation = contract.automation
    if automation is None:
        return
    who = "runs unattended" if automation.unattended else "a person starts every step"
    yield f"{who}; approval {automation.approval} or better, good for {automation.expires_days:g} days"
    network = "with network" if automation.network else "no network"
    yield f"jobs: {network}, sandbox {automation.sandbox}"
    yield f"ends when {' or '.join(automation.stop) or 'the budget is spent'}"


_LINES: dict[Point, Callable[[Contract, Task], Iterator[str]]] = {
    "task": _task,
    "metric": _metric,
    "scope": _scope,
    "budget": _budget,
    "hardware": _hardware,
    "baseline": _baseline,
    "evaluation": _evaluation,
    "automation": _automation,
}
