from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlx.study.budget import Amount
from rlx.study.ledger.replay import PATIENCE, PINNED
from rlx.study.ledger.state import next_seeds
from tests.study.story import CONTRACT, Story

NOTHING = {"seeds": 0, "seconds": 0.0}


def says(story: Story) -> list[str]:
    return [violation.says for violation in story.state.violations]


def refused(story: Story, kind: str, /, **fields: Any) -> str:
    """Tell a row that must change nothing but the violations, and return why."""
    before = story.state
    story.tell(kind, **fields)
    after = story.state
    (violation,) = after.violations[len(before.violations) :]
    assert after.__dict__ | {"rows": 0, "violations": ()} == before.__dict__ | {"rows": 0, "violations": ()}
    return violation.says


def test_nothing_comes_before_the_study_was_created_and_it_is_created_once() -> None:
    story = Story(approve=False, pool=False)
    assert refused(story, "created", contract="other") == "a study is created once"
    story.events.clear()
    assert refused(story, "stopped", rule="x") == "the study was not created yet"


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("invented", {}),
        ("moved", {}),
        ("moved", {"candidate": ["c001"], "before": "draft", "after": "validated"}),
        ("moved", {"candidate": "c001", "before": "draft", "after": "validated"}),
        ("intent", {"job": "x", "candidate": "baseline", "phase": "baseline", "seeds": [9], "reserve": {}}),
        ("intent", {"job": "x", "candidate": "baseline", "phase": ["trial"], "seeds": [9], "reserve": {}}),
        ("ended", {"job": "b"}),
        ("ended", {"job": "open", "outcome": "completed", "spent": {"seeds": -1, "seconds": 0.0}}),
        ("ended", {"job": "open", "outcome": "completed", "spent": {"seeds": 0, "seconds": "NaN"}}),
        ("ended", {"job": "open", "outcome": "fine", "spent": {"seeds": 0, "seconds": 0.0}}),
        ("ended", {"job": "open", "outcome": "failed", "spent": NOTHING, "seeds": {"9": "completed"}}),
        ("ended", {"job": "open", "outcome": "failed", "spent": NOTHING, "seeds": {"3": "completed"}}),
        ("weights", {"candidate": "c001", "run": "run_b", "checkpoints": {"0": "x"}}),
        ("drawn", {"purpose": "hold-out", "first": 0, "episodes": 1, "candidates": ["c001"]}),
        ("evaluated", {"candidate": "c001", "phase": "trial", "seed": 0, "level": "sealed", "score": 1.0}),
        ("decided", {"candidate": "baseline", "decision": "confirmed"}),
        ("decided", {"candidate": "c001", "decision": "launched"}),
        ("approved", {"contract": CONTRACT, "level": "royal", "by": "x", "human": False, "expires": 1}),
        ("approved", {"contract": CONTRACT, "level": "asserted", "by": "x", "human": True, "expires": 1}),
        ("claimed", {"job": "unknown"}),
        ("released", {"job": "unknown"}),
        ("anchored", {"commit": "x", "head": "elsewhere"}),
        ("proposed", {"candidate": "baseline", "kind": "code", "sha256": "x"}),
        ("proposed", {"candidate": "../c001", "kind": "code", "sha256": "x"}),
        ("rehearsed", {"contract": CONTRACT, "ok": "yes"}),
        ("refused", {"action": "launch"}),
    ],
)  # fmt: skip
def test_a_row_that_is_no_legal_move_is_noted_and_changes_nothing(kind: str, fields: dict[str, Any]) -> None:
    story = Story()
    story.propose("c001")
    story.intend("open", "baseline", "baseline", (3,))

    assert refused(story, kind, **fields)


def test_an_intent_without_an_approval_of_this_very_contract_is_a_violation() -> None:
    story = Story(approve=False, pool=False)
    row = {
        "job": "j",
        "candidate": "baseline",
        "phase": "baseline",
        "seeds": [0],
        "reserve": {"seeds": 1, "seconds": 1},
    }
    assert refused(story, "intent", **row) == "no approval of the contract stands"
    story.approve()
    story.tell("amended", contract="d" * 64)
    assert refused(story, "intent", **row) == "no approval of the contract stands"
    story.approve("d" * 64)
    story.tell("intent", **row)
    assert "j" in story.state.jobs


def test_a_rehearsal_may_smoke_before_anybody_approved() -> None:
    story = Story(approve=False, pool=False)
    story.job("r", "rehearsal", "smoke", (0,), spent={"seeds": 1, "seconds": 3.0})
    story.tell("rehearsed", contract=CONTRACT, ok=True, checks=[], enforced={})

    assert says(story) == []
    assert story.state.rehearsal is story.events[-1]
    assert story.state.spent == Amount(0, 3.0)
    assert story.state.used_seeds("rehearsal") == frozenset()


