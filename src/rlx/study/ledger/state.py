"""The state of a study: what its ledger, read from the first row to the last, amounts to.

`replay` is pure and linear, orders by row and never by clock, and skips a row whose event id it has seen. A row that is
no legal move (see `rules`) changes nothing but `violations`, and any violation closes the door (see `gates`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import get_args

from rlx.compare.race_thresholds import RULE
from rlx.errors import Refused
from rlx.study.budget import Amount
from rlx.study.ledger.ledger import Event, Ledger
from rlx.study.ledger.lifecycle import BASELINE, DRAWN_SEEDS, SEEDS, Phase, Purpose
from rlx.study.ledger.records import Approval, Draw, Job, Outcome, Queued, Score, Standing, Violation, Weights
from rlx.study.ledger.replay import Rules

LIMITS: tuple[Outcome, ...] = ("timeout", "oom")
"""How a job ends that runs into what the contract gives it."""


@dataclass(frozen=True)
class State:
    """A study as its ledger has it; two replays of the same rows are equal."""

    rows: int
    contract: str | None
    approval: Approval | None
    rehearsal: Event | None
    candidates: Mapping[str, Standing]
    jobs: Mapping[str, Job]
    queue: Mapping[str, Queued]
    head_history: tuple[str, ...]
    incumbents: tuple[str, ...]
    decisions: tuple[Event, ...]
    evaluations: Mapping[tuple[str, Phase], Mapping[int, Score]]
    weights: Mapping[str, Mapping[int, Weights]]
    draws: tuple[Draw, ...]
    spent: Amount
    rejected_in_a_row: int
    debug_in_a_row: int
    refusals: int
    last_refusal: Event | None
    open_refusal: Event | None
    stop: str | None
    escalation: str | None
    anchor: Event | None
    violations: tuple[Violation, ...]
    latest: float = 0.0
    """The latest time of any row: it is at least as late now, whatever a clock says."""
    outside: tuple[Event, ...] = ()
    """The plain runs that were trained in the project while the study was approved."""

    @property
    def head(self) -> str:
        """The head of the search: the last candidate that advanced and was not reverted, or the baseline."""
        return self.head_history[-1]

    @property
    def incumbent(self) -> str | None:
        """The last confirmed candidate that was not reverted."""
        return next((one for one in reversed(self.incumbents) if self.candidates[one].state == "confirmed"), None)

    @property
    def open_jobs(self) -> tuple[Job, ...]:
        """The jobs whose outcome is not known."""
        return tuple(job for job in self.jobs.values() if job.is_open)

    @property
    def reserved(self) -> Amount:
        """What the open jobs may still use."""
        return sum((job.reserve for job in self.open_jobs), Amount())

    @property
    def slots(self) -> tuple[str | None, ...]:
        """The places that the seeds of open jobs have."""
        return tuple(place for job in self.open_jobs for place in job.slots)

    @property
    def claimed(self) -> frozenset[str]:
        """The candidates that a claim was begun for: a confirmation that was started, or may yet be."""
        return frozenset(
            job.candidate
            for job in self.jobs.values()
            if job.phase == "confirmation" and job.candidate != BASELINE and job.used_seeds
        )

    @property
    def claims(self) -> int:
        """How many claims were begun."""
        return len(self.claimed)

    @property
    def launched(self) -> frozenset[str]:
        """The candidates that a trial was launched for."""
        return frozenset(job.candidate for job in self.jobs.values() if job.phase == "trial" and job.used_seeds)

    def ended_jobs(self, candidate: str, phase: Phase) -> list[Job]:
        """Return the jobs of a phase that ran, are over, and count as evidence."""
        return [job for job in self.jobs_of(candidate, phase) if not job.is_open and job.counted_seeds]

    def race_lacks(self, candidate: str) -> int:
        """Return how many seeds a candidate needs for its next look; 0 or less after the last one."""
        trained = sum(len(job.counted_seeds) for job in self.jobs_of(candidate, "trial"))
        if trained < RULE.first:
            look = RULE.first
        else:
            look = RULE.last
        return look - trained

    def is_claim_decided(self, candidate: str) -> bool:
        """Whether a claim of a candidate was decided; a candidate has only one claim."""
        return any(event["candidate"] == candidate and event.get("test") == "claim" for event in self.decisions)

    def failed_trial(self, candidate: str, content: str | None) -> Job | None:
        """Return the trial in which a candidate with this content failed; None where another is worth its seeds.

        One that was lost or stopped says nothing of its candidate, nor one that ran into a limit which was amended.
        """
        standing = self.candidates.get(candidate)
        trials = self.jobs_of(candidate, "trial")
        if standing is None or standing.state != "debug" or standing.content != content or not trials:
            return None
        excused = ("lost", "cancelled", "abandoned", *(LIMITS if standing.contract != self.contract else ()))
        if trials[-1].outcome in excused:
            return None
        return trials[-1]

    def used_seeds(self, candidate: str) -> frozenset[int]:
        """Return the training seeds a candidate has used up, whatever became of them; smoke runs use none up."""
        mine = (job for job in self.jobs.values() if job.candidate == candidate and job.phase != "smoke")
        return frozenset(seed for job in mine for seed in job.used_seeds if seed not in job.again)

    def claim_of(self, candidate: str) -> Draw | None:
        """Return the episodes that were drawn for a candidate's claim, if any."""
        return next((one for one in self.draws if one.purpose == "confirm" and candidate in one.candidates), None)

    def claim_seeds(self, side: str, candidate: str) -> tuple[int, ...]:
        """Return a side's confirmation seeds of a candidate's claim: those drawn for, else those of no claim yet."""
        draw = self.claim_of(candidate)
        others = {seed for one in self.draws for seed in one.seeds.get(side, ()) if one is not draw}
        mine = dict.fromkeys(seed for job in self.jobs_of(side, "confirmation") for seed in job.counted_seeds)
        return tuple(seed for seed in mine if seed not in others and (draw is None or seed in draw.seeds[side]))

    def claim_size(self, side: str, candidate: str) -> int:
        """Return how many seeds a side of a claim has: one of the baseline's that crashed does not count."""
        if side == BASELINE:
            return self.claim_completed(side, candidate)
        return len(self.claim_seeds(side, candidate))

    def claim_completed(self, side: str, candidate: str) -> int:
        """Return how many seeds of a side of a claim completed: without one, no episodes can be drawn."""
        states = {seed: how for job in self.jobs_of(side, "confirmation") for seed, how in job.seed_states.items()}
        return sum(states.get(seed) == "completed" for seed in self.claim_seeds(side, candidate))

    def claim_lacks(self, side: str, candidate: str, wanted: int) -> int:
        """Return how many seeds a side of a claim must still train: those cut off, at least."""
        return max(0, wanted - self.claim_size(side, candidate), len(self.cut_off(side, "confirmation")))

    def cut_off(self, candidate: str, phase: Phase) -> frozenset[int]:
        """Return the seeds of a phase that were lost or stopped, and are not yet trained again."""
        cut = {seed for job in self.jobs_of(candidate, phase) if not job.is_set_aside for seed in job.again}
        return frozenset(cut - self.used_seeds(candidate))

    def scores(self, candidate: str, *phases: Phase) -> dict[int, float]:
        """Return the evaluator's scores by training seed, of these phases (none named: all but smoke)."""
        wanted = phases or tuple(phase for phase in get_args(Phase) if phase != "smoke")
        return {
            seed: score.value
            for phase in wanted
            for seed, score in self.evaluations.get((candidate, phase), {}).items()
        }

    def usable(self, candidate: str, phase: Phase) -> dict[int, float]:
        """Return the scores that a comparison can rest on, by training seed: NaN and infinity are none."""
        return {seed: value for seed, value in self.scores(candidate, phase).items() if math.isfinite(value)}

    def lacks(self, candidate: str, phase: Phase, wanted: int) -> int:
        """Return how many seeds of a yardstick must still be trained: those cut off, at least.

        Other seeds replace those that failed to train or to be measured.
        """
        vain = self.scores(candidate, phase).keys() - self.usable(candidate, phase).keys()
        states = [state for job in self.jobs_of(candidate, phase) for state in job.seed_states.items()]
        promising = sum(how == "completed" and seed not in vain for seed, how in states)
        return max(0, wanted - promising, len(self.cut_off(candidate, phase)))

    def parameters(self, candidate: str) -> int | None:
        """Return how many parameters a candidate's policies have, as the evaluator counted them; None: not known."""
        found = [score.parameters for (name, _), known in self.evaluations.items() if name == candidate
                 for score in known.values() if score.parameters is not None]  # fmt: skip
        return max(found, default=None)

    def jobs_of(self, candidate: str, *phases: Phase) -> tuple[Job, ...]:
        """Return a candidate's jobs in order, of these phases (none named: all)."""
        return tuple(
            job for job in self.jobs.values() if job.candidate == candidate and (not phases or job.phase in phases)
        )


