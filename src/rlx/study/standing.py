"""What the ledger says of one thing: a candidate's standing, a job, an approval, a score, a draw, a violation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rlx.study.budget import Amount
from rlx.study.ledger import Event
from rlx.study.lifecycle import BASELINE, CandidateState, Phase
from rlx.study.terms import ApprovalLevel, Level

Outcome = Literal["completed", "failed", "timeout", "killed", "oom", "lost", "cancelled", "abandoned"]
"""How a job ended; `abandoned` is an intent that never became a process."""

MOST_TOLD = 300


@dataclass(frozen=True, slots=True)
class Approval:
    """Somebody's word for one contract, byte for byte; `expires` is in seconds of the epoch."""

    contract: str
    level: ApprovalLevel
    by: str
    is_human: bool
    expires: float
    event: Event


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a candidate stands; `plan` is what was checked, under `contract`; `content` is the plan without it.

    `patch` is the hash of its change of code as it was checked; None where that was not recorded.
    """

    id: str
    kind: str
    sha256: str
    state: CandidateState = "draft"
    plan: str | None = None
    contract: str | None = None
    content: str | None = None
    patch: str | None = None
    refusal: Event | None = None
    """Why its last check was refused, where nothing was done about it since."""
    decisions: tuple[Event, ...] = ()
    taken_back: str = ""
    """Why it was reverted."""


@dataclass(frozen=True, slots=True)
class Job:
    """One launch: what it reserves while it is open, what it spent, and how it and its seeds ended."""

    id: str
    candidate: str
    phase: Phase
    seeds: tuple[int, ...]
    plan: str | None
    reserve: Amount
    run: str | None = None
    slots: tuple[str | None, ...] = (None,)
    """The places its seeds have side by side: each the GPUs of one seed, None where it uses none."""
    process: Any = None
    outcome: Outcome | None = None
    spent: Amount | None = None
    seed_states: Mapping[int, str] = field(default_factory=dict)
    again: frozenset[int] = frozenset()
    """The seeds that ended without their fault (lost, interrupted, never begun) and are to be trained again."""
    says: str = ""
    """Why seeds did not complete, in words."""
    is_set_aside: bool = False
    """Whether it trained what its candidate no longer is: it was mended since, and this is no evidence."""

    @property
    def is_open(self) -> bool:
        """Say whether no outcome is known: it runs, or somebody has to find out what became of it."""
        return self.outcome is None

    @property
    def is_yardstick(self) -> bool:
        """Say whether others are compared with its seeds: where one of these crashes, another takes its place."""
        return self.candidate == BASELINE or self.phase == "promotion"

    @property
    def told(self) -> str:
        """How it ended, in a line: its run, its outcome, and why."""
        return f"{self.run}: {self.outcome}" + (f": {self.says[:MOST_TOLD]}" if self.says else "")

    @property
    def used_seeds(self) -> tuple[int, ...]:
        """The seeds it may have trained: none where it was abandoned before it started."""
        return () if self.outcome == "abandoned" and self.process is None else self.seeds

    @property
    def counted_seeds(self) -> tuple[int, ...]:
        """The seeds that are evidence, in order, whether they completed or not."""
        return () if self.is_set_aside else tuple(seed for seed in self.used_seeds if seed not in self.again)


@dataclass(frozen=True, slots=True)
class Queued:
    """A job that waits; `claim` is the last row that took it and was not released."""

    id: str
    event: Event
    claim: Event | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """What the evaluator measured of one training seed, under one contract."""

    value: float
    level: Level
    file: str
    sha256: str
    contract: str | None
    parameters: int | None = None
    """How many the policy has; None where it is not one of rlx's own."""
    failure: str = ""
    """Why it is NaN, in words."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A checkpoint's hash, and the row of the ledger that has it."""

    sha256: str
    row: int


@dataclass(frozen=True, slots=True)
class Draw:
    """Episode seeds that came into being in a row of the ledger, for these candidates.

    `seeds` are, of a claim, the training seeds of each side that it is about: an earlier claim's are another's.
    """

    purpose: str
    first: int
    episodes: int
    candidates: tuple[str, ...]
    row: int
    seeds: Mapping[str, frozenset[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Violation:
    """A row that is no legal move: it was not applied, and it is evidence that something else wrote the ledger."""

    row: int
    event: Event
    says: str

    def __str__(self) -> str:
        return f"row {self.row} ({self.event.kind}): {self.says}"