def test_an_approval_cannot_be_used_twice() -> None:
    story = Story(approve=False, pool=False)
    story.approve(nonce="n")
    story.tell("amended", contract="other")
    fields = {"contract": CONTRACT, "level": "asserted", "by": "ada", "human": False, "expires": 9e9, "nonce": "n"}

    assert refused(story, "approved", **fields) == "the approval was used before"


def test_a_stopped_study_launches_nothing_until_somebody_says_that_it_goes_on() -> None:
    story = Story()
    story.tell("stopped", rule="rejected_in_a_row >= 5")
    story.tell("escalated", why="no progress")
    assert (story.state.stop, story.state.escalation) == ("rejected_in_a_row >= 5", "no progress")
    story.intend("x", "baseline", "baseline", (5,))
    assert says(story) == ["the study is stopped"]
    story.approve()
    assert (story.state.stop, story.state.escalation) == ("rejected_in_a_row >= 5", "no progress")
    story.approve(goes_on=True)
    assert (story.state.stop, story.state.escalation) == (None, None)


@pytest.mark.parametrize(("phase", "seeds"), [("baseline", (0, 1)), ("confirmation", (1000, 1001))])
def test_a_round_of_the_baseline_in_which_every_seed_failed_calls_for_a_person(
    phase: str, seeds: tuple[int, ...]
) -> None:
    story = Story(pool=False)
    story.job("j", "baseline", phase, seeds, outcome="failed", says="seeds 0, 1 failed: KeyError")
    why = f"seeds 0, 1 failed: KeyError; see rlx logs run_j; {PINNED}"
    assert story.state.escalation == f"no seed of run_j (baseline, {phase}) has a score: {why}"
    story.approve(goes_on=True)
    assert story.state.escalation is None


def test_a_round_of_the_baseline_of_which_nothing_can_be_measured_calls_for_a_person() -> None:
    story = Story(pool=False)
    story.job("j", "baseline", "baseline", (0, 1), scores=(math.nan,))
    assert story.state.escalation is None
    story.evaluate("baseline", "baseline", 1, math.nan, failure="the eval command ended with exit code 1")
    why = f"the eval command ended with exit code 1; {PINNED}"
    assert story.state.escalation == f"no seed of run_j (baseline, baseline) has a score: {why}"


@pytest.mark.parametrize(
    ("states", "calls"),
    [
        ({"0": "failed", "1": "completed"}, False),
        ({"0": "failed", "1": "lost"}, False),
        ({"0": "lost", "1": "interrupted"}, False),
        ({"0": "failed", "1": "failed"}, True),
    ],
)
def test_a_round_that_left_something_or_was_cut_off_calls_for_nobody(states: dict[str, str], calls: bool) -> None:
    story = Story(pool=False)
    story.job("j", "baseline", "baseline", (0, 1), outcome="failed", states=states)
    assert (story.state.escalation is not None) == calls


def test_what_was_counted_in_a_row_begins_anew_where_a_person_lets_a_study_go_on() -> None:
    story = Story()
    story.bring("c001", "rejected")
    story.bring("c002", "debug")
    assert (story.state.rejected_in_a_row, story.state.debug_in_a_row) == (1, 1)
    story.approve()
    assert (story.state.rejected_in_a_row, story.state.debug_in_a_row) == (1, 1)
    story.approve(goes_on=True)
    assert (story.state.rejected_in_a_row, story.state.debug_in_a_row) == (0, 0)


def test_a_refusal_is_open_until_something_is_done() -> None:
    story = Story()
    refusal = story.tell("refused", action="propose", candidate="c001", reasons=[{"code": "CANDIDATE", "says": "x"}])
    story.tell("anchored", commit="x", head=refusal.hash)
    assert story.state.open_refusal is refusal
    story.propose("c001")
    assert (story.state.open_refusal, story.state.last_refusal, story.state.refusals) == (None, refusal, 1)


@pytest.mark.parametrize(("word", "field"), [("stop", "stop"), ("escalate", "escalation")])
def test_a_decision_to_stop_or_to_escalate_counts_without_a_second_row(word: str, field: str) -> None:
    story = Story()
    story.bring("c001", "completed")
    story.decide("c001", "rejected", study=word, says="nothing helps")

    assert getattr(story.state, field) == "nothing helps"


