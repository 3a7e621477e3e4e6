"""What comes next in a study, from literal positions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest

from rlx.loop.agenda import Position, Standing, Waiting, agenda

APPROVED = Position("trot", is_rehearsed=True, pool=10, seeds_left=60, candidates_left=10)


def command(at: Position) -> str:
    return agenda(at).next.command


def test_an_open_point_of_the_contract_comes_before_everything() -> None:
    step = agenda(replace(APPROVED, missing=("tuning scope: not confirmed",), approval="nobody")).next
    assert step.action == "amend"
    assert "tuning scope" in step.why


def test_a_rehearsal_is_proposed_before_the_approval() -> None:
    at = replace(APPROVED, approval="nobody has approved the contract", is_rehearsed=False)
    plan = agenda(at)
    assert plan.next.command == "rlx study rehearse trot"
    assert plan.also[0].command == "rlx study approve trot"


def test_after_a_rehearsal_that_failed_what_mends_it_comes_before_another() -> None:
    at = replace(APPROVED, approval="nobody", is_rehearsed=False, rehearsal_failed="training: it raised",
                 rehearsal_mends="rlx logs trot_rehearsal_001")  # fmt: skip
    plan = agenda(at)
    assert plan.next.command == "rlx logs trot_rehearsal_001"
    assert "training: it raised" in plan.next.why
    assert plan.next.why.endswith("then rlx study rehearse trot")
    assert [one.command for one in plan.also[:2]] == ["rlx study rehearse trot", "rlx study approve trot"]
    assert agenda(replace(at, rehearsal_mends="")).next.command == "rlx study rehearse trot"


def test_after_the_rehearsal_a_person_approves() -> None:
    step = agenda(replace(APPROVED, approval="nobody has approved the contract")).next
    assert step.action == "approve"
    assert "an agent cannot" in step.why


def test_the_baselines_pool_is_filled_before_anything_is_proposed() -> None:
    assert command(replace(APPROVED, pool=4)) == "rlx study baseline trot"


def test_a_full_pool_and_budget_ask_for_a_proposal() -> None:
    assert agenda(APPROVED).next.action == "propose"


@pytest.mark.parametrize(
    ("standing", "expected"),
    [
        (Standing("c001", "draft"), "rlx check candidate c001"),
        (Standing("c001", "validated", "9f2c"), "rlx launch c001 --phase trial --plan 9f2c"),
        (Standing("c001", "completed"), "rlx decide c001"),
        (Standing("c001", "inconclusive", "9f2c", wants=3), "rlx launch c001 --phase trial --plan 9f2c"),
        (Standing("c001", "debug"), "rlx check candidate c001"),
    ],
)
def test_what_was_begun_is_finished_first(standing: Standing, expected: str) -> None:
    assert command(replace(APPROVED, standings=(standing,))) == expected


@pytest.mark.parametrize(("how", "action"), [("lost", "check"), ("stopped", "mend"), ("", "mend")])
def test_a_trial_that_was_lost_is_taken_up_again_and_one_that_was_stopped_when_somebody_says_so(
    how: Literal["", "lost", "stopped"], action: str
) -> None:
    at = replace(APPROVED, standings=(Standing("c001", "debug", ended="trot_c001_001: lost", cut_off=how),))
    step = agenda(at).next
    assert (step.action, step.command) == (action, "rlx check candidate c001")
    assert "trot_c001_001" in step.why
    assert ("the same seeds are trained again" in step.why) == bool(how)


def test_a_candidate_that_is_as_it_failed_is_looked_at_and_one_that_cannot_be_mended_is_left() -> None:
    failed = Standing("c001", "debug", ended="trot_c001_001: failed: KeyError", look="rlx logs trot_c001_001")
    plan = agenda(replace(APPROVED, option=" --study trot", standings=(failed,)))
    assert (plan.next.action, plan.next.command) == ("mend", "rlx logs trot_c001_001")
    assert "KeyError" in plan.next.why
    later = agenda(replace(APPROVED, standings=(failed, Standing("c002", "rejected"))))
    assert [step.action for step in (later.next, *later.also)] == ["propose", "mend", "report"]
    keys = replace(failed, is_mendable=False)
    plan = agenda(replace(APPROVED, standings=(keys,)))
    assert [step.action for step in (plan.next, *plan.also)] == ["propose", "report"]


def test_a_candidate_that_failed_and_was_refused_since_says_what_refused_it() -> None:
    changed = Standing("c001", "debug", ended="trot_c001_001: failed: KeyError")
    assert agenda(replace(APPROVED, standings=(changed,))).next.why.endswith(
        "changed since: when it is mended, check it"
    )
    refused = replace(changed, refused="train.py: not in scope", worktree="trees/c001")
    why = agenda(replace(APPROVED, standings=(refused,))).next.why
    assert why.endswith("was refused since (train.py: not in scope): mend it in trees/c001 and check it")


def test_a_trial_of_which_seeds_were_lost_is_completed_and_leans_nowhere() -> None:
    short = Standing("c001", "inconclusive", "9f2c", trained=2, wants=1)
    assert agenda(replace(APPROVED, standings=(short,))).next.why == "c001 has 2 of 3 seeds: 1 further seed"
    leaning = replace(short, trained=3, wants=3)
    assert agenda(replace(APPROVED, standings=(leaning,))).next.why == "c001 leans the right way: 3 further seeds"


def test_a_draft_that_was_refused_is_somebodys_to_mend_after_all_that_goes_on_by_itself() -> None:
    refused = Standing("c002", "draft", refused="kind hyperparameter changes no code")
    step = agenda(replace(APPROVED, standings=(refused,))).next
    assert (step.action, step.command) == ("mend", "rlx check candidate c002")
    assert "changes no code" in step.why
    at = replace(APPROVED, standings=(refused, Standing("c003", "completed")))
    assert [step.action for step in (agenda(at).next, *agenda(at).also)] == ["decide", "propose", "mend", "report"]


def test_after_the_deadline_what_is_trained_is_decided_and_nothing_starts() -> None:
    over = replace(APPROVED, deadline="07:00", standings=(Standing("c001", "validated", "9f2c"),))
    assert (agenda(over).next.action, agenda(over).next.why) == ("report", "no job starts after 07:00")
    both = replace(over, head="c001", confirmed=frozenset({"baseline", "c001"}), standings=())
    assert command(both) == "rlx decide c001"


def test_a_running_job_is_waited_for() -> None:
    at = replace(APPROVED, waiting=(Waiting("j001", "trot_c001_001", "c001", "trial"),))
    assert command(at) == "rlx wait trot_c001_001 --timeout 300"


def test_with_room_for_two_jobs_others_go_on_meanwhile() -> None:
    at = replace(APPROVED, parallel=2, waiting=(Waiting("j001", "trot_c001_001", "c001", "trial"),))
    assert next(step.action for step in agenda(at).also) == "propose"


def test_a_head_that_moved_is_trained_on_fresh_seeds_then_measured() -> None:
    moved = replace(APPROVED, head="c001", plans={"c001": "9f2c"})
    assert command(moved) == "rlx launch c001 --phase promotion --plan 9f2c"
    assert command(replace(moved, head_fresh=6)) == "rlx verdict c001"
    assert agenda(replace(moved, head_fresh=6, head_measured=6)).next.action == "propose"


def test_seeds_of_the_claim_are_never_spent_on_trials() -> None:
    at = replace(APPROVED, head="c001", head_fresh=6, head_measured=6, plans={"c001": "9f2c"}, seeds_left=28)
    assert command(at) == "rlx launch baseline --phase confirmation"


def test_the_claim_trains_both_sides_then_decides() -> None:
    at = replace(APPROVED, head="c001", head_fresh=6, head_measured=6, plans={"c001": "9f2c"}, seeds_left=20)
    assert command(replace(at, seeds_left=10, confirmed=frozenset({"baseline"}))) == (
        "rlx launch c001 --phase confirmation --plan 9f2c"
    )
    both = replace(at, seeds_left=0, confirmed=frozenset({"baseline", "c001"}))
    assert command(both) == "rlx decide c001"


def test_without_a_moved_head_an_empty_budget_ends_in_the_report() -> None:
    assert command(replace(APPROVED, seeds_left=5)) == "rlx study report trot"


def test_a_stop_rule_ends_the_search_and_leaves_the_claim() -> None:
    stopped = replace(APPROVED, stop_rule="spent > 0.9", standings=(Standing("c002", "validated", "9f2c"),))
    assert agenda(stopped).next.action == "report"
    assert agenda(stopped).next.why == "stop rule: spent > 0.9"
    assert command(replace(stopped, standings=(Standing("c002", "completed"),))) == "rlx decide c002"
    moved = replace(stopped, head="c001", head_fresh=6, head_measured=6, plans={"c001": "9f2c"})
    assert command(moved) == "rlx launch baseline --phase confirmation"


def test_a_rule_that_counts_in_a_row_ends_where_a_person_says_so() -> None:
    plan = agenda(replace(APPROVED, stop_rule="rejected_in_a_row >= 3"))
    assert plan.next.action == "report"
    assert "rlx study approve trot --go-on" in [step.command for step in plan.also]


@pytest.mark.parametrize("approval", ["", "the approval has run out"])
def test_a_study_that_was_halted_waits_for_a_person_whatever_its_approval(approval: str) -> None:
    halted = replace(
        APPROVED, halted="three starts without a row", approval=approval, head="c001", head_fresh=6, is_rehearsed=False
    )
    step = agenda(halted).next
    assert (step.action, step.command) == ("approve", "rlx study approve trot --go-on")
    assert "three starts without a row" in step.why


def test_a_ledger_that_is_not_sound_is_audited_and_nothing_else() -> None:
    plan = agenda(replace(APPROVED, violations=("row 3 (decided): there is no candidate c001",)))
    assert [plan.next.action, *(step.action for step in plan.also)] == ["audit", "report"]


def test_a_used_up_claim_is_not_offered_again() -> None:
    at = replace(APPROVED, head="c001", head_fresh=6, head_measured=6, claims_left=0, seeds_left=20)
    assert command(at) == "rlx study report trot"


@pytest.mark.parametrize(
    ("over", "why"),
    [
        ({"seeds_left": 7}, "too few seeds: 7 left, 20 kept for the claim, and 9 needed for a trial and a new head"),
        ({"candidates_left": 0}, "the contract's candidates are tried"),
        ({"searches": False, "claims_left": 0}, "the contract's claims are made, none was confirmed"),
        (
            {"searches": False, "head": "c001", "standings": (Standing("c001", "confirmed"),)},
            "the contract's claims are made (c001 confirmed)",
        ),
        ({"stop_rule": "spent > 0.9"}, "stop rule: spent > 0.9"),
        ({"deadline": "07:00"}, "no job starts after 07:00"),
    ],
)
def test_a_study_that_is_over_says_why_asks_for_its_report_once_and_is_done(over: dict[str, Any], why: str) -> None:
    ended = replace(APPROVED, **over)
    step = agenda(ended).next
    assert (step.action, step.why) == ("report", why)
    step = agenda(replace(ended, is_reported=True)).next
    assert (step.action, step.command) == ("done", "rlx study verify trot")
    assert step.why == f"{why}; the report is written"


def test_nothing_is_launched_that_the_seeds_do_not_pay_for() -> None:
    undecided = (Standing("c001", "inconclusive", "9f2c", wants=3), Standing("c002", "validated", "9f2c"))
    plan = agenda(replace(APPROVED, seeds_left=2, standings=undecided))
    assert [plan.next.action, *(step.action for step in plan.also)] == ["report"]
    moved = replace(APPROVED, head="c001", plans={"c001": "9f2c"}, seeds_left=5)
    assert agenda(moved).next.action == "report"
    assert agenda(moved).next.why == "too few seeds for the claim of c001: 5 left, 20 needed for both sides"


def test_a_study_that_is_not_in_use_is_named_in_every_command() -> None:
    plan = agenda(replace(APPROVED, option=" --study trot", has_proposal=True, standings=(Standing("c001", "draft"),)))
    assert [step.command for step in (plan.next, *plan.also)] == [
        "rlx check candidate c001 --study trot",
        "rlx propose --file candidate.json --study trot",
        "rlx study report trot",
    ]


def test_a_contract_that_lacks_nothing_but_a_word_is_confirmed_by_the_printed_command() -> None:
    step = agenda(replace(APPROVED, missing=("tuning scope: not confirmed",), unconfirmed=True)).next
    assert step.command.startswith("rlx study amend trot -s 'confirmed=[task, metric, scope, ")


def test_a_head_that_moved_has_its_fresh_seeds_before_others_are_raced_against_it() -> None:
    begun = (Standing("c001", "advanced"), Standing("c002", "validated", "9f2c"), Standing("c003", "completed", "9f2c"))
    moved = replace(APPROVED, head="c001", plans={"c001": "9f2c"}, standings=begun)
    for at in (moved, replace(moved, parallel=2, waiting=(Waiting("j1", "trot_c001_001", "c001", "promotion"),))):
        plan = agenda(at)
        assert not any(step.candidate in ("c002", "c003") for step in (plan.next, *plan.also))
    assert command(moved) == "rlx launch c001 --phase promotion --plan 9f2c"
    fresh = agenda(replace(moved, head_fresh=6, head_measured=6))
    assert [step.command for step in (fresh.next, *fresh.also)][:2] == [
        "rlx launch c002 --phase trial --plan 9f2c", "rlx decide c003",
    ]  # fmt: skip


def test_what_follows_a_trial_does_not_use_up_the_claim() -> None:
    leaning = Standing("c001", "inconclusive", "9f2c", trained=3, wants=3)
    assert agenda(replace(APPROVED, seeds_left=23, standings=(leaning,))).next.action == "launch"
    assert agenda(replace(APPROVED, seeds_left=22, standings=(leaning,))).next.action == "report"
    moved = replace(APPROVED, head="c001", plans={"c001": "9f2c"}, standings=(Standing("c001", "advanced", "9f2c"),))
    assert command(replace(moved, seeds_left=26)) == "rlx launch c001 --phase promotion --plan 9f2c"
    assert command(replace(moved, seeds_left=25)) == "rlx launch baseline --phase confirmation"


@pytest.mark.parametrize(
    "standing",
    [
        Standing("c002", "validated", "7a1b"),
        Standing("c002", "completed"),
        Standing("c002", "inconclusive", "7a1b", 3, 3),
    ],
)
def test_every_race_waits_for_the_fresh_seeds_of_a_head_that_moved(standing: Standing) -> None:
    head = Standing("c001", "advanced", "9f2c")
    moved = replace(APPROVED, head="c001", plans={"c001": "9f2c"}, standings=(standing, head), parallel=2)
    plan = agenda(moved)
    assert plan.next.command == "rlx launch c001 --phase promotion --plan 9f2c"
    assert not any(step.candidate == "c002" for step in plan.also)
    busy = replace(moved, waiting=(Waiting("j009", "trot_c001_002", "c001", "promotion"),))
    assert not any(step.candidate == "c002" for step in (agenda(busy).next, *agenda(busy).also))
    trained = replace(moved, head_fresh=6)
    assert (command(trained), {step.candidate for step in agenda(trained).also} & {"c002"}) == (
        "rlx verdict c001",
        set(),
    )
    assert agenda(replace(trained, head_measured=6)).next.candidate == "c002"
    over = replace(moved, stop_rule="rejected_in_a_row >= 5")
    assert not any(step.candidate == "c002" for step in (agenda(over).next, *agenda(over).also))


def test_a_candidate_that_builds_on_an_older_head_says_so_before_it_is_launched() -> None:
    late = Standing("c002", "validated", "7a1b", beside="c002 builds on baseline: it is raced against the head c001")
    at = replace(APPROVED, head="c001", head_fresh=6, head_measured=6, standings=(late,))
    assert agenda(at).next.why == "c002 was checked; c002 builds on baseline: it is raced against the head c001"


def test_a_claim_that_was_begun_is_finished_before_another_idea_is_asked_for() -> None:
    moved = replace(APPROVED, head="c001", head_fresh=6, head_measured=6, plans={"c001": "9f2c"},
                    standings=(Standing("c001", "advanced", "9f2c"),))  # fmt: skip
    assert agenda(moved).next.action == "propose"
    begun = replace(moved, confirmed=frozenset({"baseline"}), seeds_left=50)
    plan = agenda(begun)
    assert plan.next.command == "rlx launch c001 --phase confirmation --plan 9f2c"
    assert plan.also[0].action == "propose"
    assert command(replace(begun, confirmed=frozenset({"baseline", "c001"}))) == "rlx decide c001"
    trains = (Waiting("j", "trot_baseline_002", "baseline", "confirmation"),)
    both = agenda(replace(moved, waiting=trains, parallel=2))
    assert [one.action for one in (both.next, *both.also)][:3] == ["wait", "launch", "propose"]


@pytest.mark.parametrize(
    "standing",
    [
        Standing("c001", "draft", worktree=".rlx/w/c001"),
        Standing("c001", "draft", refused="it changes nothing", worktree=".rlx/w/c001"),
        Standing("c001", "debug", look="rlx logs trot_c001_001", worktree=".rlx/w/c001"),
    ],
)
def test_whoever_starts_cold_is_told_where_a_candidates_code_is_changed(standing: Standing) -> None:
    assert " in .rlx/w/c001" in agenda(replace(APPROVED, standings=(standing,))).next.why


def test_a_claim_that_was_taken_back_is_not_called_one_that_was_never_confirmed() -> None:
    over = replace(APPROVED, standings=(Standing("c001", "reverted"),), claims_left=0, searches=False)
    assert agenda(over).next.why == "the contract's claims are made, none stands (c001 taken back)"


@pytest.mark.parametrize(
    "late",
    [
        Standing("c003", "debug", look="rlx logs trot_c003_001", is_tried=True),
        Standing("c003", "debug", cut_off="lost", is_tried=True),
        Standing("c003", "draft"),
        Standing("c003", "draft", refused="it changes nothing"),
        Standing("c003", "validated", "9f2c"),
        Standing("c003", "inconclusive", "9f2c", trained=3, wants=3, is_tried=True),
    ],
)
def test_what_only_serves_the_race_goes_when_the_claims_are_made(late: Standing) -> None:
    confirmed = Standing("c001", "confirmed", "9f2c", is_tried=True)
    over = replace(APPROVED, head="c001", standings=(confirmed, late), claims_left=0, searches=False)
    assert agenda(over).next.why == "the contract's claims are made (c001 confirmed)"
    done = agenda(replace(over, is_reported=True, takes_over="git apply c001.patch"))
    assert [one.action for one in (done.next, *done.also)] == ["done", "take over", "report"]
    trained = replace(late, state="completed")
    assert command(replace(over, standings=(confirmed, trained), head_measured=6)) == "rlx decide c003"


@pytest.mark.parametrize("late", [Standing("c002", "draft"), Standing("c002", "validated", "9f2c")])
def test_a_candidate_more_than_the_contract_has_is_not_led_to_a_trial_and_one_that_was_tried_is(late: Standing) -> None:
    over = replace(APPROVED, candidates_left=0, standings=(late,))
    assert (agenda(over).next.action, agenda(over).next.why) == ("report", "the contract's candidates are tried")
    assert agenda(replace(over, standings=(replace(late, is_tried=True),))).next.candidate == "c002"


def test_a_candidate_is_not_mended_for_a_trial_that_the_seeds_do_not_pay_for() -> None:
    failed = Standing("c001", "debug", look="rlx logs trot_c001_001", is_tried=True)
    assert agenda(replace(APPROVED, seeds_left=23, standings=(failed,))).next.action == "mend"
    assert agenda(replace(APPROVED, seeds_left=22, standings=(failed,))).next.action == "report"


def test_a_head_that_nothing_can_be_raced_against_any_more_is_claimed_without_fresh_seeds_for_races() -> None:
    moved = replace(APPROVED, head="c001", plans={"c001": "9f2c"}, candidates_left=0,
                    standings=(Standing("c001", "advanced", "9f2c", is_tried=True),))  # fmt: skip
    assert command(moved) == "rlx launch baseline --phase confirmation"
    rival = Standing("c002", "inconclusive", "7a1b", trained=3, wants=3, is_tried=True)
    assert command(replace(moved, standings=(*moved.standings, rival))).startswith("rlx launch c001 --phase promotion")


def test_an_approval_that_ended_in_the_middle_of_a_study_is_given_again_and_a_rehearsal_may_be() -> None:
    ended = replace(APPROVED, is_rehearsed=False, has_trained=True, approval="the approval was good until noon")
    plan = agenda(ended)
    assert plan.next.command == "rlx study approve trot"
    assert plan.next.why.startswith("the approval was good until noon")
    assert plan.also[0].command == "rlx study rehearse trot"
    failed = agenda(replace(ended, rehearsal_failed="training: it raised"))
    assert failed.next.command == "rlx study rehearse trot"


@pytest.mark.parametrize(("level", "option"), [("signed", " --key FILE"), ("other user", " --document FILE")])
def test_an_approval_is_asked_for_as_the_contracts_level_is_typed(level: Any, option: str) -> None:
    asked = replace(APPROVED, level=level, approval="nobody approved the contract")
    assert command(asked) == f"rlx study approve trot{option}"
    assert command(replace(asked, halted="three starts")) == f"rlx study approve trot --go-on{option}"


def test_what_a_proposal_holds_is_shown_until_one_is_written_down() -> None:
    step = agenda(replace(APPROVED, option=" --study trot")).next
    assert (step.action, step.command) == ("propose", "rlx schema candidate")
    assert "then rlx propose --file candidate.json --study trot; or" in step.why
    assert command(replace(APPROVED, has_proposal=True)) == "rlx propose --file candidate.json"
