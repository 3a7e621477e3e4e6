"""A contract with everything that can be inferred from its task, and what only a person can say."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from rlx import files
from rlx.compare.race import RULE
from rlx.study import derive, evaluator, remedy
from rlx.study import task as tasks
from rlx.study.approval import default_level
from rlx.study.contract import MINIMUM_SEEDS, figures_of, is_return, usual_direction
from rlx.study.task import Surface, Task
from rlx.study.terms import (
    Automation,
    Baseline,
    Budget,
    Contract,
    Evaluation,
    Guardrail,
    Hardware,
    Level,
    Metric,
    Point,
    Scope,
)

CANDIDATES = 10
"""How many candidates a budget is made for where nobody said how much there is."""
SLACK = 2.0
"""A seed may take this many times what it took; then it is killed. Where nobody measured it: its share of the hours."""
STOP = ("rejected_in_a_row >= 8", "debug_in_a_row >= 3")
FIXED = re.compile(
    r"(algo\.)?((total|num|max|n)[-_])?(env[-_])?(time-?steps|steps|iterations|episodes|generations|frames)", re.I
)
"""Keys that make a training longer: more of it is no improvement of it."""


@dataclass(frozen=True)
class Known:
    """What the caller knows and a task does not say; what is None is inferred or asked for."""

    commit: str | None = None
    cores: int = 1
    gpus: float = 0.0
    seed_seconds: float | None = None
    metric: str | None = None
    direction: str | None = None
    guardrails: tuple[Guardrail, ...] = ()
    surfaces: tuple[Surface, ...] = ()
    paths: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    hours: float | None = None
    seeds: int | None = None
    until: str | None = None
    claim_seeds: int = MINIMUM_SEEDS
    trial_steps: float = 1.0
    unattended: bool = False
    has_signers: bool = False


@dataclass(frozen=True)
class Question:
    """Something that cannot be inferred: the key it settles, in words, and what may be answered."""

    point: Point
    key: str
    text: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prefilled:
    """A contract without a confirmation, and what is still to be asked."""

    contract: Contract
    questions: tuple[Question, ...]


def prefill(task: Task, known: Known, *, study: str, root: Path) -> Prefilled:
    """Fill in a contract; a point that cannot be inferred is left out and asked for."""
    level = remedy.level(task)
    metric = _metric(task, known, level, root)
    scope = _scope(task, known, metric)
    contract = Contract(
        study=study,
        task=task.name,
        task_sha256=tasks.sha256(task),
        metric=metric,
        guardrails=known.guardrails,
        scope=scope,
        budget=_budget(known),
        hardware=_hardware(task, known, root),
        baseline=_baseline(task, known, root),
        evaluation=_evaluation(task, level, root),
        automation=Automation(
            approval=default_level(unattended=known.unattended, has_signers=known.has_signers),
            unattended=known.unattended,
            stop=STOP,
        ),
    )
    return Prefilled(contract, tuple(_questions(task, contract, level)))


def _metric(task: Task, known: Known, level: Level, root: Path) -> Metric | None:
    name = known.metric or _metric_name(task, level, root)
    if name is None:
        return None
    direction = known.direction or usual_direction(name) or "maximize"
    source = "training" if level == "reported" else "evaluator"
    data = {"name": name, "direction": direction, "source": source, "seeds": known.claim_seeds}
    return Metric.model_validate(data)


def _metric_name(task: Task, level: Level, root: Path) -> str | None:
    """Return the metric of the config, or the only figure that an eval command reports; None where it is a choice."""
    experiment = evaluator.experiment_of(task, root)
    if experiment is not None:
        return experiment.eval.metric or "return"
    names = figures_of(task, level) if level != "sealed" else ()
    return names[0] if len(names) == 1 else None


def _scope(task: Task, known: Known, metric: Metric | None) -> Scope | None:
    """Return the scope that was asked for, else the hyperparameters, with the length of a training kept as it is."""
    forbidden = tuple(key for key in _keys(task) if FIXED.fullmatch(key) or FIXED.fullmatch(key.rpartition(".")[2]))
    if known.surfaces or known.paths or known.keys:
        return Scope(surfaces=known.surfaces, paths=known.paths, keys=known.keys, forbidden=forbidden)
    wanted: tuple[Surface, ...] = ("hyperparameters",)
    if metric is not None and not is_return(metric.name):
        wanted = (*wanted, "reward")
    surfaces = tuple(name for name in wanted if name in task.surfaces)
    return Scope(surfaces=surfaces, forbidden=forbidden) if surfaces else None


def _keys(task: Task) -> tuple[str, ...]:
    return ("algo.total_timesteps",) if task.adapter.kind == "rlx" else tuple(task.adapter.defaults)


def _budget(known: Known) -> Budget | None:
    """Return the budget that was given, or one for ten candidates and a claim; None where neither time is known."""
    planned = 3 * known.claim_seeds + CANDIDATES * RULE.last + RULE.head
    if known.seed_seconds is not None:
        affordable = int(known.hours * 3600 / known.seed_seconds) if known.hours else planned
        seeds, seconds = known.seeds or max(1, affordable), known.seed_seconds
    elif known.hours is not None:
        seeds = known.seeds or planned
        seconds = known.hours * 3600 / seeds
    else:
        return None
    hours = known.hours or _up(seeds * seconds * SLACK / 3600)
    if known.seed_seconds is None:
        minutes = max(math.floor(seconds / 60 * 100) / 100, 0.01)
    else:
        minutes = min(_up(seconds * SLACK / 60), hours * 60)
    return Budget(
        seeds=seeds, hours=hours, per_seed_minutes=minutes, until=known.until, trial_steps=known.trial_steps
    )  # fmt: skip


def _up(value: float) -> float:
    """Return a number with two digits behind the point, never smaller."""
    return math.ceil(value * 100) / 100


def _hardware(task: Task, known: Known, root: Path) -> Hardware:
    """Return what one seed needs, and how many of them this machine has room for; of an engine, nobody said more."""
    experiment = evaluator.experiment_of(task, root)
    cores = experiment.resources.cores if experiment is not None else 1
    if experiment is None:
        gpus = min(1.0, known.gpus)
    else:
        gpus = experiment.resources.gpus or (1.0 if experiment.device.startswith("cuda") else 0.0)
    by_gpus = int(known.gpus / gpus) if gpus else known.cores
    by_machine = max(1, min(known.cores // cores, by_gpus)) if task.adapter.launcher.executor == "local" else 1
    reads = derive.venvs((*task.adapter.prefix, *task.adapter.train, *task.adapter.eval))
    return Hardware(cores=cores, gpus=gpus, parallel=by_machine, reads=reads)


def _baseline(task: Task, known: Known, root: Path) -> Baseline | None:
    if known.commit is None:
        return None
    config, command = task.adapter.config, remedy.baseline_command(task)
    digest = files.sha256((root / config).read_bytes()) if config and (root / config).is_file() else ""
    return Baseline(commit=known.commit, command=command, config_sha256=digest)


def _evaluation(task: Task, level: Level, root: Path) -> Evaluation:
    """Return the evaluation of the strongest level, played as the config says."""
    experiment = evaluator.experiment_of(task, root)
    return Evaluation(level=level, deterministic=experiment is None or experiment.eval.deterministic)


def _questions(task: Task, contract: Contract, level: Level) -> list[Question]:
    """Return what only a person can say."""
    asked: list[Question] = []
    if not task.card.mission.strip():
        asked.append(Question("task", "card.mission", "What should get better, in one sentence?"))
    if contract.metric is None:
        names = figures_of(task, level)
        asked.append(Question("metric", "metric.name", "Which figure decides?", names))
    if contract.scope is None:
        asked.append(Question("scope", "scope", "What may be changed (paths, file.py::Class, or config keys)?"))
    if contract.budget is None:
        asked.append(Question("budget", "budget.hours", "How many hours of training may the study use?"))
    if contract.baseline is None:
        asked.append(Question("baseline", "baseline.commit", "Which commit is the baseline?"))
    return asked