def test_a_job_is_launched_started_and_ended_once() -> None:
    story = Story()
    for kind, fields in (
        ("intent", {"job": "b", "candidate": "baseline", "phase": "baseline", "seeds": [7],
                    "reserve": {"seeds": 1, "seconds": 1.0}}),
        ("started", {"job": "b", "run": "run_b", "process": {"pid": 8}}),
        ("ended", {"job": "b", "outcome": "lost", "seeds": {}, "spent": {"seeds": 0, "seconds": 0.0}}),
    ):  # fmt: skip
        assert refused(story, kind, **fields)
    story.intend("two", "baseline", "baseline", (8,))
    story.start("two")
    assert refused(story, "started", job="two", run="run_two", process={"pid": 9}) == "the job two was started before"


def test_a_trial_that_ends_before_anybody_said_it_started_has_been_launched() -> None:
    story = Story()
    story.bring("c001", "validated")
    story.intend("t", "c001", "trial", (0, 1))
    assert story.state.candidates["c001"].state == "validated"
    story.end("t", (0, 1))

    assert story.state.candidates["c001"].state == "completed"
    assert says(story) == []


def test_an_abandoned_trial_leaves_its_candidate_where_it_was() -> None:
    story = Story()
    story.bring("c001", "validated")
    story.intend("t", "c001", "trial", (0, 1))
    story.end("t", outcome="abandoned")

    assert story.state.candidates["c001"].state == "validated"
    assert story.state.launched == frozenset()
    assert says(story) == []


@pytest.mark.parametrize(
    ("first", "second", "state"),
    [
        ("completed", "failed", "completed"),
        ("failed", "completed", "completed"),
        ("failed", "oom", "debug"),
        ("completed", "abandoned", "completed"),
        ("failed", "abandoned", "debug"),
    ],
)
def test_a_candidate_is_launched_until_its_last_trial_ends(first: str, second: str, state: str) -> None:
    story = Story()
    story.bring("c001", "validated")
    story.intend("one", "c001", "trial", (0,))
    story.start("one")
    story.intend("two", "c001", "trial", (1,))
    story.end("one", (0,), first)
    assert story.state.candidates["c001"].state == "launched"
    if second == "abandoned":
        story.end("two", outcome=second)
    else:
        story.start("two")
        story.end("two", (1,), second)

    assert story.state.candidates["c001"].state == state
    assert says(story) == []


def test_a_failure_of_the_first_wave_says_nothing_of_the_second() -> None:
    story = Story()
    story.bring("c001", "inconclusive")
    story.job("more", "c001", "trial", (3, 4, 5), outcome="failed")

    assert story.state.candidates["c001"].state == "debug"
    assert story.state.debug_in_a_row == 1


def test_smoke_promotion_and_confirmation_leave_the_state_alone() -> None:
    story = Story()
    story.bring("c001", "validated")
    story.job("s", "c001", "smoke", (0,), outcome="failed", spent={"seeds": 0, "seconds": 1.0})
    assert story.state.candidates["c001"].state == "validated"
    story.bring("c002", "advanced")
    story.job("p", "c002", "promotion", (7, 8, 9))
    assert story.state.candidates["c002"].state == "advanced"
    assert says(story) == []


def test_only_the_head_is_promoted_or_confirmed() -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.bring("c002", "advanced")
    story.intend("p", "c001", "promotion", (7,))
    story.intend("c", "c001", "confirmation", (1000,))

    assert says(story) == ["c001 is not the head"] * 2


def test_the_head_goes_back_to_what_still_stands() -> None:
    story = Story()
    for name in ("c001", "c002", "c003"):
        story.bring(name, "advanced")
    story.tell("moved", candidate="c002", before="advanced", after="reverted", why="asked")
    assert story.state.head == "c003"
    story.decide("c003", "rejected")
    assert story.state.head == "c001"
    story.tell("moved", candidate="c001", before="advanced", after="reverted", why="asked")

    assert story.state.head_history == ("baseline", "c001", "c002", "c003", "c001", "baseline")
    assert says(story) == []


def without(story: Story, kind: str, **fields: Any) -> Story:
    """Tell the same story but for the rows of a kind."""
    told = Story(approve=False, pool=False)
    told.events[:] = [
        event
        for event in story.events
        if event.kind != kind or any(event.get(name) != value for name, value in fields.items())
    ]
    return told


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("drawn", {}),
        ("weights", {"candidate": "baseline"}),
        ("weights", {"candidate": "c001"}),
        ("evaluated", {"candidate": "baseline", "phase": "confirmation"}),
        ("evaluated", {"candidate": "c001", "phase": "confirmation"}),
        ("intent", {"candidate": "c001", "phase": "confirmation"}),
        ("approved", {}),
        ("decided", {"decision": "advanced"}),
    ],
)
def test_nothing_becomes_incumbent_without_every_step_of_a_confirmation(kind: str, fields: dict[str, Any]) -> None:
    story = Story()
    story.bring("c001", "confirmed")
    assert story.state.incumbent == "c001"
    told = without(story, kind, **fields)

    assert told.state.incumbent is None
    assert told.state.violations


