"""The commands that settle an open point of a contract."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence

from rlx.command import Command, rlx, shell
from rlx.config.expression import Expression
from rlx.study.candidate import path_patterns
from rlx.study.contract.contract import (
    USUAL_STOP,
    ApprovalLevel,
    Contract,
    ContractGuardrail,
    Level,
    Point,
    metric_names,
    usual_direction,
)
from rlx.study.task.task import TRAINS, PathsAndKeys, Task

COMMIT = shell('git add -A && git commit -m "as it is"')
_PROOF: dict[ApprovalLevel, tuple[str, ...]] = {
    "asserted": (), "signed": ("--key", "FILE"), "other user": ("--document", "FILE"),
}  # fmt: skip


def amend(contract: Contract, key: str, value: object) -> Command:
    """Return the command that sets a key of a contract."""
    return amends(contract, {key: value})


def amends(contract: Contract, values: Mapping[str, object]) -> Command:
    """Return the command that sets several keys at once. Values are written as JSON, which YAML can read."""
    command = rlx("study", "amend", contract.study)
    for key, value in values.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        command = command.plus("-s", f"{key}={text}")
    return command


def approve(contract: Contract, *, goes_on: bool = False) -> Command:
    """Return the command with which a person approves a contract, at the level that the contract requires."""
    proof = _PROOF[contract.automation.approval] if contract.automation else ()
    command = rlx("study", "approve", contract.study, is_complete=not proof, needs_person=True)
    if goes_on:
        command = command.plus("--go-on")
    return command.plus(*proof)


def remove_entry(contract: Contract, key: str, entries: Sequence[str], wrong: str) -> Command:
    """Return the command that removes one entry from a list of a contract."""
    return amend(contract, key, [entry for entry in entries if entry != wrong])


def replace_entry(contract: Contract, key: str, entries: Sequence[str], wrong: str, right: str | None) -> Command:
    """Return the command that replaces one entry of a list of a contract, or removes it if `right` is empty."""
    if not right:
        return remove_entry(contract, key, entries, wrong)
    replaced = [right if entry == wrong else entry for entry in entries]
    return amend(contract, key, list(dict.fromkeys(replaced)))


def guardrail(contract: Contract, wrong: ContractGuardrail, expression: str) -> Command:
    """Return the command that gives a guardrail another expression and keeps its margin and the other guardrails."""
    values = []
    for known in contract.guardrails:
        value = known.model_dump(mode="json", exclude_defaults=True)
        if known == wrong:
            value["expression"] = expression
        values.append(value)
    return amend(contract, "guardrails", values)


def figure(task: Task, wrong: ContractGuardrail, known: Sequence[str]) -> Command | None:
    """Return the command that makes a task's eval command report the guarded figures; None if it cannot."""
    try:
        unknown = sorted(Expression(wrong.expression).names - set(known))
    except ValueError:
        return None
    if not unknown or not task.adapter.result or strongest_level(task) != "pinned":
        return None
    settings = (word for name in unknown for word in ("-s", f"adapter.result.names.{name}={name}"))
    return rlx("task", "refresh", task.name, *settings)


def set_metric(contract: Contract, name: str) -> Command:
    """Return the command that lets another figure decide, in the direction that is usual for it."""
    values = {"metric.name": name}
    current = contract.metric.direction if contract.metric else "maximize"
    direction = usual_direction(name) or current
    if direction != current:
        values["metric.direction"] = direction
    return amends(contract, values)


def set_mission(contract: Contract, task: Task) -> Command:
    """Return the command that describes the goal of a task in the words of the metric."""
    words = "what should improve"
    if contract.metric:
        words = f"{contract.metric.direction} {contract.metric.name}"
    return rlx("task", "refresh", task.name, "--mission", words)


