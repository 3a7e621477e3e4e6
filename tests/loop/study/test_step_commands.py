"""What `rlx next` recommends and says, from studies told row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rlx.command import Command
from rlx.loop.study.step_commands import Step, StepWriter
from rlx.study.contract.contract import Contract
from rlx.study.refusal import Refusal
from rlx.study.situation import CandidateFacts, Facts, Situation
from tests.study.story import CONTRACT, NOW, Story
from tests.study.test_moves import contract

SIX = (0, 1, 2, 3, 4, 5)
BUDGET = {"seeds": 60, "hours": 10.0, "per_seed_minutes": 5.0}


class NextStory(Story):
    """An approved study with a full pool of six; `plan` returns what comes next in it."""

    def __init__(self, *, budget: dict[str, Any] | None = None, pool: bool = True, **sections: Any) -> None:
        super().__init__(pool=False, approve=sections.pop("approve", True))
        metric = {"name": "success_rate", "seeds": 6, "claims": 1}
        hardware = {"cores": 1, "parallel": sections.pop("parallel", 1)}
        given = {"metric": metric, "hardware": hardware, "budget": {**BUDGET, **(budget or {})}, **sections}
        self.contract: Contract = contract(**given)
        self.facts = Facts(NOW + 1000, CONTRACT)
        self.files: dict[str, dict[str, Any]] = {}
        if pool:
            self.job("b", "baseline", "baseline", SIX, scores=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0))

    def steps(self, **view: Any) -> tuple[Step, ...]:
        known = {name: CandidateFacts(f"{name}-plan", **self.files.get(name, {})) for name in self.state.candidates}
        facts = replace(self.facts, candidates=known)
        return StepWriter(Situation(self.state, self.contract, facts), **view).steps()

    def next(self, **view: Any) -> Step:
        return self.steps(**view)[0]

    @property
    def kinds(self) -> list[str]:
        return [step.move.kind for step in self.steps()]

    @property
    def commands(self) -> list[str]:
        return [str(step.command) for step in self.steps()]

    def promote(self, name: str) -> None:
        self.job(f"{name}-p", name, "promotion", tuple(range(6, 12)), scores=(4.0,) * 6)

    def confirm(self, side: str, seeds: tuple[int, ...] = tuple(range(1000, 1006))) -> None:
        self.job(f"{side}-c", side, "confirmation", seeds)


def test_a_ledger_that_is_not_sound_is_audited_and_nothing_else() -> None:
    story = NextStory()
    story.tell("decided", candidate="c009", decision="confirmed")
    assert story.kinds == ["audit", "report"]


def test_an_open_point_comes_before_everything_and_its_fix_is_the_command() -> None:
    story = NextStory(approve=False, pool=False)
    fix = Command(("rlx", "study", "amend", "pilot", "-s", "budget.seeds=80"))
    mission = Command(("rlx", "task", "refresh", "balance", "--mission", "maximize return"))
    problems = (Refusal("BLOCKED", "no mission", mission, "task"), Refusal("BLOCKED", "too few", fix, "budget"))
    story.facts = replace(story.facts, contract_problems=problems)
    assert (story.next().move.kind, story.next().command) == ("amend", fix)
    assert story.next().why == "the contract is not settled: no mission; too few"
    story.facts = replace(story.facts, contract_problems=(Refusal("BLOCKED", "no mission", point="task"),))
    assert str(story.next().command) == "rlx study show pilot"


def test_a_rehearsal_comes_before_the_approval_until_it_went_well() -> None:
    story = NextStory(approve=False, pool=False)
    assert story.commands[:2] == ["rlx study rehearse pilot", "rlx study approve pilot"]
    story.tell("rehearsed", contract=CONTRACT, ok=True, checks=[])
    assert story.kinds[0] == "approve"
    assert "an agent cannot" in story.next().why


def test_after_a_failed_rehearsal_its_fix_comes_before_another() -> None:
    story = NextStory(approve=False, pool=False)
    check = {"name": "training", "ok": False, "says": "it raised"}
    story.tell("rehearsed", contract=CONTRACT, ok=False, checks=[check], fix=["rlx", "logs", "pilot_001"])
    assert story.commands[:3] == ["rlx logs pilot_001", "rlx study rehearse pilot", "rlx study approve pilot"]
    assert "training: it raised" in story.next().why


def test_rehearsals_that_have_used_their_hour_are_not_recommended_again() -> None:
    story = NextStory(approve=False, pool=False)
    for number in range(12):
        story.intend(f"r{number}", "rehearsal", "smoke", (0,), reserve={"seeds": 0, "seconds": 300.0})
        story.end(f"r{number}", (0,), spent={"seeds": 0, "seconds": 300.0})
    assert story.kinds == ["approve", "report"]


def test_an_approval_that_expired_is_given_again_and_a_rehearsal_is_not_needed_first() -> None:
    story = NextStory()
    story.facts = replace(story.facts, now=NOW + 1e7)
    assert story.kinds[:2] == ["approve", "rehearse"]


@pytest.mark.parametrize(("level", "option"), [("signed", " --key FILE"), ("other user", " --document FILE")])
def test_an_approval_is_typed_at_the_contracts_level(level: str, option: str) -> None:
    story = NextStory(automation={"approval": level})
    assert story.commands[0] == f"rlx study approve pilot{option}"


@pytest.mark.parametrize("kind", ["stopped", "escalated"])
def test_a_halted_study_waits_for_a_person(kind: str) -> None:
    story = NextStory()
    story.tell(kind, rule="enough", why="enough")
    assert story.commands[0] == "rlx study approve pilot --go-on"
    assert "enough" in story.next().why


def test_a_running_job_is_waited_for_and_with_room_for_two_others_go_on() -> None:
    for parallel, kinds in ((1, ["wait", "report"]), (2, ["wait", "propose", "report"])):
        story = NextStory(parallel=parallel)
        story.bring("c001", "launched")
        assert story.kinds == kinds
        assert story.commands[0] == "rlx wait run_c001-t --timeout 300"


def test_the_pool_comes_before_a_proposal() -> None:
    story = NextStory(pool=False)
    assert story.commands[0] == "rlx study baseline pilot"
    assert NextStory().kinds[0] == "propose"


def test_a_baseline_that_the_budget_does_not_pay_for_is_not_recommended() -> None:
    story = NextStory(pool=False, budget={"seeds": 5})
    assert story.kinds == ["report"]
    assert "exceed the budget of 5" in story.next().why


@pytest.mark.parametrize(
    ("state", "command"),
    [
        ("draft", "rlx check candidate c001"),
        ("validated", "rlx launch c001 --phase trial --plan c001-plan"),
        ("completed", "rlx decide c001"),
        ("inconclusive", "rlx launch c001 --phase trial --plan c001-plan"),
    ],
)
def test_what_was_begun_is_finished_first(state: str, command: str) -> None:
    story = NextStory()
    story.bring("c001", state)
    assert story.commands[0] == command


def test_a_failed_candidate_is_looked_at_and_one_without_code_is_left() -> None:
    story = NextStory()
    story.bring("c001", "debug")
    assert (story.next().move.kind, str(story.next().command)) == ("mend", "rlx logs run_c001-t")
    story.files = {"c001": {"changes_code": False}}
    assert story.kinds == ["propose", "report"]
    story.files = {"c001": {"content": "changed"}}
    assert str(story.next().command) == "rlx check candidate c001"


@pytest.mark.parametrize(("outcome", "how", "kind"), [("lost", "lost", "check"), ("cancelled", "interrupted", "mend")])
def test_a_trial_that_was_cut_off_trains_the_same_seeds_again(outcome: str, how: str, kind: str) -> None:
    story = NextStory()
    story.bring("c001", "validated")
    story.job("t", "c001", "trial", (0, 1, 2), outcome=outcome, states={str(seed): how for seed in range(3)})
    assert (story.next().move.kind, str(story.next().command)) == (kind, "rlx check candidate c001")
    assert "trains the same seeds again" in story.next().why


def test_a_refused_draft_is_fixed_after_everything_that_goes_on_by_itself() -> None:
    story = NextStory()
    story.bring("c001", "draft")
    story.tell("refused", action="check", candidate="c001", reasons=[{"code": "SCOPE", "says": "it changes no code"}])
    assert story.next().move.kind == "mend"
    assert "it changes no code" in story.next().why
    story.bring("c002", "completed")
    assert story.kinds == ["decide", "propose", "mend", "report"]


def test_a_candidate_whose_code_was_edited_is_checked_in_its_worktree() -> None:
    story = NextStory()
    story.propose("c001")
    story.tell("moved", candidate="c001", before="draft", after="validated", plan="c001-plan", content="old")
    story.files = {"c001": {"content": "new", "worktree": "trees/c001"}}
    assert story.next().why == "c001 was edited in trees/c001 after it was checked"


def test_a_new_head_gets_fresh_seeds_that_are_measured_before_any_race() -> None:
    story = NextStory(budget={"seeds": 100})
    story.bring("c001", "advanced")
    story.bring("c002", "validated")
    assert story.commands[0] == "rlx launch c001 --phase promotion --plan c001-plan"
    assert not any(step.move.candidate == "c002" for step in story.steps())
    story.job("p", "c001", "promotion", tuple(range(6, 12)))
    assert story.commands[0] == "rlx verdict c001"
    for seed in range(6, 12):
        story.evaluate("c001", "promotion", seed, 4.0)
    assert story.commands[0] == "rlx launch c002 --phase trial --plan c002-plan"


def test_the_seeds_of_the_claim_are_kept_and_the_claim_trains_both_sides() -> None:
    story = NextStory(budget={"seeds": 26})
    story.bring("c001", "advanced")
    assert story.commands[0] == "rlx launch baseline --phase confirmation"
    story.confirm("baseline")
    assert story.commands[0] == "rlx launch c001 --phase confirmation --plan c001-plan"
    story.confirm("c001")
    assert (story.commands[0], story.next().move.phase) == ("rlx decide c001", "confirmation")


def test_a_claim_that_lacks_one_seed_needs_only_that_one() -> None:
    story = NextStory(budget={"seeds": 22})
    story.bring("c001", "advanced")
    story.confirm("baseline", tuple(range(1000, 1005)))
    story.confirm("c001")
    assert len(story.next().move.seeds) == 1


def test_a_claim_that_was_begun_comes_before_another_idea() -> None:
    story = NextStory(budget={"seeds": 100})
    story.bring("c001", "advanced")
    story.promote("c001")
    assert story.kinds[:2] == ["propose", "launch"]
    story.confirm("baseline")
    assert story.kinds[:2] == ["launch", "propose"]


def test_a_stop_rule_leaves_decisions_the_claim_and_a_person() -> None:
    story = NextStory(automation={"stop": ["rejected_in_a_row >= 1"]})
    story.bring("c001", "rejected")
    story.bring("c002", "validated")
    assert story.kinds == ["report", "approve"]
    assert story.next().why == "stop rule: rejected_in_a_row >= 1"
    other = NextStory(automation={"stop": ["spent > 0.1"]})
    other.bring("c001", "advanced")
    assert other.commands[0] == "rlx launch baseline --phase confirmation"
    assert "approve" not in other.kinds


def test_after_the_deadline_what_is_trained_is_decided_and_nothing_starts() -> None:
    story = NextStory(budget={"until": "2020-01-01"})
    story.bring("c001", "validated")
    assert (story.kinds[0], story.next().why) == ("report", "no job starts after 2020-01-01")
    story.bring("c002", "completed")
    assert story.commands[0] == "rlx decide c002"


@pytest.mark.parametrize(
    ("budget", "why"),
    [
        ({"seeds": 20}, "too few seeds: 14 left, 12 kept for the claim, and 9 needed for a trial and a new head"),
        ({"candidates": 1}, "the contract's candidates are tried"),
    ],
)
def test_a_study_that_is_over_says_why_asks_for_its_report_once_and_is_done(budget: dict[str, Any], why: str) -> None:
    story = NextStory(budget=budget)
    if "candidates" in budget:
        story.bring("c001", "rejected")
    assert (story.next().move.kind, story.next().why) == ("report", why)
    take_over = Command(("git", "apply", "c001.patch"), needs_person=True)
    story.facts = replace(story.facts, is_reported=True, take_over=take_over)
    assert story.kinds == ["done", "take over", "report"]
    assert (str(story.next().command), story.next().why) == ("rlx study verify pilot", f"{why}; the report is written")


@pytest.mark.parametrize(("state", "why"), [("confirmed", "c001 confirmed"), ("reverted", "none was confirmed")])
def test_what_only_serves_the_race_goes_when_the_claims_are_made(state: str, why: str) -> None:
    story = NextStory(budget={"seeds": 100})
    story.bring("c001", "advanced")
    story.claim("c001")
    story.decide("c001", "confirmed" if state == "confirmed" else "rejected", test="claim")
    story.bring("c002", "validated")
    assert (story.next().move.kind, story.next().why) == ("report", f"the contract's claims are made, {why}")


def test_a_study_that_is_not_the_active_one_is_named_in_every_command() -> None:
    story = NextStory()
    story.bring("c001", "draft")
    steps = story.steps(study_words=("--study", "pilot"), has_proposal=True)
    assert [str(step.command) for step in steps] == [
        "rlx check candidate c001 --study pilot",
        "rlx propose --file candidate.json --study pilot",
        "rlx study report pilot",
    ]


def test_what_a_proposal_holds_is_shown_until_one_is_written_down() -> None:
    story = NextStory()
    assert str(story.next().command) == "rlx schema candidate"
    assert "then rlx propose --file candidate.json" in story.next().why
    assert str(story.next(has_proposal=True).command) == "rlx propose --file candidate.json"


def test_a_candidate_that_builds_on_an_older_head_says_so_before_it_is_launched() -> None:
    story = NextStory()
    story.bring("c001", "validated")
    note = "c001 builds on baseline"
    assert story.next(build_notes={"c001": note}).why == f"c001 was checked; {note}"
