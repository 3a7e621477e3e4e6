"""Replay of a ledger: the effect of each row on a study, and why a row is not a legal move; `state` has the result.

- A rule first reads, then judges, then changes: a refused row has no effect.
- The moves of jobs follow from their rows, so no crash can come between: a trial's `started` makes its candidate
  launched. The `ended` of its last open trial makes it completed (if one completed) or debug (if none did).
- `decided` makes the move that it names, and moves the head and the incumbent. A claim that is not shown is decided
  inconclusive and leaves an advanced candidate as it is. `moved` rows are for validated, draft, debug, reverted
  and withdrawn; a candidate with a trial is never withdrawn.
- The baseline and the rehearsal have no candidate state; their jobs count like any other. Smoke runs use seconds and
  no seeds.
- A lost or stopped seed is free once more, and the same seed is trained again. A seed that others are compared with
  (the baseline's, a head's fresh seeds) is freed as often as needed, because another seed would replace it. If training
  is not reproducible, retraining is another draw. So a claim's seed that was stopped midway needs a person first.
- What a candidate trained before it was changed (checked with another plan) is set aside.
- Every claim uses confirmation seeds that no earlier claim used.

Not covered: whether scores are right (`study verify` recomputes them), whether a signature is valid, whether an
approval has expired, and the limits of the contract, whose text is not in the ledger (`study/moves.py` checks those).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import get_args

from rlx import files
from rlx.study.budget import Amount
from rlx.study.contract.contract import APPROVAL_LEVELS, Level
from rlx.study.ledger.ledger import Event
from rlx.study.ledger.lifecycle import (
    BASELINE,
    DECISIONS,
    LAUNCHES,
    NULL_LAUNCHES,
    SEEDS,
    CandidateState,
    Phase,
    may_move,
    seeds_for,
)
from rlx.study.ledger.records import Approval, Draw, Job, Outcome, Queued, Score, Standing, Violation, Weights

BLAMELESS = frozenset({"lost", "interrupted", "prepared", "running"})
"""Seed states that are not the seed's fault: the machine failed, or a person stopped it."""
_DEEDS = frozenset({"amended", "approved", "proposed", "moved", "intent", "decided"})
"""The events that answer an open refusal."""
PATIENCE = 3
"""How often a seed that must not be replaced may be started and cut off before a person has to look."""
MOST_SAID = 500
PINNED = (
    "the baseline stays as it was pinned: it goes on where a limit or the machine was at fault, else in a new study"
)
DRIVER_STEPS = ("began", "resumed", "ended")
STUDY_DECISIONS = ("continue", "stop", "rollback", "narrow", "escalate")
_MOVED_TO = ("draft", "validated", "debug", "reverted", "withdrawn")
"""The states that a `moved` row may lead to; a decision or a job leads to the others."""
_CANDIDATE = re.compile(r"c\d{3,}")


class _Illegal(Exception):
    """The reason why a row is not a legal move."""


