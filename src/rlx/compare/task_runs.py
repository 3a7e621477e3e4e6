"""The runs of a comparison over several tasks, sorted into algorithms × environments: `rlx.aggregate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rlx.compare.question import STANDARD, ComparisonQuestion
from rlx.compare.stored_scores import StoredScores, required_scores, shared_fingerprints
from rlx.compare.task_aggregate import ENDS, Cell, TaskAggregate, aggregate_cells
from rlx.config import catalog
from rlx.config.labels import value_at
from rlx.errors import EvidenceInvalid, UsageError
from rlx.runs import project
from rlx.runs.run import Run, find_all
from rlx.runs.status import FAILED

BY = "algo.name"
TASK = "env.id"


def aggregate(
    runs: Sequence[Run | str] | str,
    *,
    by: str = BY,
    references: Mapping[str, ENDS] | None = None,
    question: ComparisonQuestion = STANDARD,
    root: Path | None = None,
) -> TaskAggregate:
    """Aggregate runs over several tasks. `runs` are runs, names or patterns; `by` is the config key that is compared.

    `references` gives a task's floor and reference: `{"CartPole-v1": (20, 500)}`.
    """
    if isinstance(runs, str):
        runs = [runs]
    members = _runs(runs, root or project.root())
    grid = _grid(members, by)
    algorithms = list(dict.fromkeys(algorithm for algorithm, _ in grid))
    tasks = list(dict.fromkeys(task for _, task in grid))
    _refuse_gaps(grid, algorithms, tasks, by)
    given = dict(references or {})
    for task in given:
        if task not in tasks:
            raise UsageError(f"no run is on the task `{task}`", hint=f"the tasks are: {', '.join(tasks)}")
    cells = []
    ends: dict[str, ENDS] = {}
    sources: dict[str, str] = {}
    metrics: dict[str, None] = {}
    for task in tasks:
        of_task = {algorithm: grid[algorithm, task] for algorithm in algorithms}
        scores, random, metric = _task_scores(task, of_task, question)
        metrics[metric] = None
        ends[task], sources[task] = _ends(task, scores, random, given, question)
        for algorithm in algorithms:
            cells.append(_cell(algorithm, task, of_task[algorithm], scores[algorithm], floor=ends[task][0]))
    return aggregate_cells(cells, ends, references=sources, metric=" or ".join(metrics))


def _runs(references: Sequence[Run | str], root: Path) -> list[Run]:
    members: dict[Path, Run] = {}
    for reference in references:
        found = [reference] if isinstance(reference, Run) else find_all(reference, root=root)
        for run in found:
            members[run.path] = run
    if not members:
        raise UsageError("no runs are named", hint="rlx compare --tasks 'bench_*'")
    return list(members.values())


def _grid(runs: Sequence[Run], by: str) -> dict[tuple[str, str], list[Run]]:
    grid: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        algorithm = value_at(run.config, by)
        task = value_at(run.config, TASK)
        if algorithm is None:
            raise UsageError(f"{run.name} has no `{by}`", hint=f"rlx config show {run.name}")
        grid.setdefault((str(algorithm), str(task)), []).append(run)
    for (algorithm, task), members in grid.items():
        if len({_identity(run) for run in members}) > 1:
            names = ", ".join(run.name for run in members)
            hint = f"rlx config diff {members[0].name} {members[1].name}, then --by KEY or fewer runs"
            raise UsageError(f"{algorithm} on {task}: these runs have different configs: {names}", hint=hint)
    return grid


def _identity(run: Run) -> str:
    """Return what seeds of one config share: the config without its name and seeds."""
    from rlx.config.load import NOT_IN_GROUP

    return str(sorted((key, str(value)) for key, value in run.config.items() if key not in NOT_IN_GROUP))


def _refuse_gaps(
    grid: Mapping[tuple[str, str], Sequence[Run]], algorithms: Sequence[str], tasks: Sequence[str], by: str
) -> None:
    gaps = [f"{algorithm} on {task}" for algorithm in algorithms for task in tasks if (algorithm, task) not in grid]
    if gaps:
        some = ", ".join(gaps[:4])
        more = f" and {len(gaps) - 4} more" if len(gaps) > 4 else ""
        hint = f"train them, or name runs in which every {by} has every task: rlx ls"
        raise EvidenceInvalid(f"no run of {some}{more}: an average over different tasks compares nothing", hint=hint)


def _task_scores(
    task: str, runs: Mapping[str, Sequence[Run]], question: ComparisonQuestion
) -> tuple[dict[str, dict[tuple[str, int], float]], float | None, str]:
    """Return the scores of every algorithm on one task under one protocol, by run and seed, and the random policy's."""
    members = [run for group in runs.values() for run in group]
    stored: dict[str, StoredScores] = {run.name: required_scores(run, question) for run in members}
    shared = shared_fingerprints(list(stored.values()), [run.own_protocol for run in members])
    if not shared:
        first, last = members[0].name, members[-1].name
        hint = f"rlx eval {first} && rlx eval {last} --like {first}"
        raise EvidenceInvalid(f"the runs on {task} were evaluated under different protocols", hint=hint)
    found: dict[str, dict[tuple[str, int], float]] = {}
    randoms = []
    metric = "return"
    for algorithm, group in runs.items():
        found[algorithm] = {}
        for run in group:
            for seed, score in sorted(stored[run.name][shared[0]].items()):
                found[algorithm][run.name, seed] = score.score
                metric = score.metric
                if score.random is not None:
                    randoms.append(score.random)
    random = float(np.median(randoms)) if randoms else None
    return found, random, metric


def _ends(
    task: str,
    scores: Mapping[str, Mapping[Any, float]],
    random: float | None,
    given: Mapping[str, ENDS],
    question: ComparisonQuestion,
) -> tuple[ENDS, str]:
    """Return the floor and the reference of a task, and where the reference comes from."""
    if task in given:
        floor, top = given[task]
        if not top > floor:
            raise UsageError(f"--reference {task}={floor:g}:{top:g}: the reference is not above the floor")
        return (floor, top), "given"
    means = {name: float(np.mean(list(values.values()))) for name, values in scores.items()}
    floor = min(means.values()) if random is None else random
    name = catalog.for_env(task)
    seen = catalog.ENTRIES[name].seen if name else None
    if seen is not None and question.metric is None and seen.reward > floor:
        return (floor, seen.reward), f"catalog:{name}"
    best = max(means, key=lambda algorithm: means[algorithm])
    if not means[best] > floor:
        problem = f"no algorithm scores above the floor ({floor:g}) on {task}, so its scores cannot be normalised"
        raise EvidenceInvalid(problem, hint=f"give both ends: --reference {task}=FLOOR:REFERENCE")
    return (floor, means[best]), f"best mean ({best})"


def _cell(
    algorithm: str, task: str, runs: Sequence[Run], scores: Mapping[tuple[str, int], float], *, floor: float
) -> Cell:
    crashed = 0
    for run in runs:
        for seed in run.seeds:
            if (run.name, seed.number) not in scores and seed.status.state == FAILED:
                crashed += 1
    values = (*scores.values(), *[floor] * crashed)
    return Cell(algorithm, task, tuple(values), crashed, tuple(run.name for run in runs))
