"""The rules of a lab (`lab.yaml`): kind, budget ladder, caps, seeds, agent command and stop rules.

A person writes it. The lab's study holds its hash, so that a change after the approval refuses every launch.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from rlx.config.schema import Count, NonNegative, Number, Positive, PositiveShare, Section, Text
from rlx.config.yaml_lines import FileKind
from rlx.study.contract import document
from rlx.study.task.task import Name

FILE = "lab.yaml"
FILE_KIND = FileKind("lab", "make one: rlx lab new NAME")
LabKind = Literal["solve", "build"]
LADDER: tuple[tuple[int, int], ...] = ((12, 8), (32, 8), (64, 12), (128, 16), (256, 24), (512, 48), (1000, 100))
"""The usual rungs: train episodes and eval episodes."""


class Rung(Section):
    """One step of the budget ladder. Scores of different rungs are never compared."""

    train_episodes: Count
    eval_episodes: Count

    @property
    def name(self) -> str:
        """The rung as people write it: `32/8`."""
        return f"{self.train_episodes}/{self.eval_episodes}"

    @property
    def slug(self) -> str:
        """The rung in the name of a file or study."""
        return f"{self.train_episodes}x{self.eval_episodes}"


class Caps(Section):
    """Hard limits. No rung, config or candidate exceeds them."""

    train_episodes: Count = 1000
    eval_episodes: Count = 100
    max_steps: Count = 500
    parameters: Count = 1_000_000
    diff_lines: Count = 400


class LabMetric(Section):
    """The figure that decides, when an episode counts as solved, and the score at which the lab may stop."""

    name: Text = "return"
    solved: Text | None = None
    """A condition on an episode, such as `return >= 475`; without it the environment's own success counts."""
    target: Number | None = None
    headroom: PositiveShare = 0.5
    """Build labs: a random policy that solves at least this share of episodes makes the environment too easy."""


class LabBudget(Section):
    """The budget of one rung, over all its attempts."""

    seeds: Count = 300
    hours: Positive = 8.0
    per_seed_minutes: Positive = 5.0
    attempts: Count = 100


class LabSeeds(Section):
    """Training seeds per side of the claim, and how many claims the whole lab may make."""

    claim: Annotated[int, Field(strict=True, ge=2, le=100)] = 10
    claims: Count = 1


class LabAgent(Section):
    """How the driver starts an agent: a known client or a command, and the limits of one session."""

    command: Text = "claude"
    session_minutes: Positive = 20.0
    stall_minutes: Positive = 10.0
    backoff_seconds: NonNegative = 10.0
    """The wait after a session that fails; it doubles with each further one."""
    disk_mb: Positive = 1024.0
    """The most megabytes of a session's own folder."""
    cost_per_session: NonNegative | None = None
    """Dollars that a session counts if the client does not report its cost."""
    variables: tuple[Text, ...] = ()
    """Environment variables that the agent gets, besides those of Claude Code, Codex and the system."""
    reads: tuple[Text, ...] = ()
    writes: tuple[Text, ...] = ()
    """Files and folders outside the lab that the agent may read or write, such as its own state."""


class LabStop(Section):
    """When the driver stops by itself; a value that is missing never stops it."""

    iterations: Count | None = None
    until: Text | None = None
    max_cost: NonNegative | None = None
    no_progress: Count = 12


class Worlds(Section):
    """The training worlds: how many run in parallel, and the most steps of one episode."""

    count: Count = 8
    max_steps: Count = 500


class LabConfig(Section):
    """The content of `lab.yaml`."""

    schema_: Literal[1] = Field(1, alias="schema")
    lab: Name
    kind: LabKind = "solve"
    metric: LabMetric = LabMetric()
    worlds: Worlds = Worlds()
    ladder: Annotated[tuple[Rung, ...], Field(min_length=1)] = tuple(
        Rung(train_episodes=train, eval_episodes=evaluated) for train, evaluated in LADDER
    )
    caps: Caps = Caps()
    budget: LabBudget = LabBudget()
    seeds: LabSeeds = LabSeeds()
    agent: LabAgent = LabAgent()
    stop: LabStop = LabStop()
    climb_after: Count = 4
    """The driver climbs when so many attempts in a row did not move an accepted candidate."""

    @model_validator(mode="after")
    def _within_caps(self) -> LabConfig:
        trains = [rung.train_episodes for rung in self.ladder]
        if any(after <= before for before, after in itertools.pairwise(trains)):
            raise ValueError("the rungs of `ladder` must train more and more episodes")
        if any(rung.train_episodes > self.caps.train_episodes for rung in self.ladder):
            raise ValueError("a rung trains more episodes than `caps.train_episodes`")
        if any(rung.eval_episodes > self.caps.eval_episodes for rung in self.ladder):
            raise ValueError("a rung plays more episodes than `caps.eval_episodes`")
        if self.worlds.max_steps > self.caps.max_steps:
            raise ValueError("`worlds.max_steps` is above `caps.max_steps`")
        return self

    def steps(self, rung: Rung) -> int:
        """Return the environment steps of a training at a rung: its episodes at full length, in every world."""
        return rung.train_episodes * self.worlds.max_steps * self.worlds.count


def read(path: Path) -> LabConfig:
    """Read the rules of a lab; the error lists every problem with its line."""
    return document.read(path, LabConfig, kind=FILE_KIND)


COMMENTS = {
    "kind": "solve: evaluator/ has the environment. build: the agent builds it in candidate/env.py.",
    "metric": "The figure that decides.",
    "metric.solved": "when an episode counts as solved, e.g. return >= 475",
    "metric.target": "the driver may stop at this score",
    "metric.headroom": "build: a random policy must solve less than this share",
    "worlds": "Parallel training worlds, and the most steps of one episode.",
    "ladder": "Budget rungs. Scores of different rungs are never compared.",
    "caps": "Hard limits for every rung and candidate.",
    "budget": "The budget of one rung.",
    "seeds": "Training seeds per side of the claim; all claims of the lab share 5 % error.",
    "agent": "claude, codex, or a command that reads the brief on stdin.",
    "stop": "When the driver stops by itself.",
    "climb_after": "climb after so many attempts without a new head",
}


def dump(config: LabConfig) -> str:
    """Return the rules as YAML with comments, for a person to edit."""
    data = config.model_dump(mode="json", by_alias=True, exclude_none=True)
    return document.dump(data, comments=COMMENTS, head=f"The rules of lab {config.lab}. Edit them before the approval.")
