"""A simulated study that follows `rlx next`: what it recommends is always allowed, and it always leads to an end.

The rows are those of a real ledger, replayed by the real code. Only trainings, scores and files are simulated.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rlx import files
from rlx.compare.race_thresholds import RULE
from rlx.loop.study.agent.compact import next_answer
from rlx.loop.study.decide import study_decision
from rlx.loop.study.step_commands import StepWriter
from rlx.study.contract.contract import Contract
from rlx.study.ledger.records import Job
from rlx.study.ledger.replay import Rules
from rlx.study.ledger.state import State, replay, snapshot
from rlx.study.moves import Move, launch_move, next_moves, refusals
from rlx.study.refusal import Refusal
from rlx.study.situation import CandidateFacts, Facts, Situation, head_phase, race_opponent
from tests.study.story import NOW, Story
from tests.study.test_moves import contract

LONG = {
    "study": "s" * 64,
    "ideas": [
        {"idea": "set alive to 0 " * 20, "because": "it is farmed " * 30, "propose": f"rlx try --idea {'i' * 40}"}
    ]
    * 3,
    "history": [f"c{number:03d} {'gamma=0.5 ' * 9}" for number in range(9)],
}
"""The longest ideas and history that `rlx next` could be given."""
LONG_AND_WIDE = {
    "study": "s" * 64,
    "ideas": [{"idea": "奖" * 200, "because": "🙂" * 300, "propose": f"rlx try --idea {'i' * 40}"}] * 3,
    "history": [f"c{number:03d} {'学' * 90}" for number in range(9)],
}
"""The same in letters that take several bytes."""
OUTCOMES = (*("completed",) * 15, "failed", "timeout", "oom", "lost", "cancelled")
STOP_RULES = ("rejected_in_a_row >= 2", "debug_in_a_row >= 2", "spent > 0.6", "candidates >= 3", "gain > 0")
REACHED: Counter[str] = Counter()
"""How often each kind of situation was reached, over all examples."""
ENDS = ("done", "audit")


class SimulatedStudy:
    """A ledger in memory, files that are only names, and somebody who does what a move says."""

    def __init__(self, **sections: Any) -> None:
        self.story = Story(approve=False, pool=False)
        self.story.events.clear()
        self.sections = sections
        self.version = 0
        self.now = NOW
        self.contents: dict[str, int] = {}
        self.faulty: set[str] = set()
        """The candidates that a check refuses."""
        self.problems: tuple[Refusal, ...] = ()
        self.reported_rows = -1
        self.applied: str | None = None
        self.jobs = 0
        self._rules, self._rows = Rules(), 0
        self._state = replay(())
        self.tell("created", contract=self.sha256)

    @property
    def sha256(self) -> str:
        return f"k{self.version}"

    @property
    def contract(self) -> Contract:
        return contract(**self.sections)

    @property
    def state(self) -> State:
        """The replay of the rows so far; new rows are taken one by one, which `teardown` holds to a whole replay."""
        if self._rows < len(self.story.events):
            for event in self.story.events[self._rows :]:
                self._rules.take(event)
            self._rows = len(self.story.events)
            self._state = snapshot(self._rules)
        return self._state

    @property
    def facts(self) -> Facts:
        names = self.state.candidates
        return Facts(
            self.now,
            self.sha256,
            contract_problems=self.problems,
            candidates={name: CandidateFacts(self.plan(name), self.content(name)) for name in names},
            is_reported=self.reported_rows == len(self.story.events),
        )

    @property
    def situation(self) -> Situation:
        return Situation(self.state, self.contract, self.facts)

    def content(self, name: str) -> str:
        return f"{name}-{self.contents.get(name, 0)}"

    def plan(self, name: str) -> str:
        return f"{self.sha256}-{self.content(name)}"

    def tell(self, kind: str, /, **fields: Any) -> None:
        """Append a row at the simulated time; a row that the ledger's rules refuse is an error of the rulebook."""
        before = len(self.state.violations)
        event = self.story.tell(kind, **fields)
        self.story.events[-1] = replace(event, time=self.now)
        violations = self.state.violations
        assert len(violations) == before, str(violations[-1])

    def do(self, move: Move, dice: random.Random) -> None:
        """Do what a move says, as the commands would."""
        assert refusals(self.state, self.contract, self.facts, move) == ()
        REACHED[f"{move.kind} {move.phase}" if move.kind == "launch" else move.kind] += 1
        self.now += 1
        getattr(self, "_" + move.kind.replace(" ", "_"))(move, dice)

    def _audit(self, move: Move, dice: random.Random) -> None:
        assert self.state.violations

    def _amend(self, move: Move, dice: random.Random) -> None:
        self.problems = ()
        self.version += 1
        self.tell("amended", contract=self.sha256)

    def _approve(self, move: Move, dice: random.Random) -> None:
        if self.state.contract != self.sha256:
            self.tell("amended", contract=self.sha256)
        self.tell(
            "approved", contract=self.sha256, level="asserted", by="ada", human=False, nonce=f"n{self.now}",
            expires=self.now + dice.choice((400, 10**6, 10**6)), goes_on=move.goes_on,
        )  # fmt: skip

    def _rehearse(self, move: Move, dice: random.Random) -> None:
        if move.reason == "failed":
            self.tell("rehearsed", contract=self.sha256, ok=True, checks=[])
            return
        job = self._start(launch_move(self.situation, "rehearsal", "smoke"))
        self.end(job, "completed", dice)
        is_well = dice.random() < 0.8
        check = {"name": "training", "ok": is_well, "says": "it raised"}
        self.tell("rehearsed", contract=self.sha256, ok=is_well, checks=[check], fix=["rlx", "logs", "run"])

    def _wait(self, move: Move, dice: random.Random) -> None:
        job = next(job for job in self.state.open_jobs if job.run == move.run)
        self.end(job, dice.choice(OUTCOMES), dice)

    def _baseline(self, move: Move, dice: random.Random) -> None:
        at = self.situation
        if at.state.lacks("baseline", "baseline", max(RULE.head, at.claim_seeds // 2)):
            job = self._start(launch_move(at, "baseline", "baseline"))
            self.end(job, dice.choice(OUTCOMES), dice)
        self._evaluate("baseline", "baseline", dice)

    def _launch(self, move: Move, dice: random.Random) -> None:
        self._start(move)

    def _start(self, move: Move) -> Job:
        self.jobs += 1
        job = f"j{self.jobs}"
        self.tell(
            "intent", job=job, candidate=move.candidate, phase=move.phase, seeds=list(move.seeds), plan=move.plan,
            reserve=move.reserve.document(),
        )  # fmt: skip
        self.tell("started", job=job, run=f"run_{job}", process={"pid": 7})
        return self.state.jobs[job]

    def end(self, job: Job, outcome: str, dice: random.Random) -> None:
        """End a job: completed with some failed seeds, or otherwise with none."""
        how = {"lost": "lost", "cancelled": "interrupted"}.get(outcome, "failed")
        states = {str(seed): how for seed in job.seeds}
        if outcome == "completed":
            states = {str(seed): dice.choice(("completed",) * 9 + ("failed",)) for seed in job.seeds}
            states[str(job.seeds[0])] = "completed"
        share = dice.choice((0.1, 0.5, 1.0))
        spent = {"seeds": 0 if job.phase == "smoke" else len(job.seeds), "seconds": share * job.reserve.seconds}
        self.tell("ended", job=job.id, outcome=outcome, seeds=states, spent=spent, says="")
        REACHED[f"job {outcome}"] += 1

    def _evaluate(self, name: str, phase: Any, dice: random.Random) -> None:
        known = self.state.evaluations.get((name, phase), {})
        for job in self.state.ended_jobs(name, phase):
            for seed in job.counted_seeds:
                if job.seed_states.get(seed) == "completed" and seed not in known:
                    score = math.nan if dice.random() < 0.03 else dice.random()
                    self.story.evaluate(name, phase, seed, score)

    def _verdict(self, move: Move, dice: random.Random) -> None:
        self._evaluate(move.candidate, "promotion", dice)

    def _decide(self, move: Move, dice: random.Random) -> None:
        name, at = move.candidate, self.situation
        if at.state.candidates[name].state == "advanced" and at.is_claim_ready(name):
            self._claim(name, dice)
            return
        opponent = race_opponent(at.state, name)
        self._evaluate(opponent, head_phase(opponent), dice)
        self._evaluate(name, "trial", dice)
        if refusals(self.state, self.contract, self.facts, move):
            return  # a score of the head was NaN: it is replaced first
        usable = len(self.state.usable(name, "trial"))
        answers = ["advanced", "rejected"]
        if usable == 0:
            answers = ["debug"]
        elif self.state.race_lacks(name) > 0:
            answers = ["inconclusive", "inconclusive", "rejected"]
        self._record(name, dice.choice(answers), "race")

    def _claim(self, name: str, dice: random.Random) -> None:
        sides = ("baseline", name)
        if self.state.claim_of(name) is None:
            for job in [job for side in sides for job in self.state.ended_jobs(side, "confirmation")]:
                done = [seed for seed in job.counted_seeds if job.seed_states.get(seed) == "completed"]
                hashes = {str(seed): f"{job.candidate}-{seed}" for seed in done}
                self.tell("weights", candidate=job.candidate, run=job.run, checkpoints=hashes)
            self.tell("drawn", purpose="confirm", first=10**6, episodes=50, candidates=list(sides))
        draw = self.state.claim_of(name)
        assert draw is not None
        for side in sides:
            for seed in sorted(draw.seeds[side] & self.state.weights[side].keys()):
                self.story.evaluate(side, "confirmation", seed, dice.random())
        decision = dice.choice(("confirmed", "inconclusive", "rejected"))
        REACHED[f"claim {decision}"] += 1
        self._record(name, decision, "claim")

    def _record(self, name: str, decision: Any, test: str) -> None:
        about = study_decision(self.state, decision)
        self.tell("decided", candidate=name, decision=decision, study=about, says="", test=test, effect=0.1, p=0.01)
        REACHED[decision] += 1

    def _check(self, move: Move, dice: random.Random) -> None:
        name = move.candidate
        if name in self.faulty:
            self.tell("refused", action="check", candidate=name, reasons=[{"code": "SCOPE", "says": "not in scope"}])
            return
        before = self.state.candidates[name]
        if before.state != "draft":
            self.tell("moved", candidate=name, before=before.state, after="draft", why="")
        self.tell("moved", candidate=name, before="draft", after="validated", why="checked", plan=self.plan(name),
                  content=self.content(name))  # fmt: skip

    def _mend(self, move: Move, dice: random.Random) -> None:
        """Fix a candidate and check it. One that was only stopped, or was edited already, is checked as it is."""
        self.faulty.discard(move.candidate)
        if move.reason in ("failed", "refused"):
            self.contents[move.candidate] = self.contents.get(move.candidate, 0) + 1
        check = Move("check", move.candidate)
        assert refusals(self.state, self.contract, self.facts, check) == ()
        self._check(check, dice)

    def _propose(self, move: Move, dice: random.Random) -> None:
        name = f"c{len(self.state.candidates) + 1:03d}"
        if dice.random() < 0.2:
            self.faulty.add(name)
        self.tell("proposed", candidate=name, kind="hyperparameter", sha256=f"{name}-document")

    def _report(self, move: Move, dice: random.Random) -> None:
        self.reported_rows = len(self.story.events)

    def _done(self, move: Move, dice: random.Random) -> None:
        pass

    def walk(self, dice: random.Random, *, most: int = 400) -> list[Move]:
        """Follow the recommendation until the study is over; return the moves."""
        walked = []
        for _ in range(most):
            move = next_moves(self.situation)[0]
            walked.append(move)
            if move.kind in ENDS:
                return walked
            self.do(move, dice)
        raise AssertionError(f"the study does not end: {walked[-8:]}")


class RulebookMachine(RuleBasedStateMachine):
    """Somebody follows `next` while jobs fail, contracts change, approvals expire and budgets run out."""

    @initialize(
        budget=st.fixed_dictionaries({
            "seeds": st.sampled_from((30, 60, 120)), "candidates": st.sampled_from((2, 4, 30)),
            "hours": st.just(12.0), "per_seed_minutes": st.just(5.0),
        }),
        metric=st.fixed_dictionaries({
            "name": st.just("success_rate"), "seeds": st.sampled_from((2, 6, 10)), "claims": st.sampled_from((1, 2)),
        }),
        stop=st.sampled_from((*STOP_RULES, "spent > 2")),
        parallel=st.sampled_from((1, 2)),
        dice=st.integers(0, 2**32),
        head_start=st.sampled_from((0, 20, 60)),
    )  # fmt: skip
    def begin(
        self, budget: dict[str, Any], metric: dict[str, Any], stop: str, parallel: int, dice: int, head_start: int
    ) -> None:
        self.dice = random.Random(dice)
        hardware = {"cores": 1, "parallel": parallel, "disk_gb": 1.0}
        automation = {"stop": [stop]}
        self.study = SimulatedStudy(metric=metric, budget=budget, hardware=hardware, automation=automation)
        for _ in range(head_start):
            self.study.do(next_moves(self.study.situation)[0], self.dice)

    @invariant()
    def the_recommendation_is_allowed(self) -> None:
        if not hasattr(self, "study"):
            return
        study = self.study
        approval = study.state.approval
        REACHED["expired"] += approval is not None and study.now >= approval.expires
        at = study.situation
        for move in next_moves(at):
            assert refusals(study.state, study.contract, study.facts, move) == (), move
        step, *others = StepWriter(at).steps()
        for parts in (LONG, LONG_AND_WIDE):
            answer = next_answer(at, step, others, parts)
            assert len(files.encode({"schema": 1, **answer})) <= 1000
            assert answer["command"] == str(step.command)

    @rule(count=st.integers(1, 12))
    def follow(self, count: int) -> None:
        for _ in range(count):
            self.study.do(next_moves(self.study.situation)[0], self.dice)

    @rule(pick=st.integers(0, 9))
    def do_something_else(self, pick: int) -> None:
        moves = [move for move in next_moves(self.study.situation) if move.kind != "take over"]
        self.study.do(moves[pick % len(moves)], self.dice)

    @rule(seconds=st.sampled_from((1, 500, 5000)))
    def pass_time(self, seconds: int) -> None:
        self.study.now += seconds

    @rule(key=st.sampled_from(("seeds", "hours", "candidates", "until")), is_recorded=st.booleans())
    def amend_contract(self, key: str, is_recorded: bool) -> None:
        budget = self.study.sections["budget"]
        values = {"seeds": budget["seeds"] + 12, "hours": max(1.0, budget["hours"] / 2), "candidates": 3,
                  "until": self.dice.choice(("2020-01-01", None))}  # fmt: skip
        self.study.sections = {**self.study.sections, "budget": {**budget, key: values[key]}}
        self.study.version += 1
        REACHED["amended"] += 1
        if is_recorded:
            self.study.tell("amended", contract=self.study.sha256)

    @rule(point=st.sampled_from(("task", "scope")))
    @precondition(lambda self: len(self.study.story.events) % 5 == 0)
    def open_a_point(self, point: str) -> None:
        self.study.problems = (Refusal("BLOCKED", "open", point=point),)

    @rule(pick=st.integers(0, 9))
    @precondition(lambda self: self.study.state.candidates)
    def edit_candidate(self, pick: int) -> None:
        names = list(self.study.state.candidates)
        name = names[pick % len(names)]
        self.study.contents[name] = self.study.contents.get(name, 0) + 1

    @rule(is_stopped=st.booleans())
    @precondition(lambda self: len(self.study.story.events) % 7 == 6)
    def halt(self, is_stopped: bool) -> None:
        if is_stopped:
            self.study.tell("stopped", rule="enough")
        else:
            self.study.tell("escalated", why="help")
        REACHED["halted"] += 1

    @rule(pick=st.integers(0, 9))
    @precondition(lambda self: self.study.state.head != "baseline")
    def revert_head(self, pick: int) -> None:
        head = self.study.state.candidates[self.study.state.head]
        if pick == 0:
            self.study.tell("moved", candidate=head.id, before=head.state, after="reverted", why="asked")

    @rule(pick=st.integers(0, 9))
    @precondition(lambda self: len(self.study.story.events) % 11 == 10)
    def tamper(self, pick: int) -> None:
        if pick < 3:
            self.study.story.tell("decided", candidate="c999", decision="confirmed")

    def teardown(self) -> None:
        """From wherever it got to, following `next` leads to an end."""
        if not hasattr(self, "study"):
            return
        study = self.study
        assert replay(study.story.events) == study.state
        at = study.situation
        REACHED["stop rule"] += at.stop_rule is not None
        REACHED["deadline"] += bool(at.deadline)
        REACHED["budget spent"] += at.seeds_left < RULE.first
        if len(study.story.events) % 3 == 0:
            study.walk(self.dice)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_next_never_recommends_what_the_rulebook_refuses_and_every_study_ends() -> None:
    REACHED.clear()
    checks = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    config = settings(
        max_examples=300, stateful_step_count=40, deadline=None, suppress_health_check=checks, derandomize=True,
        database=None,
    )  # fmt: skip
    run_state_machine_as_test(RulebookMachine, settings=config)
    situations = (
        "claim confirmed", "claim inconclusive", "launch promotion", "launch confirmation", "job failed", "job lost",
        "job cancelled", "amended", "expired", "stop rule", "deadline", "budget spent", "halted", "mend", "audit",
    )  # fmt: skip
    assert not [name for name in situations if not REACHED[name]]


@pytest.mark.parametrize("seed", range(6))
def test_a_study_walks_to_the_same_end_whatever_its_messages_say(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def walk() -> list[Move]:
        study = SimulatedStudy(
            metric={"name": "success_rate", "seeds": 6, "claims": 1},
            budget={"seeds": 90, "hours": 24.0, "per_seed_minutes": 5.0, "candidates": 6},
            hardware={"cores": 1, "parallel": 1, "disk_gb": 1.0},
            automation={"stop": ["rejected_in_a_row >= 3"]},
        )
        return study.walk(random.Random(seed))

    expected = walk()
    words = random.Random(seed)
    make = Refusal.__init__

    def babble(self: Refusal, code: str, message: str, fix: Any = None, point: str = "") -> None:
        make(self, code, " ".join("".join(words.choices("abcdefgh", k=5)) for _ in range(4)), fix, point)

    monkeypatch.setattr(Refusal, "__init__", babble)
    assert walk() == expected
    assert expected[-1].kind == "done"


def test_nothing_more_is_proposed_against_a_head_that_was_edited_before_its_fresh_scores() -> None:
    machine = RulebookMachine()
    machine.begin(
        budget={"seeds": 30, "candidates": 2, "hours": 12.0, "per_seed_minutes": 5.0}, head_start=13,
        metric={"name": "success_rate", "seeds": 2, "claims": 1}, parallel=1, dice=1, stop="rejected_in_a_row >= 2",
    )  # fmt: skip
    machine.edit_candidate(pick=0)
    walked = machine.study.walk(machine.dice)

    assert machine.study.state.head == "c001"
    assert sum(move.kind == "propose" for move in walked) <= 1
