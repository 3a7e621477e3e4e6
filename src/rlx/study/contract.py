"""A contract: what a study may do, what counts, and what was confirmed, before anything is trained."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from rlx import files
from rlx.config.schema import METRICS
from rlx.config.yaml_lines import Sort
from rlx.study import document, patterns
from rlx.study.task import Place, Task
from rlx.study.terms import (
    APPROVAL_LEVELS,
    POINTS,
    ApprovalLevel,
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

__all__ = [
    "APPROVAL_LEVELS", "POINTS", "ApprovalLevel", "Automation", "Baseline", "Budget", "Contract", "Evaluation",
    "Guardrail", "Hardware", "Level", "Metric", "Point", "Scope", "allowed", "dump", "figures_of", "read", "sha256",
]  # fmt: skip

SORT = Sort("contract", "make one: rlx study new")
FILE = "contract.yaml"
REHEARSAL_SECONDS = 300.0
"""How long a rehearsal may train: nobody has approved it."""
MINIMUM_SEEDS = 10
"""Fewer training seeds a side make every verdict provisional (see `compare.looks`)."""
SEALED_FIGURES = (
    "return", "success_rate", "pass_rate", "length_mean", "terminated_rate", "mean", "median", "std", "min", "max",
)  # fmt: skip
"""What rlx's own evaluator works out of a checkpoint's episodes (`evaluate.tally`), beside the terms of a reward."""
SEALED_METRICS = (*METRICS, "length_mean", "terminated_rate")
"""Those that may decide: the other ones are statistics of the return under names that do not say so."""
MINIMIZED = re.compile(r"loss|error|cost|regret|distance|violation|collision|fall|crash|time_to|steps_to", re.I)
USUAL_STOP = "rejected_in_a_row >= 8"
STOP_NAMES = ("candidates", "rejected_in_a_row", "debug_in_a_row", "gain", "spent", "hours")
COMMENTS = {
    "task_sha256": "Of what the task says: a task that says something else is not the one that was approved.",
    "confirmed": "Points that a person has looked at and agreed to; all eight are needed. Any edit voids an approval.",
    "metric": "2. The one figure that decides.",
    "metric.source": "evaluator, or training (reported: never moves an incumbent)",
    "metric.min_effect": "in the metric's unit: less than this is no improvement",
    "metric.seeds": "training seeds a side of the claim; under 10 it stays provisional",
    "metric.claims": "how many confirmations may be made; alpha is shared among them",
    "guardrails": "Figures that must not fall: harm blocks where it is shown, safety must be shown within the margin.",
    "scope": "3. What candidates may change; forbidden wins.",
    "scope.surfaces": "of the task",
    "scope.paths": "globs, or regions as file.py::Class.method",
    "scope.keys": "config keys, e.g. algo.*",
    "budget": "4. What all jobs together may use.",
    "budget.hours": "of training, summed over seeds",
    "budget.per_seed_minutes": "a seed is killed then",
    "budget.trial_steps": "share of the training steps that a trial takes",
    "budget.until": "no job starts after this (07:00, or a date and time)",
    "hardware": "5. What one seed needs, and how many run side by side.",
    "hardware.reads": "folders outside the repository that jobs may read",
    "baseline": "6. What every candidate is measured against.",
    "evaluation": "7. How policies are scored; level is the least that counts.",
    "evaluation.confirm_episodes": "drawn after both sides' checkpoints are in the ledger",
    "evaluation.deterministic": "sealed: take the policy's best action; it holds whatever the config says",
    "evaluation.minutes": "an evaluation is killed then",
    "automation": "8. What runs without a person, who must have approved it, and when it ends.",
    "automation.approval": "the least that counts: asserted, signed or other user",
    "automation.stop": f"expressions over {', '.join(STOP_NAMES)}",
}
EXAMPLES: dict[Point, str] = {
    "metric": "metric: {name: success_rate, direction: maximize}",
    "scope": "scope: {surfaces: [hyperparameters]}",
    "budget": "budget: {seeds: 60, hours: 4, per_seed_minutes: 5}",
    "hardware": "hardware: {cores: 1, parallel: 2}",
    "baseline": "baseline: {commit: <sha>, command: <what trains>}",
    "evaluation": "evaluation: {level: sealed, episodes: 20, confirm_episodes: 50}",
    "automation": "automation: {approval: asserted, stop: [rejected_in_a_row >= 8]}",
}


def read(path: Path) -> Contract:
    """Read a contract; every problem with file and line."""
    return document.read(path, Contract, sort=SORT)


def read_with_hash(path: Path) -> tuple[Contract, str]:
    """Read a contract together with the hash of the very bytes that were read."""
    loaded = document.load(path, sort=SORT)
    return document.build(loaded, Contract), loaded.sha256


def sha256(path: Path) -> str:
    """Return the hash of the file's bytes: what an approval is for."""
    return files.sha256(files.read_bytes(path))


def dump(contract: Contract) -> str:
    """Return the contract as YAML with comments, for people to edit; a missing point stands there as a comment."""
    data = contract.model_dump(mode="json", by_alias=True, exclude_none=True)
    text = document.dump(data, comments=COMMENTS, head=f"Contract of study {contract.study} on task {contract.task}.")
    missing = [EXAMPLES[point] for point in EXAMPLES if getattr(contract, point) is None]
    return text + "".join(f"\n# not settled, for example:\n# {example}\n" for example in missing)


def allowed(scope: Scope, task: Task) -> Place:
    """Return the paths and keys that a scope opens: its own, and those of the surfaces it names, if not forbidden."""
    surfaces = [task.surfaces[name] for name in scope.surfaces if name in task.surfaces and name != "evaluator"]
    keys = (*scope.keys, *(key for place in surfaces for key in place.keys))
    return Place(
        paths=tuple(dict.fromkeys((*scope.paths, *(path for place in surfaces for path in place.paths)))),
        keys=tuple(
            key for key in dict.fromkeys(keys) if not any(patterns.covers_key(no, key) for no in scope.forbidden)
        ),
    )


def figures_of(task: Task, level: Level) -> tuple[str, ...]:
    """Return the figures that an evaluation of this level has; empty where the task does not say."""
    adapter = task.adapter
    if level == "sealed":
        return SEALED_FIGURES
    source = adapter.result if level == "pinned" else adapter.metrics
    if source is None:
        return ()
    groups = re.compile(source.pattern).groupindex if source.reader == "stdout" and source.pattern else {}
    return tuple(dict.fromkeys((*source.names, *groups)))


def usual_direction(name: str) -> Literal["maximize", "minimize"] | None:
    """Return which way a metric gets better, by its name; None where it could be either."""
    if MINIMIZED.search(name):
        return "minimize"
    return "maximize" if name in METRICS or is_return(name) else None


def is_return(name: str) -> bool:
    """Say whether a metric is a sum of rewards by its name; a task metric is not."""
    return re.search(r"return|reward|(^|_)rew(_|$)", name.lower()) is not None
