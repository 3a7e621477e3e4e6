"""The study of one rung: its task and its contract, preset by the lab's rules."""

from __future__ import annotations

import shutil
from typing import Any

from rlx import files
from rlx.launch.resources import available_cores
from rlx.loop.lab import lab_config
from rlx.loop.lab.lab_config import Rung
from rlx.loop.lab.lab_folder import CANDIDATE, EVALUATOR, PROGRAM, RUNGS, SURFACE, Lab
from rlx.loop.study.amend import confirm
from rlx.loop.study.describe_task import write_task
from rlx.loop.study.new_study import found
from rlx.study.contract.contract import (
    Automation,
    Baseline,
    Contract,
    ContractBudget,
    ContractEvaluation,
    Hardware,
    Metric,
    Scope,
)
from rlx.study.study_folder import Study
from rlx.study.task import infer_task
from rlx.study.task import task as tasks
from rlx.study.task.task import Adapter, Card, PathsAndKeys, Task

KEYS = (*infer_task.HYPERPARAMETERS, "env.kwargs.*", "env.wrappers")
"""The config keys that `candidate/train.py` may set."""
FIXED_KEYS = ("algo.total_timesteps",)
MOST_MISSION = 2000


def training_env(lab: Lab) -> str:
    """Return the id of the environment that candidates train in."""
    return f"{SURFACE[0]}:TrainingEnv"


def found_rung(
    lab: Lab, rung: Rung, *, commit: str, claims: int | None = None, alpha: float = Metric(name="return").alpha
) -> Study:
    """Write the task and the contract of a rung, with every point confirmed by the lab's rules.

    `claims` and `alpha` are what earlier rungs have left; without them, all claims of the lab are left.
    """
    study = lab.study_at(rung)
    task = rung_task(lab, rung)
    write_task(lab.root, task)
    contract = _contract(lab, rung, task, commit=commit)
    assert contract.metric is not None
    left = contract.metric.model_copy(update={"claims": claims or contract.metric.claims, "alpha": alpha})
    found(study, confirm(contract.model_copy(update={"metric": left}), task, lab.root))
    return study


def replace_rung(lab: Lab, rung: Rung, *, commit: str) -> Study:
    """Write a study again that was never approved, so that it fits the lab's files as they are now."""
    shutil.rmtree(lab.study_at(rung).folder)
    return found_rung(lab, rung, commit=commit)


def rung_task(lab: Lab, rung: Rung) -> Task:
    """Return the task of a rung. Its facts are the person's files: a change of one refuses every launch."""
    config = f"{RUNGS}/{rung.slug}.yaml"
    names = [lab_config.FILE, PROGRAM, *_owned(lab)]
    facts = tuple(infer_task.fact("the person's file", name, root=lab.root) for name in names)
    mission = " ".join((lab.root / PROGRAM).read_text(encoding="utf-8").split())[:MOST_MISSION]
    return Task(
        name=lab.study_at(rung).task_name,
        card=Card(mission=mission),
        adapter=Adapter(kind="rlx", config=config, config_system="rlx", steps=lab.config.steps(rung)),
        surfaces={
            "env": PathsAndKeys(paths=(SURFACE[0],)),
            "policy": PathsAndKeys(paths=(SURFACE[1],)),
            "hyperparameters": PathsAndKeys(keys=KEYS),
            "evaluator": PathsAndKeys(paths=(f"{EVALUATOR}/**", lab_config.FILE, PROGRAM)),
        },
        facts=facts,
    )


def _owned(lab: Lab) -> list[str]:
    """Return the person's code: the evaluator, and an environment of theirs that the lab has a copy of."""
    found = [path.relative_to(lab.root) for path in sorted(lab.root.rglob("*.py"))]
    found += [path.relative_to(lab.root) for path in sorted((lab.root / EVALUATOR).rglob("*")) if path.is_file()]
    left_out = (CANDIDATE, "runs")
    names = [
        path.as_posix()
        for path in found
        if path.parts[0] not in left_out and not any(part.startswith((".", "__pycache__")) for part in path.parts)
    ]
    return list(dict.fromkeys(names))


def _contract(lab: Lab, rung: Rung, task: Task, *, commit: str) -> Contract:
    rules = lab.config
    is_build = rules.kind == "build"
    metric: dict[str, Any] = {"name": rules.metric.name, "seeds": rules.seeds.claim, "claims": rules.seeds.claims}
    config = lab.root / str(task.adapter.config)
    return Contract(
        study=lab.study_at(rung).name,
        task=task.name,
        task_sha256=tasks.sha256(task),
        metric=Metric(**metric),
        scope=Scope(surfaces=("env", "policy", "hyperparameters"), forbidden=FIXED_KEYS),
        budget=ContractBudget(
            seeds=rules.budget.seeds,
            hours=rules.budget.hours,
            per_seed_minutes=rules.budget.per_seed_minutes,
            candidates=rules.budget.attempts,
        ),
        hardware=Hardware(parallel=max(1, available_cores())),
        baseline=Baseline(
            commit=commit, command=f"rlx train {task.adapter.config}", config_sha256=files.sha256(config.read_bytes())
        ),
        evaluation=ContractEvaluation(
            level="reported" if is_build else "sealed",
            episodes=rung.eval_episodes,
            confirm_episodes=max(50, rung.eval_episodes),
        ),
        automation=Automation(unattended=True, stop=("debug_in_a_row >= 8",)),
    )
