"""Fill in a contract from its task, and ask a person for the rest."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlx import files
from rlx.compare.race_thresholds import RULE
from rlx.config.schema import Experiment
from rlx.study.approval.approval import default_level
from rlx.study.contract import fixes
from rlx.study.contract.contract import (
    MINIMUM_SEEDS,
    Automation,
    Baseline,
    Contract,
    ContractBudget,
    ContractEvaluation,
    ContractGuardrail,
    Hardware,
    Level,
    Metric,
    Point,
    Scope,
    is_return,
    metric_names,
    usual_direction,
)
from rlx.study.task import infer_task, protected_files
from rlx.study.task import task as tasks
from rlx.study.task.task import Surface, Task

# The number of candidates that a budget is made for if the caller gives neither seeds nor hours.
CLUSTER_PARALLEL = 16  # a cluster queues what it has no room for
CANDIDATES = 10
# rlx kills a seed that takes this many times its measured time. An unmeasured seed gets its share of the hours.
SLACK = 2.0
NO_SCOPE = Scope()
STOP = ("rejected_in_a_row >= 8", "debug_in_a_row >= 3")
# Keys that set the length of a training. Training longer is not an improvement, so they are forbidden. `n_steps` and
# `num_steps` are the length of a rollout in most programs: rlx counts the steps that a training takes instead.
FIXED = re.compile(
    r"(algo\.)?((total|max)[-_])?(env[-_])?(time-?steps|steps|iterations|episodes|generations|frames)"
    r"|(algo\.)?(num|n)[-_](env[-_])?(time-?steps|iterations|episodes|generations|frames)",
    re.I,
)


@dataclass(frozen=True)
class PrefillInputs:
    """What the caller knows and the task does not say. rlx infers or asks for a value that is None."""

    commit: str | None = None
    cores: int = 1
    gpus: float = 0.0
    seed_seconds: float | None = None
    metric: str | None = None
    direction: str | None = None
    guardrails: tuple[ContractGuardrail, ...] = ()
    scope: Scope = NO_SCOPE
    hours: float | None = None
    seeds: int | None = None
    until: str | None = None
    unattended: bool = False
    has_signers: bool = False
    executor: str = "local"
    """The executor of the project, for a task that does not name one."""


@dataclass(frozen=True)
class Question:
    """A question for a person: the key that the answer sets, the question, and the possible answers."""

    point: Point
    key: str
    text: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prefilled:
    """A contract without confirmations, and the questions that are still open."""

    contract: Contract
    questions: tuple[Question, ...]


def prefill(task: Task, known: PrefillInputs, *, study: str, root: Path) -> Prefilled:
    """Fill in a contract. A point that rlx cannot infer is left out, and a question asks for it."""
    level = fixes.strongest_level(task)
    experiment = protected_files.experiment_of(task, root)
    metric = _metric(task, known, level, experiment)
    contract = Contract(
        study=study,
        task=task.name,
        task_sha256=tasks.sha256(task),
        metric=metric,
        guardrails=known.guardrails,
        scope=_scope(task, known.scope, metric),
        budget=_budget(known),
        hardware=_hardware(task, known, experiment),
        baseline=_baseline(task, known, root),
        evaluation=ContractEvaluation(level=level, deterministic=experiment is None or experiment.eval.deterministic),
        automation=Automation(
            approval=default_level(unattended=known.unattended, has_signers=known.has_signers),
            unattended=known.unattended,
            stop=STOP,
        ),
    )
    return Prefilled(contract, tuple(_questions(task, contract, level)))


def _metric(task: Task, known: PrefillInputs, level: Level, experiment: Experiment | None) -> Metric | None:
    """Return the given metric, the config's, or the only figure that the task reports; None if a person chooses."""
    name = known.metric
    names = metric_names(task, level)
    if name is None and experiment is not None:
        name = experiment.eval.metric or "return"
    elif name is None and level != "sealed" and len(names) == 1:
        name = names[0]
    if name is None:
        return None
    source = "training" if level == "reported" else "evaluator"
    direction = known.direction or usual_direction(name) or "maximize"
    return Metric.model_validate({"name": name, "direction": direction, "source": source, "seeds": MINIMUM_SEEDS})


