"""A study driven at random through a real ledger file, beside a model that knows the rules in its own words.

Tools ask the rulebook and keep the law; an adversary appends what it likes, with hashes that hold.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rlx.errors import Refused
from rlx.study.budget import Amount
from rlx.study.contract.contract import POINTS, Contract
from rlx.study.ledger.ledger import Ledger
from rlx.study.ledger.replay import PATIENCE
from rlx.study.ledger.state import State, lawful, next_seeds, replay
from rlx.study.moves import Move, refusals
from rlx.study.situation import CandidateFacts, Facts, MachineFacts

SEEDS, HOURS, CANDIDATES, PARALLEL, CLAIMS = 60, 0.4, 3, 2, 1
CONTRACT = Contract.model_validate({
    "schema": 1,
    "study": "pilot",
    "task": "balance",
    "confirmed": list(POINTS),
    "metric": {"name": "success_rate", "claims": CLAIMS, "seeds": 3},
    "scope": {"keys": ["algo.*"]},
    "budget": {"seeds": SEEDS, "hours": HOURS, "per_seed_minutes": 5.0, "candidates": CANDIDATES},
    "hardware": {"cores": 1, "parallel": PARALLEL, "disk_gb": 1.0},
    "baseline": {"commit": "abc", "command": "rlx train"},
    "evaluation": {},
    "automation": {"approval": "signed"},
})  # fmt: skip
NAMES = ("c001", "c002", "c003", "c004", "c005")
NULL = ("baseline", "rehearsal")
LEGAL = {
    "draft": {"validated"}, "validated": {"draft", "launched"}, "launched": {"completed", "debug"},
    "completed": {"advanced", "rejected", "inconclusive", "debug"}, "inconclusive": {"launched", "rejected"},
    "debug": {"draft"}, "advanced": {"confirmed", "rejected", "reverted"}, "confirmed": {"reverted"},
    "rejected": set(), "reverted": set(),
}  # fmt: skip
ONE_IN = st.integers(0, 9)
MEMORY = Path("/dev/shm")
"""Where an fsync costs nothing: what it promises is the fault sweep's to show."""