class Rules:
    """The study so far, while its ledger is read."""

    def __init__(self) -> None:
        self.row = 0
        self.latest = 0.0
        self.contract: str | None = None
        self.approval: Approval | None = None
        self.rehearsal: Event | None = None
        self.candidates: dict[str, Standing] = {}
        self.jobs: dict[str, Job] = {}
        self.queue: dict[str, Queued] = {}
        self.heads = [BASELINE]
        self.head_history = [BASELINE]
        self.incumbents: list[str] = []
        self.decisions: list[Event] = []
        self.evaluations: dict[tuple[str, Phase], dict[int, Score]] = defaultdict(dict)
        self.weights: dict[str, dict[int, Weights]] = defaultdict(dict)
        self.draws: list[Draw] = []
        self.spent = Amount()
        self.rejected_in_a_row = self.debug_in_a_row = self.refusals = 0
        self.last_refusal: Event | None = None
        self.open_refusal: Event | None = None
        self.stop: str | None = None
        self.escalation: str | None = None
        self.anchor: Event | None = None
        self.outside: list[Event] = []
        self.violations: list[Violation] = []
        self._hashes: set[str] = set()
        self._nonces: set[str] = set()
        self._used: dict[str, set[int]] = defaultdict(set)
        self._cut_off: dict[str, Counter[int]] = defaultdict(Counter)
        self._claimed: dict[str, set[int]] = defaultdict(set)
        self._runs: dict[tuple[str, str], set[int]] = defaultdict(set)
        self._phase_seeds: dict[tuple[str, Phase], set[int]] = defaultdict(set)
        self._completed: dict[tuple[str, Phase], set[int]] = defaultdict(set)
        self._open: dict[tuple[str, Phase], int] = defaultdict(int)
        self._confirm_draws: dict[str, Draw] = {}
        self._wave: dict[str, bool] = {}

    def take(self, event: Event) -> None:
        """Apply one row, or note why it cannot be one."""
        self.row += 1
        try:
            rule = _RULES.get(event.kind)
            if rule is None:
                raise _Illegal("there is no such event")
            if self.contract is None and event.kind != "created":
                raise _Illegal("the study was not created yet")
            rule(self, event)
            self.latest = max(self.latest, event.time)
            self.open_refusal = None if event.kind in _DEEDS else self.open_refusal
        except _Illegal as error:
            self.violations.append(Violation(self.row, event, str(error)))
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            self.violations.append(
                Violation(self.row, event, f"the row is malformed ({type(error).__name__}: {error})")
            )
        self._hashes.add(event.hash)

    def created(self, event: Event) -> None:
        _require(self.contract is None, "a study is created once")
        self.contract = _text(event, "contract")

    def amended(self, event: Event) -> None:
        self.contract = _text(event, "contract")

    def rehearsed(self, event: Event) -> None:
        _text(event, "contract")
        _require(isinstance(event["ok"], bool), "a rehearsal went well or not")
        self.rehearsal = event

    def approved(self, event: Event) -> None:
        level = event["level"]
        nonce = event.get("nonce")
        is_human = event["human"]
        expires = files.number(event["expires"])
        approval = Approval(_text(event, "contract"), level, _text(event, "by"), is_human, expires, event)
        _require(level in APPROVAL_LEVELS, f"there is no approval level `{level}`")
        _require(not (is_human and level == "asserted"), "an asserted approval cannot be called human")
        _require(nonce is None or nonce not in self._nonces, "the approval was used before")
        if nonce is not None:
            self._nonces.add(nonce)
        self.approval = approval
        if event.get("goes_on"):
            self.stop = self.escalation = None
            self.rejected_in_a_row = self.debug_in_a_row = 0

    def proposed(self, event: Event) -> None:
        name = _text(event, "candidate")
        _require(_CANDIDATE.fullmatch(name) is not None, f"`{name}` cannot be proposed")
        before = self.candidates.get(name)
        is_revisable = before is None or before.state in ("draft", "validated", "debug")
        _require(is_revisable, f"{name} is {before.state if before else ''} and cannot be proposed again")
        _require(not self._open[name, "trial"], f"{name} has a trial that has not ended")
        made = Standing(name, _text(event, "kind"), _text(event, "sha256"))
        self._set_aside(name)
        self.candidates[name] = replace(made, decisions=before.decisions) if before else made

    def moved(self, event: Event) -> None:
        standing = self._standing(event)
        after = event["after"]
        _require(event["before"] == standing.state, f"{standing.id} is {standing.state}, not {event['before']}")
        _require(may_move(standing.state, after), f"{standing.id} cannot go from {standing.state} to {after}")
        _require(after in _MOVED_TO, f"only {_who(after)} makes a candidate {after}")
        _require(not self._open[standing.id, "trial"], f"{standing.id} has a trial that has not ended")
        if after == "withdrawn":
            has_trial = any(job.candidate == standing.id and job.phase == "trial" for job in self.jobs.values())
            _require(not has_trial, f"{standing.id} has been tried and cannot be withdrawn")
        if after == "validated":
            plan = _text(event, "plan")
            content = event.get("content")
            patch = event.get("patch")
            if standing.plan not in (None, plan):
                self._set_aside(standing.id)
            standing = replace(standing, plan=plan, contract=self.contract, content=content, patch=patch)
        if after in ("reverted", "withdrawn"):
            standing = replace(standing, taken_back=str(event.get("why", "")))
        self._move(standing, after)

    def _set_aside(self, name: str) -> None:
        """Set earlier trials of a changed candidate aside: they are not evidence for its new form."""
        for job in [one for one in self.jobs.values() if (one.candidate, one.phase) == (name, "trial")]:
            self.jobs[job.id] = replace(job, is_set_aside=True)
        self.evaluations.pop((name, "trial"), None)

    def refused(self, event: Event) -> None:
        _require(isinstance(event["reasons"], list), "a refusal has its reasons")
        self.refusals += 1
        self.last_refusal = self.open_refusal = event
        standing = self.candidates.get(str(event.get("candidate")))
        if standing is not None and event.get("action") == "check":
            self.candidates[standing.id] = replace(standing, refusal=event)

    def noted(self, event: Event) -> None:
        """A note about a candidate, such as its idea or its lesson; it changes nothing."""
        self._standing(event)
        _require(isinstance(event["note"], dict), "a note is a mapping")

    def driven(self, event: Event) -> None:
        """A lab's driver began, went on or ended; it changes nothing."""
        _require(event["what"] in DRIVER_STEPS, f"a driver cannot `{event['what']}`")

    def intent(self, event: Event) -> None:
        job = _job(event)
        _require(job.id not in self.jobs, f"the job {job.id} was launched before")
        _require(self.stop is None, "the study is stopped")
        self._permit(job)
        standing = self.candidates.get(job.candidate)
        if standing is not None and standing.contract != self.contract:
            self.candidates[standing.id] = replace(standing, plan=job.plan, contract=self.contract)
        self.jobs[job.id] = job
        self.queue.pop(job.id, None)
        key = (job.candidate, job.phase)
        self._open[key] += 1
        self._phase_seeds[key].update(job.seeds)
        if job.phase != "smoke":
            self._used[job.candidate].update(job.seeds)
        if job.run:
            self._runs[job.candidate, job.run].update(job.seeds)

    def _permit(self, job: Job) -> None:
        """Judge what the rows alone show: approval, phase, plan, seeds; `study/moves.py` checks the contract."""
        is_null = job.candidate in NULL_LAUNCHES
        standing = self.candidates.get(job.candidate)
        is_approved = self.approval is not None and self.approval.contract == self.contract
        _require(is_approved or (is_null and job.phase == "smoke"), "no approval of the contract stands")
        if standing is None:
            _require(job.phase in NULL_LAUNCHES.get(job.candidate, ()), f"{job.candidate} has no {job.phase} jobs")
        else:
            _require(standing.state in LAUNCHES[job.phase], f"{job.candidate} is {standing.state}: no {job.phase}")
            is_same = standing.contract == self.contract
            _require(is_same or standing.state != "validated", "the candidate was checked under another contract")
            _require(job.plan is not None, "the job names no plan")
            _require(not is_same or job.plan == standing.plan, "the plan is not the one that was checked")
        if job.phase in ("promotion", "confirmation") and standing is not None:
            _require(job.candidate == self.head_history[-1], f"{job.candidate} is not the head")
        _require(all(seed in seeds_for(job.phase) for seed in job.seeds), f"a seed is not one for {job.phase}")
        is_fresh = job.phase == "smoke" or self._used[job.candidate].isdisjoint(job.seeds)
        _require(is_fresh, f"a seed was used by {job.candidate} before")

    def started(self, event: Event) -> None:
        job = self._open_job(event)
        run = _text(event, "run")
        process = event["process"]
        _require(job.process is None, f"the job {job.id} was started before")
        _require(process is not None, "a started job has a process")
        self.jobs[job.id] = replace(job, run=run, process=process)
        self._runs[job.candidate, run].update(job.seeds)
        self._launch(job)

    def ended(self, event: Event) -> None:
        job = self._open_job(event)
        outcome = event["outcome"]
        spent = Amount.read(event["spent"])
        states = {int(seed): str(how) for seed, how in (event.get("seeds") or {}).items()}
        _require(outcome in get_args(Outcome), f"a job cannot end as `{outcome}`")
        completed = {seed for seed, how in states.items() if how == "completed"}
        _require(completed <= set(job.seeds), f"the job {job.id} had no such seed")
        is_paid = job.phase == "smoke" or spent.seeds >= len(completed)
        _require(is_paid, "fewer seeds are accounted for than were completed")
        if job.phase == "smoke":
            spent = Amount(0, spent.seconds)
        again = self._once_more(job, states)
        ended = replace(
            job, outcome=outcome, spent=spent, seed_states=MappingProxyType(states), again=again,
            says=str(event.get("says", "")),
        )  # fmt: skip
        self.jobs[job.id] = ended
        self.spent += spent
        key = (job.candidate, job.phase)
        self._open[key] -= 1
        self._completed[key] |= completed
        if outcome == "abandoned" and job.process is None:
            if job.phase != "smoke":
                self._used[job.candidate].difference_update(job.seeds)
                self._phase_seeds[key].difference_update(job.seeds)
        else:
            self._launch(job)
        self._finish(ended)
        self._tire(ended)
        self._despair(ended)

    def _once_more(self, job: Job, states: Mapping[int, str]) -> frozenset[int]:
        """Free the seeds that were cut off; the same seeds are trained again, so stopping one gains nothing.

        A candidate's seed is freed once; the second time it is used up and counts as crashed. A baseline's or head's
        seed is always freed: a crashed one is replaced, so stopping it would be a way to choose seeds.
        """
        if job.phase == "smoke":
            return frozenset()
        known = self._cut_off[job.candidate]
        unsaid = "lost" if job.is_yardstick else ""
        again = frozenset(seed for seed in job.seeds if states.get(seed, unsaid) in BLAMELESS)
        if not job.is_yardstick:
            again = again - known.keys()
        known.update({seed: states.get(seed) != "prepared" for seed in again})
        self._used[job.candidate] -= again
        for seed in again:
            self.weights[job.candidate].pop(seed, None)
        self._phase_seeds[job.candidate, job.phase] -= again
        return again

    def _launch(self, job: Job) -> None:
        """Make the candidate of a trial launched when the trial starts, or ends before its start was recorded."""
        standing = self.candidates.get(job.candidate)
        if standing is not None and job.phase == "trial" and standing.state != "launched":
            self._move(standing, "launched")
            self._wave[standing.id] = False

    def _finish(self, job: Job) -> None:
        """Make a candidate completed at the end of its last open trial, or debug if no trial completed."""
        standing = self.candidates.get(job.candidate)
        if standing is None or standing.state != "launched" or job.phase != "trial":
            return
        self._wave[standing.id] |= job.outcome == "completed"
        if not self._open[standing.id, "trial"]:
            self._move(standing, "completed" if self._wave[standing.id] else "debug")

    def _despair(self, job: Job) -> None:
        """Ask for a person if a round of the baseline or the head has no score: the next one would end the same way.

        A trial without a score is for its candidate to fix. Seeds that were cut off are trained again first.
        """
        if job.is_open or job.phase in ("smoke", "trial") or not job.used_seeds or job.again:
            return
        known = self.evaluations.get((job.candidate, job.phase), {})
        scores = [known.get(seed) for seed in job.seeds if job.seed_states.get(seed) == "completed"]
        if any(score is None or math.isfinite(score.value) for score in scores):
            return
        failures = dict.fromkeys(score.failure for score in scores if score is not None and score.failure)
        why = "; ".join(filter(None, (job.says, *failures))) or str(job.outcome)
        log = ""
        if not scores:
            log = f"; see rlx logs {job.run}"
        told = f"no seed of {job.run} ({job.candidate}, {job.phase}) has a score: {why[:MOST_SAID]}{log}"
        self.escalation = f"{told}; {PINNED}" if job.candidate == BASELINE else told

    def _tire(self, job: Job) -> None:
        """Ask for a person if a seed is cut off repeatedly, or a claim's seed was stopped: each is another try."""
        begun = [seed for seed in sorted(job.again) if job.seed_states.get(seed) != "prepared"]
        if job.phase == "confirmation" and job.outcome == "cancelled":
            cut = begun
            told = "stopped under way: to train a seed of a claim again is a second try"
        else:
            cut = [seed for seed in begun if job.is_yardstick and self._cut_off[job.candidate][seed] >= PATIENCE]
            told = f"lost or stopped {PATIENCE} times"
        if cut:
            which = f"seed{'s'[: len(cut) > 1]} {', '.join(map(str, cut))} of {job.candidate} ({job.phase})"
            why = ""
            if job.says:
                why = f": {job.says[:MOST_SAID]}"
            self.escalation = f"{which} {told}{why}; see rlx logs {job.run}"

    def weights_recorded(self, event: Event) -> None:
        name = _text(event, "candidate")
        run = _text(event, "run")
        hashes = {int(seed): sha for seed, sha in event["checkpoints"].items()}
        _require(hashes.keys() <= self._runs[name, run], f"{run} is not a run of {name} with these seeds")
        known = self.weights.get(name, {})
        is_same = all(seed not in known or known[seed].sha256 == sha for seed, sha in hashes.items())
        _require(is_same, "a checkpoint is not the one that was recorded before")
        for seed, sha in hashes.items():
            self.weights[name].setdefault(seed, Weights(sha, self.row))

    def drawn(self, event: Event) -> None:
        names = tuple(event["candidates"])
        purpose = _text(event, "purpose")
        is_claim = purpose == "confirm"
        seeds = {}
        if is_claim:
            seeds = {name: self._unclaimed(name) for name in names}
        draw = Draw(purpose, int(event["first"]), int(event["episodes"]), names, self.row, MappingProxyType(seeds))
        _require(purpose in SEEDS and bool(names), f"`{purpose}` is drawn for {len(names)} candidates")
        for name in names if is_claim else ():
            self._permit_draw(name)
        self.draws.append(draw)
        for name in names if is_claim else ():
            self._confirm_draws[name] = draw
            self._claimed[name] |= seeds[name]

    def _unclaimed(self, name: str) -> frozenset[int]:
        """Return the confirmation seeds of a side that no earlier claim was about."""
        return frozenset(self._phase_seeds[name, "confirmation"] - self._claimed[name])

    def _permit_draw(self, name: str) -> None:
        """Confirmation episodes are drawn once per candidate, after all checkpoints that they measure are recorded."""
        key: tuple[str, Phase] = (name, "confirmation")
        weights = self.weights.get(name, {})
        trained = self._completed[key] & self._unclaimed(name)
        _require(not self._open[key], f"{name} has a confirmation that has not ended")
        _require(bool(trained) and trained <= weights.keys(), f"{name}: drawn before every checkpoint was recorded")
        _require(name == BASELINE or name not in self._confirm_draws, f"{name}: episodes were drawn before")

    def evaluated(self, event: Event) -> None:
        name = _text(event, "candidate")
        phase = event["phase"]
        seed = int(event["seed"])
        level = event["level"]
        value = files.number(event["score"])
        parameters = event.get("parameters")
        failure = str(event.get("failure", ""))
        score = Score(value, level, _text(event, "file"), _text(event, "sha256"), self.contract, parameters, failure)
        _require(parameters is None or type(parameters) is int, "parameters are counted")
        _require(level in get_args(Level), f"there is no level `{level}`")
        _require(seed in self._phase_seeds[name, phase], f"{name} trained no seed {seed} in the phase {phase}")
        if phase == "confirmation":
            draw = self._confirm_draws.get(name)
            weights = self.weights.get(name, {}).get(seed)
            is_late = draw is None or weights is None or weights.row > draw.row or seed not in draw.seeds[name]
            _require(not is_late, "episodes were drawn before the checkpoint was recorded, or not at all")
        known = self.evaluations.get((name, phase), {}).get(seed)
        is_first = known is None or known.sha256 == score.sha256 or known.contract != self.contract
        _require(is_first, f"{name} seed {seed} has another score already")
        self.evaluations[name, phase][seed] = score
        for job in self.jobs.values() if not math.isfinite(value) else ():
            if (job.candidate, job.phase) == (name, phase) and seed in job.seeds:
                self._despair(job)

    def decided(self, event: Event) -> None:
        standing = self._standing(event)
        decision = event["decision"]
        study = event.get("study", "continue")
        _require(decision in DECISIONS, f"`{decision}` is not a decision")
        _require(study in STUDY_DECISIONS, f"a study cannot `{study}`")
        is_open_claim = (standing.state, decision) == (
            "advanced",
            "inconclusive",
        ) and standing.id in self._confirm_draws
        may = is_open_claim or may_move(standing.state, decision)
        _require(may, f"{standing.id} cannot go from {standing.state} to {decision}")
        if decision == "advanced":
            _require(bool(self.evaluations.get((standing.id, "trial"))), f"{standing.id} has no scores")
        if decision == "confirmed":
            self._permit_claim(standing, event)
        self.decisions.append(event)
        self._count(decision)
        self._move(
            replace(standing, decisions=(*standing.decisions, event)), standing.state if is_open_claim else decision
        )
        says = str(event.get("says", ""))
        self.stop = says or "decided" if study == "stop" else self.stop
        self.escalation = says or "decided" if study == "escalate" else self.escalation

    def _count(self, decision: CandidateState) -> None:
        if decision == "rejected":
            self.rejected_in_a_row += 1
        elif decision in ("advanced", "confirmed"):
            self.rejected_in_a_row = 0

    def _permit_claim(self, standing: Standing, event: Event) -> None:
        """Require that the head was measured against the baseline on episodes that were drawn for both."""
        _require(standing.id == self.head_history[-1], f"{standing.id} is not the head")
        _require(not event.get("provisional"), "a provisional decision confirms nothing")
        draw = self._confirm_draws.get(standing.id)
        _require(draw is not None and BASELINE in draw.candidates, "no episodes were drawn for it and the baseline")
        assert draw is not None
        for name in (standing.id, BASELINE):
            known = self.evaluations.get((name, "confirmation"), {})
            scores = [score for seed, score in known.items() if seed in draw.seeds[name]]
            _require(bool(scores), f"{name} has no confirmation scores")
            _require(all(score.level != "reported" for score in scores), f"{name}'s scores are only reported")

    def queued(self, event: Event) -> None:
        job = _text(event, "job")
        _require(job not in self.queue and job not in self.jobs, f"the job {job} was queued before")
        self.queue[job] = Queued(job, event)

    def claimed(self, event: Event) -> None:
        job = _text(event, "job")
        _require(job in self.queue or job in self.jobs, f"there is no job {job}")
        if job in self.queue:
            self.queue[job] = replace(self.queue[job], claim=event)

    def released(self, event: Event) -> None:
        job = _text(event, "job")
        _require(job in self.queue or job in self.jobs, f"there is no job {job}")
        if job in self.queue:
            self.queue[job] = replace(self.queue[job], claim=None)

    def dropped(self, event: Event) -> None:
        job = _text(event, "job")
        _require(job in self.queue, f"the job {job} does not wait")
        del self.queue[job]

    def stopped(self, event: Event) -> None:
        self.stop = _text(event, "rule")

    def escalated(self, event: Event) -> None:
        self.escalation = _text(event, "why")

    def anchored(self, event: Event) -> None:
        _require(event["head"] in self._hashes, "the anchored head is not a row of this ledger")
        self.anchor = event

    def outside_training(self, event: Event) -> None:
        _text(event, "run")
        _require(all(type(event[name]) is int for name in ("seeds", "steps")), "seeds and steps are counted")
        self.outside.append(event)

    def _standing(self, event: Event) -> Standing:
        name = _text(event, "candidate")
        _require(name in self.candidates, f"there is no candidate {name}")
        return self.candidates[name]

    def _open_job(self, event: Event) -> Job:
        job = self.jobs.get(_text(event, "job"))
        if job is None or not job.is_open:
            raise _Illegal(f"the job {event['job']} was {'never launched' if job is None else 'ended before'}")
        return job

    def _move(self, standing: Standing, after: CandidateState) -> None:
        before = standing.state
        self.candidates[standing.id] = replace(standing, state=after, refusal=None)
        if after == "debug":
            self.debug_in_a_row += 1
        elif after in DECISIONS:
            self.debug_in_a_row = 0
        if after == "advanced" != before:
            self.heads.append(standing.id)
        if after == "confirmed":
            self.incumbents.append(standing.id)
        while self.heads[-1] != BASELINE and self.candidates[self.heads[-1]].state not in ("advanced", "confirmed"):
            self.heads.pop()
        if self.heads[-1] != self.head_history[-1]:
            self.head_history.append(self.heads[-1])


