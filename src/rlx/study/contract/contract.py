"""The contract of a study: its schema, reading and writing it, and the figures and places that it names.

A contract says what a study may do, which metric decides, and which points a person has confirmed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from rlx import files
from rlx.config.schema import METRICS, Count, Flag, NonNegative, Positive, PositiveShare, Section, Text
from rlx.config.yaml_lines import FileKind
from rlx.study.candidate import path_patterns
from rlx.study.contract import document
from rlx.study.task.task import Name, PathsAndKeys, Surface, Task

SCHEMA: Literal[1] = 1
Point = Literal["task", "metric", "scope", "budget", "hardware", "baseline", "evaluation", "automation"]
# The eight points, in the order in which rlx prints them.
POINTS: dict[Point, str] = {
    "task": "task definition",
    "metric": "primary metric and guardrails",
    "scope": "tuning scope",
    "budget": "wall-clock and compute budget",
    "hardware": "hardware target",
    "baseline": "baseline command",
    "evaluation": "evaluation protocol",
    "automation": "automation and stop rules",
}
Level = Literal["sealed", "pinned", "reported"]
ApprovalLevel = Literal["asserted", "signed", "other user"]
APPROVAL_LEVELS: tuple[ApprovalLevel, ...] = ("asserted", "signed", "other user")


class Metric(Section):
    """The figure that decides. `min_effect` is in its unit, `seeds` counts per side, `claims` limits the claims."""

    name: Text
    source: Literal["evaluator", "training"] = "evaluator"
    direction: Literal["maximize", "minimize"] = "maximize"
    aggregate: Literal["mean"] = "mean"
    min_effect: NonNegative = 0.0
    seeds: Annotated[int, Field(strict=True, ge=2, le=100)] = 10
    alpha: PositiveShare = 0.05
    claims: Count = 1


class ContractGuardrail(Section):
    """A figure that must not get worse. `expression` uses the evaluator's figures, and higher is better.

    Mode `harm` blocks a claim if the figure is shown to get worse by more than `margin`. Mode `safety` blocks a claim
    until the figure is shown to stay within `margin`. Examples: `success_rate`, `-length_mean`.
    """

    expression: Text
    margin: NonNegative = 0.0
    mode: Literal["harm", "safety"] = "harm"


class Scope(Section):
    """What candidates may change: surfaces of the task, paths, regions and config keys. `forbidden` wins."""

    surfaces: tuple[Surface, ...] = ()
    paths: tuple[Text, ...] = ()
    keys: tuple[Text, ...] = ()
    forbidden: tuple[Text, ...] = ()


class ContractBudget(Section):
    """The budget of all jobs together. rlx kills a seed that takes longer than `per_seed_minutes`."""

    seeds: Count
    hours: Positive
    per_seed_minutes: Positive
    candidates: Count = 100
    until: Text | None = None
    trial_steps: PositiveShare = 1.0


class Hardware(Section):
    """The needs of one seed, and how many seeds may train at the same time."""

    cores: Count = 1
    gpus: NonNegative = 0.0
    memory_gb: Positive | None = None
    disk_gb: Positive = 5.0
    parallel: Count = 1
    # Absolute paths of folders outside the repository that jobs may read, such as data sets.
    reads: tuple[Text, ...] = ()


class Baseline(Section):
    """The commit and the command or config that every candidate is compared with."""

    commit: Text
    command: Text
    config_sha256: Text = ""


class ContractEvaluation(Section):
    """How policies are scored. `level` is the lowest level that counts."""

    level: Level = "sealed"
    episodes: Count = 20
    confirm_episodes: Count = 50
    deterministic: Flag = True
    minutes: Positive = 10.0


class Automation(Section):
    """What runs without a person, which approval it needs, and when it ends."""

    approval: ApprovalLevel = "asserted"
    unattended: Flag = False
    network: Flag = False
    sandbox: Literal["required", "if available"] = "required"
    expires_days: Positive = 7.0
    # Expressions with `candidates`, `rejected_in_a_row`, `debug_in_a_row`, `gain`, `spent` (a share) and `hours`.
    stop: tuple[Text, ...] = ()


class Contract(Section):
    """The content of `contract.yaml`. A missing section is a point that is not settled."""

    schema_: Literal[1] = Field(SCHEMA, alias="schema")
    study: Name
    task: Name
    task_sha256: Text = ""
    confirmed: tuple[Point, ...] = ()
    metric: Metric | None = None
    guardrails: tuple[ContractGuardrail, ...] = ()
    scope: Scope | None = None
    budget: ContractBudget | None = None
    hardware: Hardware | None = None
    baseline: Baseline | None = None
    evaluation: ContractEvaluation | None = None
    automation: Automation | None = None


FILE_KIND = FileKind("contract", "make one: rlx study new")
FILE = "contract.yaml"
# How long a rehearsal may train. It is short because it runs before the approval.
REHEARSAL_SECONDS = 300.0
# With fewer training seeds per side, every verdict is provisional.
MINIMUM_SEEDS = 10
# The figures that rlx's own evaluator computes from a checkpoint's episodes, in addition to the reward terms.
SEALED_FIGURES = (
    "return", "success_rate", "pass_rate", "length_mean", "terminated_rate", "mean", "median", "std", "min", "max",
)  # fmt: skip
# The figures that may decide. The others are statistics of the return whose names do not say so.
SEALED_METRICS = (*METRICS, "length_mean", "terminated_rate")
MINIMIZED = re.compile(r"loss|error|cost|regret|distance|violation|collision|fall|crash|time_to|steps_to", re.I)
USUAL_STOP = "rejected_in_a_row >= 8"
STOP_NAMES = ("candidates", "rejected_in_a_row", "debug_in_a_row", "gain", "spent", "hours")
COMMENTS = {
    "task_sha256": "The hash of the task's content. If the task changes, it has to be confirmed again.",
    "confirmed": "The points that a person has confirmed; all eight are needed. Any edit makes an approval void.",
    "metric": "2. The figure that decides.",
    "metric.source": "evaluator, or training (reported: never moves an incumbent)",
    "metric.min_effect": "in the metric's unit: a smaller gain is not an improvement",
    "metric.seeds": "training seeds per side of the claim; with fewer than 10 it stays provisional",
    "metric.claims": "how many confirmations may be made; they share alpha",
    "guardrails": "Figures that must not fall. harm: blocks if harm is shown. safety: must be shown within the margin.",
    "scope": "3. What candidates may change; forbidden wins.",
    "scope.surfaces": "surfaces of the task",
    "scope.paths": "globs, or regions as file.py::Class.method",
    "scope.keys": "config keys, e.g. algo.*",
    "budget": "4. The budget of all jobs together.",
    "budget.hours": "training hours, summed over seeds",
    "budget.per_seed_minutes": "rlx kills a seed that takes longer",
    "budget.trial_steps": "length of a trial, as a share of the training steps",
    "budget.until": "no job starts after this (07:00, or a date and time)",
    "hardware": "5. The needs of one seed, and how many seeds train at the same time.",
    "hardware.reads": "folders outside the repository that jobs may read",
    "baseline": "6. The commit and command that every candidate is compared with.",
    "evaluation": "7. How policies are scored; level is the lowest that counts.",
    "evaluation.confirm_episodes": "drawn after the checkpoints of both sides are in the ledger",
    "evaluation.deterministic": "sealed: take the policy's best action; overrides the config",
    "evaluation.minutes": "rlx kills an evaluation that takes longer",
    "automation": "8. What runs without a person, which approval it needs, and when it ends.",
    "automation.approval": "the lowest level that counts: asserted, signed or other user",
    "automation.stop": f"expressions with {', '.join(STOP_NAMES)}",
}
EXAMPLES: dict[Point, str] = {
    "metric": "metric: {name: success_rate, direction: maximize}",
    "scope": "scope: {surfaces: [hyperparameters]}",
    "budget": "budget: {seeds: 60, hours: 4, per_seed_minutes: 5}",
    "hardware": "hardware: {cores: 1, parallel: 2}",
    "baseline": "baseline: {commit: <sha>, command: <training command>}",
    "evaluation": "evaluation: {level: sealed, episodes: 20, confirm_episodes: 50}",
    "automation": "automation: {approval: asserted, stop: [rejected_in_a_row >= 8]}",
}


def read(path: Path, *, kind: FileKind = FILE_KIND) -> Contract:
    """Read a contract. The error lists every problem with file and line."""
    return document.read(path, Contract, kind=kind)


def read_with_hash(path: Path, *, kind: FileKind = FILE_KIND) -> tuple[Contract, str]:
    """Read a contract, and return it with the hash of the bytes that were read."""
    loaded = document.load(path, kind=kind)
    return document.build(loaded, Contract), loaded.sha256


def sha256(path: Path) -> str:
    """Return the hash of the file's bytes, which an approval is valid for."""
    return files.sha256(files.read_bytes(path))