def test_scores_that_are_only_reported_and_provisional_decisions_confirm_nothing() -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.claim("c001")
    assert "provisional" in refused(story, "decided", candidate="c001", decision="confirmed", provisional=True)
    story.events[:] = [
        replace(event, fields={**event.fields, "level": "reported"}) if event.kind == "evaluated" else event
        for event in story.events
    ]
    assert "only reported" in refused(story, "decided", candidate="c001", decision="confirmed")


def test_a_checkpoint_that_comes_after_the_draw_is_not_measured_and_none_is_exchanged() -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.claim("c001")
    story.job("late", "c001", "confirmation", (1005,))
    story.tell("weights", candidate="c001", run="run_late", checkpoints={"1005": "late"})
    row = {"candidate": "c001", "phase": "confirmation", "level": "sealed", "file": "f", "sha256": "s", "score": 9.0}
    assert "drawn before the checkpoint" in refused(story, "evaluated", seed=1005, **row)
    assert "another score" in refused(story, "evaluated", seed=1000, **row)
    swapped = {"candidate": "c001", "run": "run_c001-c001-c", "checkpoints": {"1000": "swapped"}}
    assert "not the one that was recorded" in refused(story, "weights", **swapped)
    draw = {"purpose": "confirm", "first": 1, "episodes": 1, "candidates": ["baseline", "c001"]}
    assert "drawn before" in refused(story, "drawn", **draw)


def test_the_same_score_again_is_no_news_and_another_contract_measures_anew() -> None:
    story = Story()
    story.evaluate("baseline", "baseline", 0, 1.0)
    assert says(story) == []
    story.tell("amended", contract="d" * 64)
    story.evaluate("baseline", "baseline", 0, math.inf)

    assert says(story) == []
    assert story.state.scores("baseline")[0] == math.inf


def test_a_score_that_is_not_a_number_is_kept_as_such() -> None:
    story = Story()
    story.job("n", "baseline", "baseline", (5,))
    story.evaluate("baseline", "baseline", 5, "NaN")  # type: ignore[arg-type]

    assert math.isnan(story.state.scores("baseline", "baseline")[5])


def test_a_queued_job_waits_is_claimed_and_released_until_it_is_launched() -> None:
    story = Story()
    story.tell("queued", job="q", candidate="baseline", phase="baseline", seeds=[5])
    story.tell("claimed", job="q", process={"pid": 1}, until=1.0)
    assert story.state.queue["q"].claim is story.events[-1]
    story.tell("released", job="q")
    assert story.state.queue["q"].claim is None
    assert refused(story, "queued", job="q")
    story.intend("q", "baseline", "baseline", (5,))
    assert dict(story.state.queue) == {}
    story.tell("claimed", job="q", process={"pid": 1}, until=1.0)
    assert says(story) == ["the job q was queued before"]


def test_a_candidate_that_was_checked_is_launched_with_that_plan_and_no_other() -> None:
    story = Story()
    story.bring("c001", "validated")
    story.intend("other", "c001", "trial", (0,), plan="other-plan")
    story.intend("none", "c001", "trial", (0,), plan=None)
    assert says(story) == ["the plan is not the one that was checked", "the job names no plan"]


def test_an_amended_contract_asks_for_a_new_check_but_lets_the_head_go_on() -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.bring("c002", "validated")
    story.tell("amended", contract="d" * 64)
    story.approve("d" * 64)
    story.intend("t", "c002", "trial", (0,), plan="c002-plan")
    assert says(story) == ["the candidate was checked under another contract"]
    story.intend("p", "c001", "promotion", (7,), plan="plan-under-d")
    story.intend("q", "c001", "promotion", (8,), plan="c001-plan")

    assert says(story)[1:] == ["the plan is not the one that was checked"]
    assert story.state.candidates["c001"].plan == "plan-under-d"


def test_a_candidate_in_work_is_not_proposed_again_and_a_broken_one_is() -> None:
    story = Story()
    story.bring("c001", "validated")
    story.intend("t", "c001", "trial", (0,))
    row = {"candidate": "c001", "kind": "code", "sha256": "new"}
    assert "has a trial" in refused(story, "proposed", **row)
    story.start("t")
    assert "is launched" in refused(story, "proposed", **row)
    story.end("t", (0,), "failed")
    story.tell("proposed", **row)

    standing = story.state.candidates["c001"]
    assert (standing.state, standing.sha256, standing.plan) == ("draft", "new", None)