_RULES: dict[str, Callable[[Rules, Event], None]] = {
    "created": Rules.created,
    "amended": Rules.amended,
    "rehearsed": Rules.rehearsed,
    "approved": Rules.approved,
    "proposed": Rules.proposed,
    "moved": Rules.moved,
    "refused": Rules.refused,
    "noted": Rules.noted,
    "driven": Rules.driven,
    "intent": Rules.intent,
    "started": Rules.started,
    "ended": Rules.ended,
    "weights": Rules.weights_recorded,
    "drawn": Rules.drawn,
    "evaluated": Rules.evaluated,
    "decided": Rules.decided,
    "queued": Rules.queued,
    "claimed": Rules.claimed,
    "released": Rules.released,
    "dropped": Rules.dropped,
    "stopped": Rules.stopped,
    "escalated": Rules.escalated,
    "anchored": Rules.anchored,
    "outside": Rules.outside_training,
}


def _require(is_so: bool, says: str) -> None:
    if not is_so:
        raise _Illegal(says)


def _text(event: Event, name: str) -> str:
    value = event[name]
    if not isinstance(value, str) or not value:
        raise ValueError(f"`{name}` is {value!r}")
    return value


def _job(event: Event) -> Job:
    """Read an intent."""
    phase = event["phase"]
    seeds = tuple(event["seeds"])
    plan = event.get("plan")
    run = event.get("run")
    if (
        phase not in LAUNCHES
        or not seeds
        or len(set(seeds)) != len(seeds)
        or any(type(seed) is not int for seed in seeds)
    ):
        raise ValueError("a job has a phase and distinct seeds")
    reserve = Amount.read(event["reserve"])
    if phase == "smoke":
        reserve = Amount(0, reserve.seconds)
    _require(phase == "smoke" or reserve.seeds >= len(seeds), "the job reserves fewer seeds than it trains")
    slots = tuple(event.get("slots") or (None,))
    _require(all(one is None or isinstance(one, str) for one in slots), "a place names its GPUs, or nothing")
    return Job(_text(event, "job"), _text(event, "candidate"), phase, seeds, plan, reserve, run, slots)


def _who(state: str) -> str:
    if state in ("launched", "completed"):
        return "a job"
    return "a decision"