def _scope(task: Task, chosen: Scope, metric: Metric | None) -> Scope | None:
    """Return the chosen scope, or else the hyperparameters. Keys that set the length of a training are forbidden."""
    keys = list(task.adapter.defaults)
    if task.adapter.kind == "rlx":
        keys = ["algo.total_timesteps"]
    is_length = _length_key(task.adapter.train)
    forbidden = tuple(
        key for key in keys if FIXED.fullmatch(key) or FIXED.fullmatch(key.rpartition(".")[2]) or is_length(key)
    )
    if chosen != NO_SCOPE:
        return chosen.model_copy(update={"forbidden": forbidden})
    surfaces: tuple[Surface, ...] = ("hyperparameters",)
    if metric is not None and not is_return(metric.name):
        surfaces = ("hyperparameters", "reward")
    surfaces = tuple(name for name in surfaces if name in task.surfaces)
    if not surfaces:
        return None
    return Scope(surfaces=surfaces, forbidden=forbidden)


def _length_key(train: Sequence[str]) -> Callable[[str], bool]:
    """Return the test for the key that the training command fills with `{steps}`, whatever its name."""
    command = " ".join(train)
    return lambda key: bool(re.search(rf"(?<![\w.]){re.escape(key)}[= ]\{{steps\}}", command))


def _budget(known: PrefillInputs) -> ContractBudget | None:
    """Return the given budget, or one for ten candidates and a claim; None if no time is known."""
    planned = 3 * MINIMUM_SEEDS + CANDIDATES * RULE.last + RULE.head
    if known.seed_seconds is None and known.hours is None:
        return None
    if known.seed_seconds is None or known.hours is None:
        seeds = known.seeds or planned
    else:
        seeds = known.seeds or max(1, int(known.hours * 3600 / known.seed_seconds))
    if known.seed_seconds is None:
        assert known.hours is not None
        hours = known.hours
        minutes = max(math.floor(hours * 60 / seeds * 100) / 100, 0.01)
    else:
        hours = known.hours or _round_up(seeds * known.seed_seconds * SLACK / 3600)
        minutes = min(_round_up(known.seed_seconds * SLACK / 60), hours * 60)
    return ContractBudget(seeds=seeds, hours=hours, per_seed_minutes=minutes, until=known.until)


def _round_up(value: float) -> float:
    """Round up to two decimals."""
    return math.ceil(value * 100) / 100


def _hardware(task: Task, known: PrefillInputs, experiment: Experiment | None) -> Hardware:
    """Return the needs of one seed, and how many seeds train at once: as many as fit here, or a cluster's array."""
    if experiment is None:
        cores = 1
        gpus = min(1.0, known.gpus)
    else:
        cores = experiment.resources.cores
        gpus = experiment.resources.gpus or float(experiment.device.startswith("cuda"))
    parallel = 1
    executor: str = task.adapter.launcher.executor
    if executor == "local":
        executor = known.executor
    if executor in ("slurm", "ray"):
        parallel = CLUSTER_PARALLEL
    if executor == "local":
        parallel = known.cores // cores
        if gpus:
            parallel = min(parallel, int(known.gpus / gpus))
    reads = infer_task.interpreter_folders((*task.adapter.prefix, *task.adapter.train, *task.adapter.eval))
    return Hardware(cores=cores, gpus=gpus, parallel=max(1, parallel), reads=reads)


def _baseline(task: Task, known: PrefillInputs, root: Path) -> Baseline | None:
    if known.commit is None:
        return None
    config = task.adapter.config
    config_sha256 = ""
    if config and (root / config).is_file():
        config_sha256 = files.sha256((root / config).read_bytes())
    return Baseline(commit=known.commit, command=fixes.baseline_command(task), config_sha256=config_sha256)


def _questions(task: Task, contract: Contract, level: Level) -> list[Question]:
    """Return the questions that only a person can answer."""
    questions: list[Question] = []
    if not task.card.mission.strip():
        questions.append(Question("task", "card.mission", "What should improve, in one sentence?"))
    if contract.metric is None:
        questions.append(Question("metric", "metric.name", "Which figure decides?", metric_names(task, level)))
    if contract.scope is None:
        questions.append(Question("scope", "scope", "What may candidates change (paths, file.py::Class, config keys)?"))
    if contract.budget is None:
        questions.append(Question("budget", "budget.hours", "How many training hours may the study use?"))
    if contract.baseline is None:
        questions.append(Question("baseline", "baseline.commit", "Which commit is the baseline?"))
    return questions