def test_a_candidate_that_is_proposed_again_keeps_what_was_decided_of_it() -> None:
    story = Story()
    story.bring("c001", "completed")
    story.decide("c001", "debug")
    decided = story.events[-1]
    story.propose("c001")

    assert story.state.candidates["c001"].decisions == (decided,)


def test_an_anchor_names_a_row_of_this_ledger() -> None:
    story = Story()
    story.tell("anchored", commit="abc", head=story.events[0].hash)

    assert story.state.anchor is story.events[-1]
    assert says(story) == []


def test_a_job_that_cannot_be_launched_leaves_the_queue() -> None:
    story = Story()
    story.tell("queued", job="q", candidate="baseline", phase="baseline", seeds=[5])
    story.tell("dropped", job="q", says="refused")

    assert dict(story.state.queue) == {}
    assert says(story) == []
    assert refused(story, "dropped", job="q") == "the job q does not wait"


def test_a_claim_that_was_not_shown_leaves_the_head_where_it_is() -> None:
    story = Story()
    story.bring("c001", "advanced")
    row = {"candidate": "c001", "decision": "inconclusive"}
    assert "cannot go from advanced to inconclusive" in refused(story, "decided", **row)
    story.events.pop()
    story.claim("c001")
    story.decide("c001", "inconclusive", provisional=True)
    state = story.state

    assert (state.candidates["c001"].state, state.head, state.incumbent) == ("advanced", "c001", None)
    assert state.head_history == ("baseline", "c001")
    assert state.decisions[-1] is story.events[-1]
    assert says(story) == []
    story.decide("c001", "rejected")
    assert story.state.head == "baseline"


def intent(job: str, name: str, phase: str, seeds: list[int], reserved: int) -> dict[str, Any]:
    reserve = {"seeds": reserved, "seconds": 60.0}
    return {"job": job, "candidate": name, "phase": phase, "seeds": seeds, "plan": "p", "reserve": reserve}


@pytest.mark.parametrize(
    ("kind", "fields", "why"),
    [
        ("moved", {"candidate": "c001", "before": "draft", "after": "reverted"}, "c001 is advanced, not draft"),
        ("moved", {"candidate": "c009", "before": "draft", "after": "validated"}, "there is no candidate c009"),
        ("intent", intent("x", "baseline", "trial", [50], 1), "baseline has no trial jobs"),
        ("intent", intent("x", "rehearsal", "baseline", [50], 1), "rehearsal has no baseline jobs"),
        ("intent", intent("x", "c009", "trial", [50], 1), "c009 has no trial jobs"),
        ("intent", intent("x", "baseline", "baseline", [50, 1000], 2), "a seed is not one for baseline"),
        ("intent", intent("x", "baseline", "confirmation", [999], 1), "a seed is not one for confirmation"),
        ("intent", intent("x", "baseline", "baseline", [50, 51], 1), "the job reserves fewer seeds than it trains"),
        ("started", {"job": "open", "run": "r", "process": None}, "a started job has a process"),
        ("ended", {"job": "open", "outcome": "completed", "seeds": {"9": "completed"},
                   "spent": {"seeds": 9, "seconds": 1.0}}, "the job open had no such seed"),
        ("ended", {"job": "open", "outcome": "fine", "spent": NOTHING}, "a job cannot end as `fine`"),
        ("ended", {"job": "open", "outcome": "completed", "seeds": {"3": "completed"}, "spent": NOTHING},
         "fewer seeds are accounted for than were completed"),
        ("drawn", {"purpose": "luck", "first": 1, "episodes": 1, "candidates": ["c001"]},
         "`luck` is drawn for 1 candidates"),
        ("drawn", {"purpose": "search", "first": 1, "episodes": 1, "candidates": []},
         "`search` is drawn for 0 candidates"),
        ("drawn", {"purpose": "hold-out", "first": 1, "episodes": 1, "candidates": ["c001"]},
         "`hold-out` is drawn for 1 candidates"),
        ("drawn", {"purpose": "confirm", "first": 1, "episodes": 1, "candidates": ["c001"]},
         "c001: drawn before every checkpoint was recorded"),
        ("evaluated", {"candidate": "c001", "phase": "trial", "seed": 0, "level": "guessed", "file": "f",
                       "sha256": "s", "score": 9.0}, "there is no level `guessed`"),
        ("evaluated", {"candidate": "c001", "phase": "trial", "seed": 77, "level": "sealed", "file": "f",
                       "sha256": "s", "score": 9.0}, "c001 trained no seed 77 in the phase trial"),
        ("decided", {"candidate": "c001", "decision": "reverted"}, "`reverted` is not a decision"),
        ("decided", {"candidate": "c001", "decision": "rejected", "study": "panic"}, "a study cannot `panic`"),
        ("decided", {"candidate": "c002", "decision": "advanced"}, "c002 has no scores"),
    ],
)  # fmt: skip
def test_a_row_says_why_it_is_no_legal_move(kind: str, fields: dict[str, Any], why: str) -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.propose("c002")
    story.validate("c002")
    story.job("unscored", "c002", "trial", (0, 1, 2))
    story.intend("open", "baseline", "baseline", (3,))

    assert refused(story, kind, **fields) == why


