"""The terms of a contract: its eight points and their sections, as `contract.yaml` holds them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rlx.config.schema import Count, Flag, NonNegative, Positive, PositiveShare, Section, Text
from rlx.study.task import Name, Surface

SCHEMA: Literal[1] = 1
Point = Literal["task", "metric", "scope", "budget", "hardware", "baseline", "evaluation", "automation"]
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
"""The eight confirmations, in the order they are shown."""
Level = Literal["sealed", "pinned", "reported"]
ApprovalLevel = Literal["asserted", "signed", "other user"]
APPROVAL_LEVELS: tuple[ApprovalLevel, ...] = ("asserted", "signed", "other user")


class Metric(Section):
    """The one figure that decides; `min_effect` is in its unit, `seeds` a side, `claims` how many may be made."""

    name: Text
    source: Literal["evaluator", "training"] = "evaluator"
    direction: Literal["maximize", "minimize"] = "maximize"
    aggregate: Literal["mean"] = "mean"
    min_effect: NonNegative = 0.0
    seeds: Annotated[int, Field(strict=True, ge=2, le=100)] = 10
    alpha: PositiveShare = 0.05
    claims: Count = 1


class Guardrail(Section):
    """A figure to watch: `harm` blocks where it is shown to get worse by more than `margin`, `safety` must be shown.

    `expression` is over the evaluator's figures, e.g. `success_rate` or `-length_mean`: higher is better.
    """

    expression: Text
    margin: NonNegative = 0.0
    mode: Literal["harm", "safety"] = "harm"


class Scope(Section):
    """What candidates may change: named surfaces of the task, or paths, regions and keys; forbidden wins."""

    surfaces: tuple[Surface, ...] = ()
    paths: tuple[Text, ...] = ()
    keys: tuple[Text, ...] = ()
    forbidden: tuple[Text, ...] = ()


class Budget(Section):
    """What all jobs together may use, and one seed at most (enforced: it is killed then)."""

    seeds: Count
    hours: Positive
    per_seed_minutes: Positive
    candidates: Count = 100
    until: Text | None = None
    trial_steps: PositiveShare = 1.0


class Hardware(Section):
    """What one seed needs, and how many may run side by side."""

    cores: Count = 1
    gpus: NonNegative = 0.0
    memory_gb: Positive | None = None
    disk_gb: Positive = 5.0
    parallel: Count = 1
    reads: tuple[Text, ...] = ()
    """Further folders outside the repository that jobs may read (data sets); absolute."""


class Baseline(Section):
    """What every candidate is measured against: a commit and the command or config at it."""

    commit: Text
    command: Text
    config_sha256: Text = ""


class Evaluation(Section):
    """How policies are scored; `level` is the least that counts."""

    level: Level = "sealed"
    episodes: Count = 20
    confirm_episodes: Count = 50
    deterministic: Flag = True
    minutes: Positive = 10.0


class Automation(Section):
    """What runs without a person, who must have approved it, and when it ends."""

    approval: ApprovalLevel = "asserted"
    unattended: Flag = False
    network: Flag = False
    sandbox: Literal["required", "if available"] = "required"
    expires_days: Positive = 7.0
    stop: tuple[Text, ...] = ()
    """Expressions over `candidates`, `rejected_in_a_row`, `debug_in_a_row`, `gain`, `spent` (share), `hours`."""


class Contract(Section):
    """A contract as `contract.yaml` holds it; a section that is missing is a point that is not settled."""

    schema_: Literal[1] = Field(SCHEMA, alias="schema")
    study: Name
    task: Name
    task_sha256: Text = ""
    confirmed: tuple[Point, ...] = ()
    metric: Metric | None = None
    guardrails: tuple[Guardrail, ...] = ()
    scope: Scope | None = None
    budget: Budget | None = None
    hardware: Hardware | None = None
    baseline: Baseline | None = None
    evaluation: Evaluation | None = None
    automation: Automation | None = None