@dataclass
class Model:
    """The study as somebody would keep it by hand."""

    file: str = "k0"
    recorded: str = "k0"
    approved: str | None = None
    level: str = ""
    expires: float = 0.0
    stopped: bool = False
    broken: bool = False
    states: dict[str, str] = field(default_factory=dict)
    plans: dict[str, tuple[str, str]] = field(default_factory=dict)
    edits: dict[str, int] = field(default_factory=dict)
    heads: list[str] = field(default_factory=lambda: ["baseline"])
    incumbents: list[str] = field(default_factory=list)
    jobs: dict[str, tuple[str, str, tuple[int, ...], Amount]] = field(default_factory=dict)
    spent: Amount = field(default_factory=Amount)
    used: dict[str, set[int]] = field(default_factory=dict)
    again: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    waves: dict[str, list[str]] = field(default_factory=dict)
    scored: dict[tuple[str, str], set[int]] = field(default_factory=dict)
    launched: set[str] = field(default_factory=set)
    claimed: set[str] = field(default_factory=set)
    drawn: set[str] = field(default_factory=set)
    rehearsed: float = 0.0
    largest: Amount = field(default_factory=Amount)

    @property
    def head(self) -> str:
        return next(one for one in reversed(self.heads) if self.stands(one))

    @property
    def incumbent(self) -> str | None:
        return next((one for one in reversed(self.incumbents) if self.states[one] == "confirmed"), None)

    def stands(self, name: str) -> bool:
        return name == "baseline" or self.states[name] in ("advanced", "confirmed")

    def reserved(self) -> Amount:
        return sum((reserve for *_, reserve in self.jobs.values()), Amount())

    def open_of(self, name: str, phase: str) -> list[str]:
        return [job for job, (who, what, *_) in self.jobs.items() if (who, what) == (name, phase)]

    def is_approved(self, now: float) -> bool:
        return self.approved == self.file == self.recorded and now < self.expires and self.level != "asserted"

    def plan(self, name: str) -> str:
        return f"{self.file}-{name}-{self.edits.get(name, 0)}"

    def may_launch(self, ask: Move, now: float) -> bool:
        """Say in other words than the rulebook whether a job may start."""
        name, phase, is_null = ask.candidate, ask.phase, ask.candidate in NULL
        is_smoke = phase == "smoke"
        if self.broken or self.stopped or len(self.jobs) >= PARALLEL or not ask.seeds:
            return False
        is_rehearsal = is_null and is_smoke and ask.reserve.seconds <= 300
        is_rehearsal = is_rehearsal and self.rehearsed + ask.reserve.seconds <= 3600
        if not (self.is_approved(now) or is_rehearsal):
            return False
        low = 1000 if phase == "confirmation" else 0
        if any(not low <= seed < low + 1000 for seed in ask.seeds):
            return False
        if not is_smoke and (self.used.get(name, set()) & set(ask.seeds) or ask.reserve.seeds < len(ask.seeds)):
            return False
        total = self.spent + self.reserved() + (Amount(0, ask.reserve.seconds) if is_smoke else ask.reserve)
        if total.seeds > SEEDS or total.seconds > HOURS * 3600:
            return False
        if phase == "confirmation" and (
            self.head in ("baseline", *self.drawn) or (self.head not in self.claimed and len(self.claimed) >= CLAIMS)
        ):
            return False
        if is_null:
            return is_smoke or (name == "baseline" and phase in ("baseline", "confirmation"))
        state = self.states.get(name)
        if state is None or ask.plan != self.plan(name):
            return False
        checked, under = self.plans.get(name, ("", ""))
        if (under == self.recorded and checked != ask.plan) or (under != self.recorded and state == "validated"):
            return False
        if phase == "trial":
            pool = self.scored.get((self.head, "baseline" if self.head == "baseline" else "promotion"), set())
            is_room = len(self.launched - {name}) < CANDIDATES
            return state in ("validated", "launched", "inconclusive") and len(pool) >= 6 and is_room
        if phase == "promotion":
            return name == self.head and state in ("advanced", "confirmed")
        if phase == "confirmation":
            return name == self.head and state == "advanced"
        return is_smoke and state in ("validated", "inconclusive", "advanced")