def test_a_claim_waits_for_every_confirmation_and_names_the_baseline() -> None:
    story = Story()
    story.bring("c001", "advanced")
    for side in ("baseline", "c001"):
        story.job(side, side, "confirmation", (1000,))
        story.tell("weights", candidate=side, run=f"run_{side}", checkpoints={"1000": side})
    story.intend("open", "c001", "confirmation", (1001,))
    draw = {"purpose": "confirm", "first": 1, "episodes": 1, "candidates": ["baseline", "c001"]}
    assert refused(story, "drawn", **draw) == "c001 has a confirmation that has not ended"
    story.end("open", (1001,))
    assert refused(story, "drawn", **draw) == "c001: drawn before every checkpoint was recorded"
    story.tell("weights", candidate="c001", run="run_open", checkpoints={"1001": "x"})
    row = {"candidate": "c001", "run": "run_c001", "checkpoints": {"1001": "x"}}
    assert "not a run of c001 with these seeds" in refused(story, "weights", **row)


def test_a_run_is_known_by_its_intent_too() -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.intend("p", "c001", "promotion", (7,), run="named")
    story.end("p", (7,))
    story.tell("weights", candidate="c001", run="named", checkpoints={"7": "x"})

    assert says(story) == []


def test_episodes_drawn_without_the_baseline_confirm_nothing() -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.claim("c001")
    story.events[:] = [
        replace(event, fields={**event.fields, "candidates": ["c001"]}) if event.kind == "drawn" else event
        for event in story.events
    ]
    why = refused(story, "decided", candidate="c001", decision="confirmed")
    assert why == "no episodes were drawn for it and the baseline"


def test_what_is_no_longer_the_head_is_not_confirmed() -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.claim("c001")
    story.bring("c002", "advanced")

    assert refused(story, "decided", candidate="c001", decision="confirmed") == "c001 is not the head"


def test_smoke_runs_reserve_seconds_and_no_seeds() -> None:
    story = Story()
    story.intend("s", "baseline", "smoke", (0,), reserve={"seeds": 5, "seconds": 60.0})

    assert story.state.reserved == Amount(0, 60.0)


def test_a_job_that_was_abandoned_after_it_started_has_used_its_seeds() -> None:
    story = Story()
    story.bring("c001", "validated")
    story.intend("j", "c001", "trial", (50,))
    story.start("j")
    story.end("j", outcome="abandoned")
    assert 50 in story.state.used_seeds("c001")
    story.tell("moved", candidate="c001", before="debug", after="draft", why="")
    story.validate("c001")
    story.intend("again", "c001", "trial", (50,))

    assert says(story) == ["a seed was used by c001 before"]


GARBAGE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "c001", "baseline", "open", "NaN"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["0", "seeds", "x"]), inner, max_size=2)
    ),
    max_leaves=3,
)
SOUND: dict[str, Any] = {
    "contract": CONTRACT, "ok": True, "level": "signed", "by": "ada", "human": True, "expires": 9e9, "nonce": "n",
    "candidate": "c001", "kind": "code", "sha256": "s", "before": "draft", "after": "validated", "plan": "p",
    "reasons": [], "job": "open", "phase": "trial", "seeds": [3], "reserve": {"seeds": 9, "seconds": 1.0}, "run": "r",
    "process": {"pid": 1}, "outcome": "completed", "spent": {"seeds": 9, "seconds": 1.0}, "checkpoints": {"3": "x"},
    "purpose": "confirm", "first": 1, "episodes": 1, "candidates": ["c001"], "seed": 3, "file": "f", "score": 1.0,
    "decision": "advanced", "study": "continue", "rule": "r", "why": "w", "head": "h", "commit": "k",
}  # fmt: skip
KINDS = [
    "created",
    "amended",
    "rehearsed",
    "approved",
    "proposed",
    "moved",
    "refused",
    "intent",
    "started",
    "ended",
    "weights",
    "drawn",
    "evaluated",
    "decided",
    "queued",
    "claimed",
    "released",
    "dropped",
    "stopped",
    "escalated",
    "anchored",
    "invented",
]