def dump(contract: Contract) -> str:
    """Return the contract as YAML for people to edit. An example in a comment replaces a missing point."""
    data = contract.model_dump(mode="json", by_alias=True, exclude_none=True)
    text = document.dump(data, comments=COMMENTS, head=f"Contract of study {contract.study} on task {contract.task}.")
    missing = [EXAMPLES[point] for point in EXAMPLES if getattr(contract, point) is None]
    return text + "".join(f"\n# missing, for example:\n# {example}\n" for example in missing)


def open_places(scope: Scope, task: Task) -> PathsAndKeys:
    """Return the paths and keys that a scope opens: its own and those of its surfaces, without forbidden keys."""
    surfaces = [task.surfaces[name] for name in scope.surfaces if name in task.surfaces and name != "evaluator"]
    paths = [*scope.paths, *(path for places in surfaces for path in places.paths)]
    keys = [*scope.keys, *(key for places in surfaces for key in places.keys)]
    allowed = [key for key in keys if not any(path_patterns.covers_key(pattern, key) for pattern in scope.forbidden)]
    return PathsAndKeys(paths=tuple(dict.fromkeys(paths)), keys=tuple(dict.fromkeys(allowed)))


def metric_names(task: Task, level: Level) -> tuple[str, ...]:
    """Return the figures that an evaluation of this level has; empty if the task does not name them."""
    if level == "sealed":
        return SEALED_FIGURES
    source = {"pinned": task.adapter.result, "reported": task.adapter.metrics}[level]
    if source is None:
        return ()
    names = dict.fromkeys(source.names)
    if source.reader == "stdout" and source.pattern:
        names |= dict.fromkeys(re.compile(source.pattern).groupindex)
    return tuple(names)


def usual_direction(name: str) -> Literal["maximize", "minimize"] | None:
    """Guess from a metric's name in which direction it gets better; None if the name does not say."""
    if MINIMIZED.search(name):
        return "minimize"
    if name in METRICS or is_return(name):
        return "maximize"
    return None


def is_return(name: str) -> bool:
    """Say whether a metric's name means a sum of rewards. A task metric is not one."""
    return re.search(r"return|reward|(^|_)rew(_|$)", name.lower()) is not None