class Study(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self._place = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
        self.path = Path(self._place.name) / "ledger.jsonl"
        self.ledger = lawful(self.path)
        self.model = Model()
        self.now = time.time()
        self.count = 0
        self._known: tuple[int, State] = (0, replay(()))

    def teardown(self) -> None:
        state = self.state()
        events = Ledger(self.path).events()
        assert replay(events) == state
        assert replay([event for event in events for _ in range(2)]) == state
        assert replay([*events, *events[len(events) // 2 :]]) == state
        assert bool(state.violations) == self.model.broken
        self._place.cleanup()

    def state(self) -> State:
        """Replay the file as it is now; it is read again whenever it has grown."""
        size = self.path.stat().st_size
        if self._known[0] != size:
            self._known = (size, replay(self.ledger.events()))
        return self._known[1]

    def tell(self, kind: str, /, **fields: Any) -> bool:
        """Append a row as every tool does, and say whether it was a legal move."""
        try:
            self.ledger.append(kind, **fields)
        except Refused:
            return False
        return True

    @initialize(is_approved=ONE_IN, has_pool=ONE_IN)
    def begin(self, is_approved: int, has_pool: int) -> None:
        self.ledger.append("created", contract="k0")
        if is_approved:
            self.approve("signed", 10_000)
            if has_pool:
                self.run_pool()
                for name in NAMES[: has_pool % 4]:
                    self.run_trial(name, is_good=bool(has_pool % 3))

    @rule(
        level=st.sampled_from(["signed", "signed", "signed", "asserted", "other user"]),
        good_for=st.integers(1, 5000),
        goes_on=st.booleans(),
    )
    def approve(self, level: str, good_for: int, goes_on: bool = True) -> None:
        model = self.model
        if model.file != model.recorded:
            self.ledger.append("amended", contract=model.file)
            model.recorded = model.file
        self.ledger.append("approved", contract=model.file, level=level, by="ada", human=False,
                           expires=self.now + good_for, nonce=f"n{self.path.stat().st_size}",
                           goes_on=goes_on)  # fmt: skip
        model.approved, model.level, model.expires = model.file, level, self.now + good_for
        model.stopped = model.stopped and not goes_on

    @rule(then=st.sampled_from(["", "recorded", "approved", "approved"]), version=st.integers(0, 2))
    def edit_contract(self, then: str, version: int) -> None:
        self.model.file = f"k{version}"
        if then == "approved":
            self.approve("signed", 5000)
        elif then == "recorded":
            self.ledger.append("amended", contract=self.model.file)
            self.model.recorded = self.model.file

    @rule(seconds=st.integers(1, 900))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule(is_decided=st.booleans())
    @precondition(lambda self: self.count % 7 == 6)
    def stop(self, is_decided: bool) -> None:
        self.ledger.append("stopped", rule="enough") if is_decided else self.ledger.append("escalated", why="help")
        self.model.stopped = True

    @rule(name=st.sampled_from(NAMES))
    def propose(self, name: str) -> None:
        model = self.model
        is_free = model.states.get(name, "draft") in ("draft", "validated", "debug") and not model.open_of(
            name, "trial"
        )
        assert self.tell("proposed", candidate=name, kind="hyperparameter", sha256=f"{name}-doc") == is_free
        if is_free:
            model.states[name] = "draft"
            model.plans.pop(name, None)
            model.scored.pop((name, "trial"), None)

    @rule(name=st.sampled_from(NAMES))
    def validate(self, name: str) -> None:
        plan, model = self.model.plan(name), self.model
        is_draft = model.states.get(name) == "draft"
        told = self.tell("moved", candidate=name, before="draft", after="validated", why="", plan=plan)
        assert told == is_draft
        if is_draft:
            if model.plans.get(name, (plan,))[0] != plan:  # it was mended: what it trained before is another's
                model.scored.pop((name, "trial"), None)
            model.states[name], model.plans[name] = "validated", (plan, model.recorded)

    @rule(name=st.sampled_from(NAMES))
    def edit_candidate(self, name: str) -> None:
        self.model.edits[name] = self.model.edits.get(name, 0) + 1

    @rule(
        name=st.sampled_from((*NAMES[:3], *NULL)),
        phase=st.sampled_from(["smoke", "baseline", "trial", "trial", "promotion", "confirmation"]),
        count=st.sampled_from([1, 2, 3, 5, 0]),
        seconds=st.sampled_from([20, 60, 300, 301, 900]),
        wrong=st.sampled_from(["", "", "", "", "", "", "plan", "seeds", "reserve", "range"]),
    )
    def launch(self, name: str, phase: str, count: int, seconds: int, wrong: str) -> None:
        self._launch(name, phase, count, seconds, wrong)

    def _launch(self, name: str, phase: Any, count: int, seconds: int, wrong: str = "") -> str | None:
        """Go through the door: read, judge and append with nobody between."""
        with self.ledger.held() as held:
            state = replay(held.events)
            ask = self._request(state, name, phase, count, seconds, wrong)
            known = {} if name in NULL else {name: CandidateFacts(plan=self.model.plan(name))}
            facts = Facts(self.now, self.model.file, machine=MachineFacts(9, 9, 9, 9.0), candidates=known)
            reasons = refusals(state, CONTRACT, facts, ask)
            assert (not reasons) == self.model.may_launch(ask, self.now), reasons
            if reasons:
                held.append("refused", action="launch", candidate=name, reasons=[one.document() for one in reasons])
                return None
            self.count += 1
            job = f"j{self.count}"
            held.append("intent", key=job, job=job, candidate=name, phase=phase, seeds=ask.seeds, plan=ask.plan,
                        reserve=ask.reserve.document())  # fmt: skip
            after = replay(held.events)
            assert after.violations == state.violations == ()
            assert len(after.jobs) == len(state.jobs) + 1
        self._note_launch(job, ask)
        return job

    def _request(self, state: State, name: str, phase: Any, count: int, seconds: int, wrong: str) -> Move:
        purpose = "confirm" if (phase == "confirmation") != (wrong == "range") else "search"
        seeds = next_seeds(state, name, purpose, count)
        if wrong == "seeds":
            seeds = tuple(sorted(state.used_seeds(name)))[:count]
        reserve = Amount(len(seeds) - (wrong == "reserve"), float(seconds))
        plan = None if name in NULL else self.model.plan(name)
        return Move("launch", name, phase, seeds, reserve, "wrong" if wrong == "plan" and plan else plan)

    def _note_launch(self, job: str, ask: Move) -> None:
        model, name = self.model, ask.candidate
        is_smoke = ask.phase == "smoke"
        assert model.is_approved(self.now) or (is_smoke and name in NULL)
        reserve = Amount(0, ask.reserve.seconds) if is_smoke else ask.reserve
        model.jobs[job] = (name, ask.phase, ask.seeds, reserve)
        model.largest = Amount(max(model.largest.seeds, reserve.seeds), max(model.largest.seconds, reserve.seconds))
        if name in NULL and is_smoke:
            model.rehearsed += reserve.seconds
        else:
            if not is_smoke:
                model.used.setdefault(name, set()).update(ask.seeds)
            if name not in NULL:
                model.plans[name] = (ask.plan or "", model.recorded)
        if ask.phase == "trial":
            model.launched.add(name)
        if ask.phase == "confirmation" and name != "baseline":
            model.claimed.add(name)

    @rule(pick=st.integers(0, 9), outcome=st.sampled_from(
        ["completed", "completed", "completed", "failed", "timeout", "oom", "lost", "cancelled"]),
        share=st.sampled_from([0.0, 0.5, 1.0, 1.5]), is_started=st.booleans())  # fmt: skip
    @precondition(lambda self: self.model.jobs)
    def end(self, pick: int, outcome: str, share: float, is_started: bool, job: str = "") -> None:
        model = self.model
        job = job or list(model.jobs)[pick % len(model.jobs)]
        name, phase, seeds, reserve = model.jobs[job]
        if share > 1 and len(model.jobs) > 1:
            share = 1.0  # one job may outrun its reservation; two at once would be two
        spent = Amount(len(seeds), reserve.seconds * share)
        if is_started:
            self._start(job)
        self.ledger.append("ended", key=job, job=job, outcome=outcome, spent=spent.document(),
                           seeds=dict.fromkeys(seeds, outcome), says="")  # fmt: skip
        del model.jobs[job]
        model.spent += Amount(0, spent.seconds) if phase == "smoke" else spent
        if name in NULL and phase == "smoke":
            model.rehearsed += spent.seconds - reserve.seconds
        if phase == "trial" and model.states[name] != "launched":
            model.states[name], model.waves[name] = "launched", []
        if phase == "trial":
            self._settle(name, outcome)
        if phase != "smoke":
            self._lose(name, phase, seeds if outcome == "lost" else (), is_fruitless=outcome != "completed")
        if outcome == "completed":
            self._evaluate(name, phase, seeds)

    def _lose(self, name: str, phase: str, lost: tuple[int, ...], *, is_fruitless: bool) -> None:
        """Free the seeds that were lost; a yardstick's that is lost thrice, or leaves no score, calls for a person."""
        model, known = self.model, self.model.again[name]
        is_yardstick = name == "baseline" or phase == "promotion"
        again = {seed for seed in lost if is_yardstick or not known[seed]}
        known.update(again)
        model.used[name] -= again
        is_tired = is_yardstick and any(known[seed] >= PATIENCE for seed in again)
        model.stopped |= is_tired or (is_fruitless and phase != "trial" and not again)

    def _start(self, job: str) -> None:
        name, phase, _, _ = self.model.jobs[job]
        self.ledger.append("started", key=job, job=job, run=f"run_{job}", process={"pid": 1})
        if phase == "trial" and self.model.states[name] != "launched":
            self.model.states[name], self.model.waves[name] = "launched", []

    def _settle(self, name: str, outcome: str) -> None:
        model = self.model
        if outcome != "abandoned":
            model.waves.setdefault(name, []).append(outcome)
        if model.states[name] == "launched" and not model.open_of(name, "trial"):
            model.states[name] = "completed" if "completed" in model.waves[name] else "debug"

    def _evaluate(self, name: str, phase: str, seeds: tuple[int, ...]) -> None:
        if phase == "confirmation":
            return
        for seed in seeds:
            file = f"{name}-{phase}-{seed}"
            self.ledger.append("evaluated", candidate=name, phase=phase, seed=seed, level="sealed", file=file,
                               sha256=file, score=float(seed))  # fmt: skip
        self.model.scored.setdefault((name, phase), set()).update(seeds)

    @rule(pick=st.integers(0, 9))
    @precondition(lambda self: self.model.jobs)
    def abandon(self, pick: int) -> None:
        """A crash came between the intent and the process."""
        model = self.model
        job = list(model.jobs)[pick % len(model.jobs)]
        if self.state().jobs[job].process is not None:
            return
        name, phase, seeds, reserve = model.jobs.pop(job)
        self.ledger.append("ended", key=job, job=job, outcome="abandoned", spent=Amount().document(), seeds={}, says="")
        if phase != "smoke":
            model.used[name] -= set(seeds)
            self._lose(name, phase, seeds if name == "baseline" or phase == "promotion" else (), is_fruitless=False)
        if name in NULL and phase == "smoke":
            model.rehearsed -= reserve.seconds
        mine = [one for one in self.state().jobs_of(name, phase) if one.used_seeds]  # type: ignore[arg-type]
        if phase == "trial":
            self._settle(name, "abandoned")
            if not mine:
                model.launched.discard(name)
        if phase == "confirmation" and not any(one.spent is None or one.spent.seeds for one in mine):
            model.claimed.discard(name)

    @rule(pick=st.integers(0, 9))
    @precondition(lambda self: self.model.jobs)
    def start(self, pick: int) -> None:
        self._start(list(self.model.jobs)[pick % len(self.model.jobs)])

    @rule(name=st.sampled_from(NAMES[:3]), decision=st.sampled_from(
        ["advanced", "advanced", "rejected", "inconclusive", "debug", "confirmed"]))  # fmt: skip
    def decide(self, name: str, decision: str) -> None:
        model, before = self.model, self.model.states.get(name, "")
        may = decision in LEGAL.get(before, ()) and decision != "confirmed"
        may = may and not (decision == "advanced" and not model.scored.get((name, "trial")))
        if (before, decision) == ("advanced", "inconclusive") and name in model.drawn:
            assert self.tell("decided", candidate=name, decision=decision, study="continue", says="")
            return  # a claim that was not shown: it stays where it is
        assert self.tell("decided", candidate=name, decision=decision, study="continue", says="") == may
        if may:
            model.states[name] = decision
            if decision == "advanced":
                model.heads.append(name)

    @rule(name=st.sampled_from(NAMES[:3]))
    def revert(self, name: str) -> None:
        before = self.model.states.get(name, "")
        told = self.tell("moved", candidate=name, before=before, after="reverted", why="asked")
        assert told == (before in ("advanced", "confirmed"))
        if told:
            self.model.states[name] = "reverted"

    @rule(count=st.integers(2, 3))
    def run_pool(self, count: int = 6) -> None:
        self._run("baseline", "baseline", count)

    @rule(name=st.sampled_from(NAMES[:3]), is_good=st.booleans())
    def run_trial(self, name: str, is_good: bool) -> None:
        """What a loop does: propose, check, launch, wait, decide, and promote what advanced."""
        self.propose(name) if name not in self.model.states else None
        self.validate(name)
        if self._run(name, "trial", 3) and self.model.states[name] == "completed":
            self.decide(name, "advanced" if is_good else "rejected")
            if is_good:
                self._run(name, "promotion", 6)

    def _run(self, name: str, phase: str, count: int) -> str | None:
        job = self._launch(name, phase, count, 20)
        if job is not None:
            self.end(0, "completed", 0.5, True, job=job)
        return job

    @rule(missing=st.sampled_from(["", "", "", "", "", "", "draw", "baseline", "weights", "scores", "order", "level"]))
    @precondition(lambda self: self.model.head != "baseline")
    def confirm(self, missing: str) -> None:
        """Claim the head; with any step missing it is not believed."""
        if not self.model.is_approved(self.now):
            self.approve("signed", 5000)
        head = self.model.head
        sides = [head] if missing == "baseline" else ["baseline", head]
        runs = {side: self._run(side, "confirmation", 3) for side in sides}
        draw = {"purpose": "confirm", "first": 10**6, "episodes": 9, "candidates": sides}
        is_drawn = missing == "order" and self.tell("drawn", **draw)
        assert not (is_drawn and any(runs.values()))  # an earlier walk may have left weights and no draw
        for side, job in runs.items():
            if job and not (missing == "weights" and side == head):
                seeds = self.state().jobs[job].seeds
                self.tell("weights", candidate=side, run=f"run_{job}", checkpoints={s: f"{side}-{s}" for s in seeds})
        is_drawn = is_drawn or (missing not in ("draw", "order") and self.tell("drawn", **draw))
        assert not (is_drawn and missing == "weights" and runs[head])
        self.model.drawn |= {head} if is_drawn else set()
        level = "reported" if missing == "level" else "sealed"
        for side, job in runs.items():
            if job and not (missing == "scores" and side == "baseline"):
                for seed in self.state().jobs[job].seeds:
                    file = f"{side}-confirmation-{seed}"
                    self.tell("evaluated", candidate=side, phase="confirmation", seed=seed, level=level, file=file,
                              sha256=file, score=1.0)  # fmt: skip
        told = self.tell("decided", candidate=head, decision="confirmed", study="continue", says="")
        if told:
            assert not missing or not all(runs.values()), missing
            self.model.states[head] = "confirmed"
            self.model.incumbents.append(head)

    @rule(kind=st.sampled_from(["decided", "moved", "intent", "ended", "approved", "drawn", "evaluated", "invented"]),
          name=st.sampled_from((*NAMES, *NULL)))  # fmt: skip
    @precondition(lambda self: self.count % 5 == 4)
    def tamper(self, kind: str, name: str) -> None:
        """Somebody else writes a row whose hashes hold; it changes nothing, and nothing is launched after it."""
        before = self.state()
        forged = {
            "decided": {"candidate": name, "decision": "confirmed"},
            "moved": {"candidate": name, "before": "draft", "after": "confirmed"},
            "intent": {"job": "j1", "candidate": name, "phase": "trial", "seeds": [0], "plan": "p",
                       "reserve": {"seeds": 1, "seconds": 1.0}},
            "ended": {"job": "j0", "outcome": "completed", "spent": {"seeds": -99, "seconds": -1e6}},
            "approved": {"contract": self.model.file, "level": "royal", "by": "", "human": True, "expires": 9e9},
            "drawn": {"purpose": "confirm", "first": 0, "episodes": 1, "candidates": [name, "c999"]},
            "evaluated": {"candidate": name, "phase": "trial", "seed": 77, "level": "sealed", "score": 9e9},
            "invented": {},
        }  # fmt: skip
        Ledger(self.path).append(kind, **forged[kind])
        after = self.state()
        assert len(after.violations) == len(before.violations) + 1
        assert (after.candidates, after.jobs, after.spent) == (before.candidates, before.jobs, before.spent)
        self.model.broken = True

    @invariant()
    def the_replay_is_the_state(self) -> None:
        state, model = self.state(), self.model
        assert {name: one.state for name, one in state.candidates.items()} == model.states
        assert state.head == model.head
        assert {job.id for job in state.open_jobs} == model.jobs.keys()
        assert state.reserved == model.reserved()
        assert abs(state.spent.seconds - model.spent.seconds) < 1e-6
        assert state.spent.seeds == model.spent.seeds
        assert state.claimed == model.claimed

    @invariant()
    def the_budget_is_never_overspent_by_more_than_one_reservation(self) -> None:
        model = self.model
        total = model.spent + model.reserved() - model.largest
        assert total.seeds <= SEEDS
        assert total.seconds <= HOURS * 3600

    @invariant()
    def the_incumbent_came_through_a_confirmation(self) -> None:
        state = self.state()
        assert state.incumbent == self.model.incumbent
        if state.incumbent is not None:
            draw = next(one for one in state.draws if state.incumbent in one.candidates)
            for side in (state.incumbent, "baseline"):
                assert side in draw.candidates
                assert state.scores(side, "confirmation")
                assert any(one.row < draw.row for one in state.weights[side].values())


Study.TestCase.settings = settings(
    max_examples=300, stateful_step_count=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
TestStudy = pytest.mark.slow(pytest.mark.timeout(900)(Study.TestCase))
