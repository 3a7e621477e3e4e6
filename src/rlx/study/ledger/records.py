"""What the ledger says of one thing: a candidate's standing, a job, an approval, a score, a draw, a violation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rlx.study.budget import Amount
from rlx.study.contract.contract import ApprovalLevel, Level
from rlx.study.ledger.ledger import Event
from rlx.study.ledger.lifecycle import BASELINE, CandidateState, Phase

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
    """The state of a candidate; `plan` was checked under `contract`, and `content` is the plan without the contract.

    `patch` is the hash of the checked code change; None if it was not recorded.
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
    """The refusal of its last check, until something is done about it."""
    decisions: tuple[Event, ...] = ()
    taken_back: str = ""
    """Why it was reverted or withdrawn."""

    @property
    def check_refusals(self) -> tuple[Mapping[str, Any], ...]:
        """The open refusals of its last check, without UNCHANGED."""
        reasons: Sequence[Mapping[str, Any]] = ()
        if self.refusal:
            reasons = self.refusal["reasons"]
        return tuple(reason for reason in reasons if reason.get("code") != "UNCHANGED")


@dataclass(frozen=True, slots=True)
class Job:
    """One launch: its reservation while it is open, its cost, and the outcome of it and its seeds."""

    id: str
    candidate: str
    phase: Phase
    seeds: tuple[int, ...]
    plan: str | None
    reserve: Amount
    run: str | None = None
    slots: tuple[str | None, ...] = (None,)
    """The slots of its parallel seeds: each names the GPUs of one seed, or None."""
    process: Any = None
    outcome: Outcome | None = None
    spent: Amount | None = None
    seed_states: Mapping[int, str] = field(default_factory=dict)
    again: frozenset[int] = frozenset()
    """The seeds that were lost, interrupted or never started, and will be trained again."""
    says: str = ""
    """Why seeds did not complete, in words."""
    is_set_aside: bool = False
    """Whether its candidate was changed afterwards, so that this job is not evidence."""

    @property
    def is_open(self) -> bool:
        """Whether its outcome is not known yet: it runs, or `reconcile` has to close it."""
        return self.outcome is None

    @property
    def is_yardstick(self) -> bool:
        """Whether candidates are compared with its seeds; a crashed one is then replaced by another seed."""
        return self.candidate == BASELINE or self.phase == "promotion"

    @property
    def summary(self) -> str:
        """Its run, its outcome, and why, in one line."""
        why = ""
        if self.says:
            why = f": {self.says[:MOST_TOLD]}"
        return f"{self.run}: {self.outcome}{why}"

    @property
    def used_seeds(self) -> tuple[int, ...]:
        """The seeds that it may have trained; none if it was abandoned before it started."""
        if self.outcome == "abandoned" and self.process is None:
            return ()
        return self.seeds

    @property
    def counted_seeds(self) -> tuple[int, ...]:
        """The seeds that are evidence, in order, whether they completed or not."""
        if self.is_set_aside:
            return ()
        return tuple(seed for seed in self.used_seeds if seed not in self.again)


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
    """The number of parameters of the policy; None if it is not an rlx policy."""
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
    """A row that is not a legal move: it was not applied, and it shows that another program wrote the ledger."""

    row: int
    event: Event
    says: str

    def __str__(self) -> str:
        return f"row {self.row} ({self.event.kind}): {self.says}"