@settings(max_examples=300)
@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(sorted(SOUND)), GARBAGE, min_size=1, max_size=3))
def test_no_row_whatever_it_holds_breaks_the_replay(kind: str, garbage: dict[str, Any]) -> None:
    story = Story()
    story.propose("c001")
    story.intend("open", "baseline", "baseline", (3,))
    before = story.state
    story.tell(kind, **(SOUND | garbage))
    after = story.state

    if after.violations:
        assert after.__dict__ | {"rows": 0, "violations": ()} == before.__dict__ | {"rows": 0, "violations": ()}


@pytest.mark.parametrize("how", ["lost", "interrupted", "prepared"])
def test_a_seed_that_was_lost_or_stopped_is_trained_once_more_and_never_a_third_time(how: str) -> None:
    story = Story()
    story.bring("c001", "validated")
    states = {"3": "completed", "4": how, "5": "failed"}
    for number, seeds in enumerate(((3, 4, 5), (4,))):
        story.intend(f"t{number}", "c001", "trial", seeds)
        story.start(f"t{number}")
        ended = {str(seed): states[str(seed)] for seed in seeds}
        story.end(f"t{number}", seeds, outcome="lost", states=ended)
        story.decide("c001", "debug") if story.state.candidates["c001"].state == "completed" else None
        story.tell("moved", candidate="c001", before="debug", after="draft", why="")
        story.validate("c001")

    first, second = story.state.jobs_of("c001", "trial")
    assert says(story) == []
    assert (first.again, second.again) == ({4}, frozenset())
    assert (first.counted_seeds, second.counted_seeds) == ((3, 5), (4,))
    assert story.state.used_seeds("c001") == {3, 4, 5}
    story.intend("third", "c001", "trial", (4,))
    assert says(story) == ["a seed was used by c001 before"]


@pytest.mark.parametrize("how", ["lost", "interrupted", "running", ""])
@pytest.mark.parametrize(("name", "phase", "seed"), [("baseline", "confirmation", 1000), ("c001", "promotion", 3)])
def test_a_seed_that_others_are_compared_with_is_trained_again_as_often_as_it_takes(
    name: str, phase: str, seed: int, how: str
) -> None:
    story = Story()
    story.bring("c001", "advanced")
    for number in range(PATIENCE):
        assert story.state.escalation is None
        story.intend(f"j{number}", name, phase, (seed,))
        story.start(f"j{number}")
        story.end(f"j{number}", (seed,) if how else (), outcome="lost", states={str(seed): how} if how else None)
        assert story.state.cut_off(name, phase) == {seed}
        assert next_seeds(story.state, name, "search" if phase == "promotion" else "confirm", 1) == (seed,)
    assert f"{seed} of {name} ({phase}) lost or stopped 3 times" in str(story.state.escalation)
    story.job("last", name, phase, (seed,))

    assert says(story) == []
    assert story.state.cut_off(name, phase) == frozenset()
    assert seed in story.state.used_seeds(name)


@pytest.mark.parametrize("side", ["baseline", "c001"])
def test_a_claim_s_seed_that_was_stopped_under_way_calls_for_a_person_before_it_is_trained_again(side: str) -> None:
    story = Story()
    story.bring("c001", "advanced")
    states = {"1000": "completed", "1001": "interrupted", "1002": "prepared"}
    story.job("claim", side, "confirmation", (1000, 1001, 1002), outcome="cancelled", states=states)

    assert f"seed 1001 of {side} (confirmation) stopped under way" in str(story.state.escalation)
    assert story.state.cut_off(side, "confirmation") == {1001, 1002}
    story.approve(goes_on=True)
    story.job("again", side, "confirmation", (1001, 1002))
    assert (says(story), story.state.escalation) == ([], None)


def test_a_claim_s_seeds_that_a_stop_never_let_begin_or_that_were_lost_call_for_nobody() -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.job("stopped", "c001", "confirmation", (1000,), outcome="cancelled", states={"1000": "prepared"})
    story.job("lost", "c001", "confirmation", (1001,), outcome="lost", states={"1001": "lost"})

    assert story.state.escalation is None
    assert story.state.cut_off("c001", "confirmation") == {1000, 1001}


def test_a_seed_of_the_baseline_that_failed_by_itself_is_replaced() -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.job("b1", "baseline", "confirmation", (1000, 1001), states={"1000": "failed", "1001": "completed"})

    assert story.state.cut_off("baseline", "confirmation") == frozenset()
    assert next_seeds(story.state, "baseline", "confirm", 1) == (1002,)
    assert story.state.claim_lacks("baseline", "c001", 2) == 1


