"""The situation of a study: its ledger, its contract, and the facts outside the ledger; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from rlx.command import Command, rlx
from rlx.compare.race_thresholds import RULE
from rlx.study.budget import Amount
from rlx.study.contract.contract import Contract
from rlx.study.ledger.lifecycle import BASELINE, CandidateState, Phase
from rlx.study.ledger.records import Job, Standing
from rlx.study.ledger.state import State
from rlx.study.refusal import Refusal
from rlx.study.stop_rules import StopRule, holding_rule, passed_deadline

CEILING_GAP = 0.01
"""How close to the best possible rate a head's mean score leaves nothing to gain."""
UNDECIDED: frozenset[CandidateState] = frozenset(
    {"draft", "validated", "launched", "completed", "inconclusive", "debug"}
)


@dataclass(frozen=True)
class CandidateFacts:
    """A candidate as it is on disk now. `content` is the hash of its change, `plan` that of what would run."""

    plan: str | None = None
    content: str | None = None
    problems: tuple[Refusal, ...] = ()
    breaches: tuple[str, ...] = ()
    """The parts of its change that are outside the scope."""
    altered_files: tuple[str, ...] = ()
    """Its stored files that differ from what the ledger recorded."""
    changes_code: bool = True
    worktree: str = ""
    """The folder in which its code is edited, relative to the project; empty if there is none."""


@dataclass(frozen=True)
class MachineFacts:
    """For how many seeds of the contract's hardware this machine has room, and its free disk."""

    core_places: float = math.inf
    gpu_places: float = math.inf
    memory_places: float = math.inf
    free_disk_gb: float = math.inf


@dataclass(frozen=True)
class Facts:
    """The facts outside the ledger now. The caller of the rulebook gathers them."""

    now: float
    contract_sha256: str
    contract_problems: tuple[Refusal, ...] = ()
    task_problems: tuple[str, ...] = ()
    is_other_task: bool = False
    """Whether the task changed since the contract was settled."""
    approval_problems: tuple[str, ...] = ()
    sandbox_problems: tuple[str, ...] = ()
    machine: MachineFacts = MachineFacts()
    candidates: Mapping[str, CandidateFacts] = field(default_factory=dict)
    is_reported: bool = False
    """Whether the report covers the whole ledger."""
    take_over: Command | None = None
    """The command that applies the confirmed change to the repository, until somebody has typed it."""

    def of(self, candidate: str) -> CandidateFacts:
        """Return the facts about a candidate's files."""
        return self.candidates.get(candidate, _UNKNOWN)


_UNKNOWN = CandidateFacts()


def pool_size(contract: Contract) -> int:
    """Return how many seeds the baseline's pool has: as many as one side of the claim, and enough for a race."""
    claim = contract.metric.seeds if contract.metric else 0
    return max(claim, RULE.head)


def head_phase(head: str) -> Phase:
    """Return the phase whose seeds stand for a head. Those that a candidate won with are biased upwards."""
    return "baseline" if head == BASELINE else "promotion"


def race_opponent(state: State, candidate: str) -> str:
    """Return what a candidate is raced against: the head, or if it is the head itself, the one before."""
    others = [head for head in state.head_history if head != candidate]
    return others[-1] if state.head == candidate else state.head


def explain_failure(trial: Job) -> Command:
    """Return the command that shows why a trial failed: the verdict on its policies, or its log."""
    if trial.outcome == "completed":
        return rlx("verdict", trial.candidate)
    return rlx("logs", str(trial.run))


