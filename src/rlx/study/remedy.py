"""What settles an open point of a contract: the command, as it is typed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlx.config.expression import Expression
from rlx.study.contract import usual_direction
from rlx.study.task import TRAINS, Task
from rlx.study.terms import ApprovalLevel, Contract, Guardrail, Level, Point

COMMIT = 'git add -A && git commit -m "as it is"'


@dataclass(frozen=True)
class Open:
    """Why a point is open, and the command that settles it."""

    says: str
    command: str


def amend(contract: Contract, key: str, value: object) -> str:
    """Return the command that sets a key of a contract; values are written as JSON, which is YAML too."""
    return amends(contract, {key: value})


def amends(contract: Contract, values: Mapping[str, object]) -> str:
    """Return the command that sets several keys at once."""
    return f"rlx study amend {contract.study} {' '.join(_set(key, value) for key, value in values.items())}"


def _set(key: str, value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"-s {shlex.quote(f'{key}={text}')}"


def approve(study: str, level: ApprovalLevel, *, goes_on: bool = False) -> str:
    """Return the command that approves a study's contract at a level."""
    return f"rlx study approve {study}{' --go-on' if goes_on else ''}{_SHOWN_BY[level]}"


_SHOWN_BY: dict[ApprovalLevel, str] = {"asserted": "", "signed": " --key FILE", "other user": " --document FILE"}


def approved(contract: Contract, *, goes_on: bool = False) -> str:
    """Return the command that approves a contract at the level that it asks for."""
    return approve(contract.study, contract.automation.approval if contract.automation else "asserted", goes_on=goes_on)


def raised(contract: Contract, key: str) -> str:
    """Return what lets more of the budget be used: a person's word."""
    return f"a person raises it: rlx study amend {contract.study} -s budget.{key}=N, then {approved(contract)}"


def without(contract: Contract, key: str, values: Sequence[str], wrong: str) -> str:
    """Return the command that takes one entry out of a list of a contract."""
    return amend(contract, key, [one for one in values if one != wrong])


def mended(contract: Contract, key: str, values: Sequence[str], wrong: str, right: str | None) -> str:
    """Return the command that puts what was meant in the place of an entry of a list, or takes that out."""
    return amend(
        contract, key, list(dict.fromkeys(right if one == wrong else one for one in values if right or one != wrong))
    )


def guardrail(contract: Contract, wrong: Guardrail, expression: str) -> str:
    """Return the command that gives a guardrail another expression; the others, and its margin, stay."""
    kept = [one.model_copy(update={"expression": expression}) if one == wrong else one for one in contract.guardrails]
    return amend(contract, "guardrails", [one.model_dump(mode="json", exclude_defaults=True) for one in kept])


def figure(task: Task, wrong: Guardrail, known: Sequence[str]) -> str:
    """Return the command that says that an evaluation of its own reports what is guarded too; empty where it is not."""
    try:
        unknown = sorted(Expression(wrong.expression).names - set(known))
    except ValueError:
        return ""
    if not unknown or not task.adapter.result or level(task) != "pinned":
        return ""
    return f"rlx task refresh {task.name} " + " ".join(f"-s adapter.result.names.{one}={one}" for one in unknown)


def metric(contract: Contract, name: str) -> str:
    """Return the command that has another figure decide; it gets better the way that such a figure does."""
    said = contract.metric.direction if contract.metric else "maximize"
    direction = usual_direction(name) or said
    return amends(contract, {"metric.name": name, **({} if direction == said else {"metric.direction": direction})})


def mission(contract: Contract, task: Task) -> str:
    """Return the command that says what a task is about: what the metric says, until somebody has better words."""
    words = f"{contract.metric.direction} {contract.metric.name}" if contract.metric else "what should get better"
    return f"rlx task refresh {task.name} --mission {shlex.quote(words)}"


def missing(point: Point, contract: Contract, task: Task, figures: Sequence[str]) -> str:
    """Return the command that puts in a point that is not there; `figures` are what the evaluation measures."""
    values: dict[Point, tuple[str, object]] = {
        "scope": _scope(task),
        "budget": ("budget", {"seeds": 60, "hours": 4, "per_seed_minutes": 5}),
        "hardware": ("hardware", {"cores": 1, "parallel": 1}),
        "evaluation": ("evaluation.level", level(task)),
        "automation": ("automation.stop", ["rejected_in_a_row >= 8"]),
    }
    if point == "metric":
        return metric(contract, figures[0] if figures else "return" if task.adapter.kind == "rlx" else "NAME")
    if point == "baseline":
        command = shlex.quote(f"baseline.command={baseline_command(task)}")
        return f"{pins_head(contract.study)} -s {command}"
    return amend(contract, *values[point])


def pins_head(study: str) -> str:
    """Return the command that pins the commit that the project stands at, as a shell reads it."""
    return f"rlx study amend {study} -s baseline.commit=$(git rev-parse HEAD)"


def level(task: Task) -> Level:
    """Return the strongest level that a task can be evaluated at."""
    adapter = task.adapter
    if adapter.kind == "rlx" or (adapter.env and adapter.policy):
        return "sealed"
    return "pinned" if adapter.eval and adapter.result else "reported"


def _scope(task: Task) -> tuple[str, object]:
    """Return what is most likely to be changed: the task's surfaces, else its keys, else the program that trains."""
    surfaces = [name for name in task.surfaces if name != "evaluator"]
    if surfaces:
        return "scope.surfaces", surfaces
    if task.adapter.kind == "rlx":
        return "scope.keys", ["algo.*"]
    if task.adapter.defaults:
        return "scope.keys", sorted(task.adapter.defaults)
    return "scope.paths", [fact.file for fact in task.facts if fact.what == TRAINS]


def baseline_command(task: Task) -> str:
    """Return what trains the baseline, as it is typed."""
    adapter = task.adapter
    return shlex.join(("rlx", "train", adapter.config) if adapter.config else (*adapter.prefix, *adapter.train))


def task_mended(task: Task, *, is_stale: bool) -> str:
    """Return what mends a task: its files read again, or the task written anew."""
    if is_stale:
        return f"rlx task refresh {task.name}"
    anew = f"--config {shlex.quote(task.adapter.config)}" if task.adapter.config else "--train COMMAND"
    return f"edit .rlx/tasks/{task.name}/task.yaml, or write it anew: rlx task new {task.name} {anew} --replace"