def next_seeds(state: State, candidate: str, purpose: Purpose, count: int) -> tuple[int, ...]:
    """Return the lowest training seeds of a purpose that a candidate has not used."""
    used = state.used_seeds(candidate)
    seeds = SEEDS[purpose]
    fresh: list[int] = []
    for seed in seeds:
        if len(fresh) == count:
            break
        if seed not in used:
            fresh.append(seed)
    if len(fresh) < count:
        raise Refused(
            f"{candidate} has used all but {len(fresh)} of the {len(seeds)} {purpose} seeds",
            hint="propose another candidate: rlx next",
        )
    return tuple(fresh)


def draw_seeds(
    state: State, candidate: str, phase: Phase, count: int, *, random_below: Callable[[int], int]
) -> tuple[int, ...]:
    """Return the seeds of a phase, unknown before its launch: first those cut off, then random ones.

    `random_below(n)` returns a random number below `n`.
    """
    seeds = sorted(state.cut_off(candidate, phase))[:count]
    taken = state.used_seeds(candidate)
    while len(seeds) < count:
        seed = DRAWN_SEEDS[random_below(len(DRAWN_SEEDS))]
        if seed not in taken and seed not in seeds:
            seeds.append(seed)
    return tuple(seeds)


def replay(events: Iterable[Event]) -> State:
    """Return what the events amount to, in the order given; an event that stands there twice counts once."""
    rules = Rules()
    seen: set[str] = set()
    for event in events:
        if event.id not in seen:
            seen.add(event.id)
            rules.take(event)
    return snapshot(rules)


