"""The eight points of a contract as lines for people: the terms, whether the point is settled, and why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rlx.number_format import counted
from rlx.study.contract.contract import POINTS, Contract, ContractEvaluation, Point
from rlx.study.contract.contract_checks import OpenPoint
from rlx.study.task.task import PathsAndKeys, Task


@dataclass(frozen=True)
class PointRow:
    """One point of a contract: its title, its terms as lines, and the problems that keep it from being settled."""

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


def point_rows(
    contract: Contract,
    task: Task,
    *,
    problems: Sequence[OpenPoint],
    notes: Sequence[OpenPoint] = (),
    budget_lines: Sequence[str] = (),
    forgery_risks: Sequence[str] = (),
) -> tuple[PointRow, ...]:
    """Return the eight points in their order. `budget_lines` go to the budget, `forgery_risks` to automation."""
    extra: dict[Point, tuple[str, ...]] = {
        "budget": tuple(budget_lines),
        "automation": tuple(f"not ruled out: {risk}" for risk in forgery_risks),
    }
    return tuple(
        PointRow(
            point=point,
            number=number,
            title=title,
            lines=(*_LINES[point](contract, task), *extra.get(point, ())),
            problems=tuple(_with_hint(problem) for problem in problems if problem.point == point),
            notes=tuple(note.message for note in notes if note.point == point),
        )
        for number, (point, title) in enumerate(POINTS.items(), start=1)
    )


def _with_hint(problem: OpenPoint) -> str:
    if problem.hint:
        return f"{problem.message} ({problem.hint})"
    return problem.message


def _task(contract: Contract, task: Task) -> Iterator[str]:
    yield f"{contract.task}: {task.card.mission or '(no mission yet)'}"
    yield from (f"must stay true: {constraint}" for constraint in task.card.constraints)
    yield from (f"not a goal: {non_goal}" for non_goal in task.card.non_goals)


def _metric(contract: Contract, task: Task) -> Iterator[str]:
    metric = contract.metric
    if metric is not None:
        goal = f"{metric.direction} {metric.name} ({metric.aggregate} over seeds, from {metric.source})"
        if metric.min_effect:
            goal += f" by at least {metric.min_effect:g}"
        yield goal
        yield f"{counted(metric.seeds, 'seed')} per side, alpha {metric.alpha:g}, {counted(metric.claims, 'claim')}"
    rules = {"harm": "blocks a claim if harm is shown", "safety": "safety must be shown"}
    for guardrail in contract.guardrails:
        yield f"guardrail {guardrail.expression}: {rules[guardrail.mode]}, margin {guardrail.margin:g}"


def _scope(contract: Contract, task: Task) -> Iterator[str]:
    if contract.scope is None:
        return
    scope = contract.scope
    for name in scope.surfaces:
        places = task.surfaces.get(name, PathsAndKeys())
        yield f"surface {name}: {', '.join((*places.keys, *places.paths)) or 'nothing'}"
    for title, names in (("keys", scope.keys), ("paths", scope.paths), ("forbidden", scope.forbidden)):
        if names:
            yield f"{title}: {', '.join(names)}"


def _budget(contract: Contract, task: Task) -> Iterator[str]:
    budget = contract.budget
    if budget is None:
        return
    total = f"{counted(budget.seeds, 'seed')}, {budget.hours:g} h, at most {budget.per_seed_minutes:g} min per seed"
    if budget.until:
        total += f", until {budget.until}"
    yield total
    trial = "full length"
    if budget.trial_steps < 1:
        trial = f"{budget.trial_steps:.0%} of the steps"
    yield f"at most {budget.candidates} candidates, trials of {trial}"


def _hardware(contract: Contract, task: Task) -> Iterator[str]:
    hardware = contract.hardware
    if hardware is None:
        return
    memory = "unlimited memory (memory_gb)"
    if hardware.memory_gb:
        memory = f"{hardware.memory_gb:g} GB of memory"
    cores = counted(hardware.cores, "core")
    yield f"per seed: {cores}, {hardware.gpus:g} GPUs, {memory}; {hardware.parallel} in parallel"
    disk = f"{hardware.disk_gb:g} GB"
    yield f"a run may use {disk} of disk, and {disk} stay free (each file or folder counts as at least 4 kB)"
    executor: str = task.adapter.launcher.executor
    if executor == "local":
        executor = "local, unless rlx.toml or --executor names another"
    yield f"executor: {executor}"
    if hardware.reads:
        yield f"jobs also read {', '.join(hardware.reads)}"


def _baseline(contract: Contract, task: Task) -> Iterator[str]:
    if contract.baseline is not None:
        yield f"{contract.baseline.command} at commit {contract.baseline.commit[:12]}"


def _evaluation(contract: Contract, task: Task) -> Iterator[str]:
    evaluation = contract.evaluation
    if evaluation is None:
        return
    level = f"level {evaluation.level} or better"
    if evaluation.level == "sealed":
        level += ", without exploration" if evaluation.deterministic else ", with exploration"
    yield f"{level}, at most {evaluation.minutes:g} minutes"
    yield _episodes(evaluation, task)


def _episodes(evaluation: ContractEvaluation, task: Task) -> str:
    """Say how many episodes are played, and who chooses them, as far as that is known."""
    if evaluation.level == "reported":
        return "no episodes: the training's own log is read"
    if evaluation.level == "sealed" or task.adapter.takes_episodes:
        count = f"{evaluation.episodes} episodes per seed; {evaluation.confirm_episodes} for the claim"
    else:
        count = "as many episodes as the eval command plays: it takes no {episodes}"
    if evaluation.level == "sealed" or task.adapter.takes_episode_seed:
        return f"{count}, drawn afterwards"
    return f"{count}, chosen by the eval command: it takes no {{episode_seed}}"


def _automation(contract: Contract, task: Task) -> Iterator[str]:
    automation = contract.automation
    if automation is None:
        return
    starter = "runs unattended" if automation.unattended else "a person starts every step"
    yield f"{starter}; approval {automation.approval} or better, valid for {automation.expires_days:g} days"
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