@dataclass(frozen=True)
class Situation:
    """A study's ledger, contract and facts, and the figures that its next move depends on."""

    state: State
    contract: Contract
    facts: Facts

    @cached_property
    def left(self) -> Amount:
        """The part of the budget that is neither spent nor reserved."""
        budget = self.contract.budget
        if budget is None:
            return Amount()
        used = self.state.spent + self.state.reserved
        return Amount(max(0, budget.seeds - used.seeds), max(0.0, budget.hours * 3600 - used.seconds))

    @cached_property
    def seeds_left(self) -> int:
        """How many further seeds the budget pays for: each reserves the longest time that it may take."""
        if self.contract.budget is None:
            return 0
        by_time = math.floor(self.left.seconds / (self.contract.budget.per_seed_minutes * 60) + 1e-9)
        return min(self.left.seeds, by_time)

    @property
    def claim_seeds(self) -> int:
        """The seeds of both sides of a claim."""
        return 2 * self.contract.metric.seeds if self.contract.metric else 0

    @property
    def spare_seeds(self) -> int:
        """The seeds that the search may use: those of the claim are kept."""
        return self.seeds_left - self.claim_seeds

    @property
    def candidates_left(self) -> int:
        """How many further candidates the contract allows to be tried."""
        allowed = self.contract.budget.candidates if self.contract.budget else 0
        return max(0, allowed - len(self.state.launched))

    @property
    def fresh_scores(self) -> dict[int, float]:
        """The scores of the head that a candidate is raced against, by seed."""
        return self.state.usable(self.state.head, head_phase(self.state.head))

    @property
    def affords_trial(self) -> bool:
        """Whether the budget pays for a trial, the head's fresh seeds after it, and the claim."""
        return self.candidates_left > 0 and self.spare_seeds >= RULE.first + RULE.head

    @property
    def can_search(self) -> bool:
        """Whether a further improvement could still be claimed."""
        return self.contract.metric is None or len(self.state.claimed) < self.contract.metric.claims

    def may_race(self, standing: Standing) -> bool:
        """Whether a trial of a candidate is within the budget, and its result could be claimed."""
        is_counted = standing.id in self.state.launched or self.candidates_left > 0
        return self.can_search and is_counted and self.spare_seeds >= RULE.first

    @property
    def has_rivals(self) -> bool:
        """Whether anything may still be raced against the head."""
        tried = (self.state.candidates[name] for name in self.state.launched)
        return self.can_search and (self.candidates_left > 0 or any(standing.state in UNDECIDED for standing in tried))

    @property
    def racers(self) -> tuple[str, ...]:
        """The candidates that wait for their trial, or are in it, without the head: only they race against the head."""
        racing = ("validated", "launched", "completed", "inconclusive")
        others = (standing for standing in self.state.candidates.values() if standing.id != self.state.head)
        return tuple(
            standing.id
            for standing in others
            if standing.state in racing and (standing.id in self.state.launched or self.may_race(standing))
        )

    @property
    def ceiling(self) -> float | None:
        """The best possible score; known only for a rate."""
        metric = self.contract.metric
        if metric is None or not metric.name.endswith("rate"):
            return None
        return float(metric.direction == "maximize")

    @property
    def is_at_ceiling(self) -> bool:
        """Whether the head leaves nothing to gain: its mean score is the best possible one, within what counts."""
        head, metric = self.state.head, self.contract.metric
        scores = list(self.state.usable(head, "promotion").values()) or list(self.state.usable(head, "trial").values())
        if self.ceiling is None or metric is None or head == BASELINE or len(scores) < RULE.last:
            return False
        return abs(self.ceiling - sum(scores) / len(scores)) <= max(metric.min_effect, CEILING_GAP)

    @property
    def may_claim(self) -> bool:
        """Whether the head may be claimed against the original baseline."""
        head, metric = self.state.head, self.contract.metric
        if head == BASELINE or metric is None or self.state.is_claim_decided(head):
            return False
        is_allowed = len(self.state.claimed - {head}) < metric.claims
        return is_allowed and self.state.candidates[head].state != "confirmed"

    def claim_lacks(self, side: str, candidate: str) -> int:
        """Return how many seeds a side of a candidate's claim must still train."""
        wanted = self.contract.metric.seeds if self.contract.metric else 0
        return self.state.claim_lacks(side, candidate, wanted)

    def is_claim_ready(self, candidate: str) -> bool:
        """Whether a claim's episodes may be drawn, which ends its training: both sides have all seeds they can get."""
        if self.state.claim_of(candidate) is not None:
            return True
        sides = (BASELINE, candidate)
        is_training = any(job.phase == "confirmation" for job in self.state.open_jobs)
        if is_training or not all(self.state.claim_completed(side, candidate) for side in sides):
            return False
        lacking = sum(self.claim_lacks(side, candidate) for side in sides)
        return lacking == 0 or lacking > self.seeds_left

    def is_busy(self, candidate: str) -> bool:
        """Whether a job of a candidate has not ended."""
        return any(job.candidate == candidate for job in self.state.open_jobs)

    def is_checked(self, standing: Standing) -> bool:
        """Whether a candidate was checked as it is now, under the contract as it is now."""
        facts = self.facts.of(standing.id)
        is_same = standing.contract == self.state.contract and standing.content in (None, facts.content)
        return standing.state == "validated" and is_same and standing.plan == facts.plan

    @cached_property
    def stop_rule(self) -> StopRule | None:
        """The stop rule that ended the search, if one holds."""
        return holding_rule(self.state, self.contract)

    @property
    def deadline(self) -> str:
        """The time after which no job starts, if it is over."""
        return passed_deadline(self.state, self.contract, now=self.now)

    @property
    def now(self) -> float:
        """The time, which never runs backwards in a ledger: a clock that was set back revives no approval."""
        return max(self.facts.now, self.state.latest)

    @property
    def halted(self) -> str:
        """Why nothing goes on until a person says so; empty if the study is not halted."""
        return self.state.stop or self.state.escalation or ""

    @property
    def is_rehearsed(self) -> bool:
        """Whether the last rehearsal was of this contract and went well."""
        rehearsal = self.state.rehearsal
        return rehearsal is not None and rehearsal["contract"] == self.state.contract and bool(rehearsal["ok"])

    @property
    def is_rehearsal_failed(self) -> bool:
        """Whether the last rehearsal was of this contract and failed."""
        rehearsal = self.state.rehearsal
        return rehearsal is not None and rehearsal["contract"] == self.state.contract and not rehearsal["ok"]

    @property
    def rehearsal_fix(self) -> Command | None:
        """The command that comes before another rehearsal: the fix of the failed step, else what shows its log."""
        rehearsal = self.state.rehearsal
        if not self.is_rehearsal_failed or rehearsal is None:
            return None
        argv = tuple(rehearsal.get("fix") or ())
        return Command(argv) if argv else None