def objection(events: Sequence[Event], event: Event) -> str | None:
    """Return why an event cannot follow the others as a legal move; None if it can."""
    found = replay([*events, event]).violations
    if not (found and found[-1].event is event):
        return None
    return found[-1].says


def lawful(path: Path) -> Ledger:
    """Open a study's ledger; whatever would be a violation is refused before it is written."""
    return Ledger(path, law=objection)


def snapshot(rules: Rules) -> State:
    """Return the state of a study whose rows the rules have taken so far."""
    return State(
        rows=rules.row,
        contract=rules.contract,
        approval=rules.approval,
        rehearsal=rules.rehearsal,
        candidates=MappingProxyType(rules.candidates),
        jobs=MappingProxyType(rules.jobs),
        queue=MappingProxyType(rules.queue),
        head_history=tuple(rules.head_history),
        incumbents=tuple(rules.incumbents),
        decisions=tuple(rules.decisions),
        evaluations=MappingProxyType({key: MappingProxyType(scores) for key, scores in rules.evaluations.items()}),
        weights=MappingProxyType({key: MappingProxyType(hashes) for key, hashes in rules.weights.items()}),
        draws=tuple(rules.draws),
        spent=rules.spent,
        rejected_in_a_row=rules.rejected_in_a_row,
        debug_in_a_row=rules.debug_in_a_row,
        refusals=rules.refusals,
        last_refusal=rules.last_refusal,
        open_refusal=rules.open_refusal,
        stop=rules.stop,
        escalation=rules.escalation,
        anchor=rules.anchor,
        violations=tuple(rules.violations),
        outside=tuple(rules.outside),
        latest=rules.latest,
    )