def add_point(point: Point, contract: Contract, task: Task) -> Command:
    """Return the command that adds a missing point to a contract."""
    if point == "metric":
        otherwise = "return" if task.adapter.kind == "rlx" else "NAME"
        names = metric_names(task, evaluation_level(contract, task))
        return set_metric(contract, next(iter(names), otherwise))
    if point == "baseline":
        command = shlex.quote(f"baseline.command={baseline_command(task)}")
        return shell(f"{pins_head(contract.study)} -s {command}")
    values: dict[Point, tuple[str, object]] = {
        "scope": _likely_scope(task),
        "budget": ("budget", {"seeds": 60, "hours": 4, "per_seed_minutes": 5}),
        "hardware": ("hardware", {"cores": 1, "parallel": 1}),
        "evaluation": ("evaluation.level", strongest_level(task)),
        "automation": ("automation.stop", [USUAL_STOP]),
    }
    return amend(contract, *values[point])


def pins_head(study: str) -> Command:
    """Return the shell command that pins the commit that is checked out."""
    return shell(f"rlx study amend {study} -s baseline.commit=$(git rev-parse HEAD)")


def evaluation_level(contract: Contract, task: Task) -> Level:
    """Return the level that the contract names, or the strongest level that the task allows."""
    if contract.evaluation:
        return contract.evaluation.level
    return strongest_level(task)


def strongest_level(task: Task) -> Level:
    """Return the strongest level at which a task can be evaluated."""
    adapter = task.adapter
    if adapter.kind == "rlx" or (adapter.env and adapter.policy):
        return "sealed"
    if adapter.eval and adapter.result:
        return "pinned"
    return "reported"


def _likely_scope(task: Task) -> tuple[str, object]:
    """Return what candidates probably change: the task's surfaces, or its keys, or the training program."""
    surfaces = [name for name in task.surfaces if name != "evaluator"]
    if surfaces:
        return "scope.surfaces", surfaces
    if task.adapter.kind == "rlx":
        return "scope.keys", ["algo.*"]
    if task.adapter.defaults:
        return "scope.keys", sorted(task.adapter.defaults)
    return "scope.paths", [fact.file for fact in task.facts if fact.what == TRAINS]


def close_file(contract: Contract, task: Task, pattern: str, path: str, regions: Sequence[str] = ()) -> Command:
    """Return the command that closes a file to candidates.

    If the pattern names just this file, the command removes the pattern or puts `regions` in its place. A surface that
    has the pattern is replaced by its other paths and keys. If the pattern covers more files, this one is forbidden.
    """
    scope = contract.scope
    assert scope is not None
    if path_patterns.split(pattern)[0].removeprefix("./") != path:
        return amend(contract, "scope.forbidden", [*scope.forbidden, path])
    affected = [name for name in scope.surfaces if pattern in task.surfaces.get(name, PathsAndKeys()).paths]
    paths = [*scope.paths, *regions, *(other for name in affected for other in task.surfaces[name].paths)]
    values: dict[str, Sequence[str]] = {"scope.paths": [other for other in paths if other != pattern]}
    if affected:
        values["scope.surfaces"] = [name for name in scope.surfaces if name not in affected]
    keys = [key for name in affected for key in task.surfaces[name].keys]
    if keys:
        values["scope.keys"] = [*scope.keys, *keys]
    return amends(contract, values)


def baseline_command(task: Task) -> str:
    """Return the command that trains the baseline, as a person types it."""
    if task.adapter.config:
        return shlex.join(("rlx", "train", task.adapter.config))
    return shlex.join((*task.adapter.prefix, *task.adapter.train))


def refresh_task(task: Task) -> Command:
    """Return the command that reads the files of a stale task again."""
    return rlx("task", "refresh", task.name)


def rewrite_task(task: Task) -> str:
    """Return how a person corrects a task."""
    source = "--train COMMAND"
    if task.adapter.config:
        source = f"--config {shlex.quote(task.adapter.config)}"
    return f"edit .rlx/tasks/{task.name}/task.yaml, or write it again: rlx task new {task.name} {source} --replace"