def test_seeds_that_a_stop_never_let_begin_call_for_nobody() -> None:
    story = Story()
    for number in range(PATIENCE + 1):
        story.job(f"p{number}", "baseline", "baseline", (7,), outcome="cancelled", states={"7": "prepared"})

    assert story.state.escalation is None
    assert story.state.lacks("baseline", "baseline", 3) == 1, "three have a score, and one was stopped"


def test_what_a_candidate_trained_before_it_was_mended_is_no_evidence() -> None:
    story = Story()
    story.bring("c001", "completed")
    story.decide("c001", "debug")
    story.tell("moved", candidate="c001", before="debug", after="draft", why="mended")
    assert [job.is_set_aside for job in story.state.jobs_of("c001", "trial")] == [False]
    story.tell("moved", candidate="c001", before="draft", after="validated", why="checked", plan="another plan")

    assert says(story) == []
    assert [job.counted_seeds for job in story.state.jobs_of("c001", "trial")] == [()]
    assert story.state.scores("c001", "trial") == {}
    assert story.state.used_seeds("c001") == {0, 1, 2}, "its luck is not tried again"


def test_a_candidate_that_is_checked_again_unchanged_keeps_what_it_trained() -> None:
    story = Story()
    story.bring("c001", "completed")
    story.decide("c001", "debug")
    story.tell("moved", candidate="c001", before="debug", after="draft", why="mended")
    story.validate("c001")

    assert [job.counted_seeds for job in story.state.jobs_of("c001", "trial")] == [(0, 1, 2)]
    assert len(story.state.scores("c001", "trial")) == 3


def test_every_claim_is_about_seeds_that_no_earlier_one_was_about() -> None:
    story = Story()
    story.bring("c001", "advanced")
    assert story.state.claim_seeds("baseline", "c001") == ()
    story.claim("c001", (1000, 1001))
    story.decide("c001", "confirmed")
    story.bring("c002", "advanced")
    assert story.state.claim_seeds("baseline", "c002") == (), "the first claim's baseline is the first claim's"
    story.job("baseline-2", "baseline", "confirmation", (1002, 1003))
    assert story.state.claim_seeds("baseline", "c002") == (1002, 1003)
    story.job("c002-2", "c002", "confirmation", (1000, 1001))
    for side, seeds in (("baseline", (1002, 1003)), ("c002", (1000, 1001))):
        hashes = {str(seed): f"{side}-{seed}-2" for seed in seeds}
        story.tell("weights", candidate=side, run=f"run_{side}-2", checkpoints=hashes)
    story.tell("drawn", purpose="confirm", first=10**6, episodes=50, candidates=["baseline", "c002"])
    for side, seeds in (("baseline", (1002, 1003)), ("c002", (1000, 1001))):
        for seed in seeds:
            story.evaluate(side, "confirmation", seed, 5.0)
    story.decide("c002", "confirmed")

    state = story.state
    assert says(story) == []
    assert [state.claim_seeds("baseline", name) for name in ("c001", "c002")] == [(1000, 1001), (1002, 1003)]
    assert [dict(draw.seeds) for draw in state.draws] == [
        {"baseline": {1000, 1001}, "c001": {1000, 1001}}, {"baseline": {1002, 1003}, "c002": {1000, 1001}},
    ]  # fmt: skip
    assert state.incumbent == "c002"


def test_a_claim_needs_seeds_of_the_baseline_that_are_its_own() -> None:
    story = Story()
    story.bring("c001", "confirmed")
    story.bring("c002", "advanced")
    story.job("c002-2", "c002", "confirmation", (1000,))
    story.tell("weights", candidate="c002", run="run_c002-2", checkpoints={"1000": "x"})
    fields = {"purpose": "confirm", "first": 5, "episodes": 50, "candidates": ["baseline", "c002"]}
    assert refused(story, "drawn", **fields) == "baseline: drawn before every checkpoint was recorded"


def test_a_crashed_seed_of_the_baselines_claim_is_replaced_and_one_of_the_heads_counts() -> None:
    story = Story()
    story.bring("c001", "advanced")
    for side in ("baseline", "c001"):
        story.intend(f"{side}-c", side, "confirmation", (1000, 1001))
        story.start(f"{side}-c")
        story.end(f"{side}-c", (1000, 1001), states={"1000": "completed", "1001": "failed"})
    assert [story.state.claim_size(side, "c001") for side in ("baseline", "c001")] == [1, 2]
