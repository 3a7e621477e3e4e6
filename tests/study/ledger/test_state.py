from __future__ import annotations

import random
import secrets
from dataclasses import replace
from pathlib import Path

import pytest

from rlx.errors import Refused
from rlx.study.budget import Amount
from rlx.study.ledger.lifecycle import DRAWN_SEEDS
from rlx.study.ledger.state import draw_seeds, lawful, next_seeds, replay
from tests.study.story import Story


def says(story: Story) -> list[str]:
    return [violation.says for violation in story.state.violations]


def test_an_empty_ledger_is_a_study_with_nothing_but_its_baseline() -> None:
    state = replay(())

    assert (state.contract, state.approval, state.head, state.incumbent) == (None, None, "baseline", None)
    assert (state.spent, state.reserved, state.claims, dict(state.candidates)) == (Amount(), Amount(), 0, {})


def test_a_study_that_goes_well_is_told_in_full() -> None:
    story = Story()
    story.bring("c001", "confirmed")
    story.bring("c002", "rejected")
    story.bring("c003", "advanced")
    story.intend("open", "c003", "promotion", (7, 8))
    state = story.state

    assert state.violations == ()
    assert (state.head, state.incumbent) == ("c003", "c001")
    assert state.head_history == ("baseline", "c001", "c003")
    assert state.spent == Amount(3 + 3 + 2 + 2 + 3 + 3, 30.0 * 16)
    assert state.reserved == Amount(2, 120.0)
    assert [job.id for job in state.open_jobs] == ["open"]
    assert state.scores("baseline", "baseline") == {0: 1.0, 1: 2.0, 2: 3.0}
    assert state.scores("c001") == {0: 4.0, 1: 5.0, 2: 6.0, 1000: 5.0, 1001: 5.0}
    assert state.used_seeds("c003") == {0, 1, 2, 7, 8}
    assert (state.claims, state.claimed) == (1, {"c001"})
    assert state.launched == {"c001", "c002", "c003"}
    assert [event["decision"] for event in state.decisions] == ["advanced", "confirmed", "rejected", "advanced"]
    assert [job.id for job in state.jobs_of("c001", "trial")] == ["c001-t"]


def test_replaying_twice_or_with_rows_doubled_is_the_same_state() -> None:
    story = Story()
    story.bring("c001", "confirmed")
    doubled = [event for event in story.events for _ in range(2)]

    assert replay(doubled) == replay(story.events) == story.state
    assert replay([*story.events, *story.events]) == story.state


def test_order_is_the_rows_and_never_the_clocks() -> None:
    story = Story()
    story.bring("c001", "advanced")
    times = [event.time for event in story.events]
    random.Random(0).shuffle(times)
    shuffled = [replace(event, time=time) for event, time in zip(story.events, times, strict=True)]

    assert replay(shuffled).candidates["c001"].state == "advanced"
    assert replay(shuffled).violations == ()


def test_a_seed_is_used_up_by_whatever_became_of_it_unless_nothing_started_or_it_was_lost() -> None:
    story = Story()
    for number, outcome in enumerate(("failed", "lost", "cancelled", "timeout")):
        story.job(f"j{number}", "baseline", "baseline", (10 + number,), outcome=outcome)
    story.intend("never", "baseline", "baseline", (20,))
    story.end("never", outcome="abandoned")

    assert story.state.used_seeds("baseline") == {0, 1, 2, 10, 12, 13}
    assert next_seeds(story.state, "baseline", "search", 9) == (3, 4, 5, 6, 7, 8, 9, 11, 14)
    assert next_seeds(story.state, "baseline", "confirm", 2) == (1000, 1001)
    story.intend("again", "baseline", "baseline", (20,))
    assert says(story) == []
    assert story.state.spent.seeds == 3 + 4
    story.intend("used", "baseline", "baseline", (10,))
    assert says(story) == ["a seed was used by baseline before"]


def test_seeds_that_are_used_up_are_said_to_be() -> None:
    story = Story()
    story.intend("all", "baseline", "baseline", tuple(range(3, 999)))

    with pytest.raises(Refused, match="all but 1 of the 1000 search seeds"):
        next_seeds(story.state, "baseline", "search", 2)


def test_reverting_the_incumbent_leaves_the_one_before_it() -> None:
    story = Story()
    story.bring("c001", "confirmed")
    story.bring("c002", "advanced")
    story.claim("c002", seeds=(1002, 1003))
    story.decide("c002", "confirmed")
    assert (story.state.incumbent, story.state.claims) == ("c002", 2)
    story.tell("moved", candidate="c002", before="confirmed", after="reverted", why="asked")

    assert (story.state.head, story.state.incumbent) == ("c001", "c001")
    assert says(story) == []


def test_rows_in_a_row_are_counted() -> None:
    story = Story()
    for number in range(1, 4):
        story.bring(f"c00{number}", "rejected")
    story.bring("c004", "debug")
    story.bring("c005", "inconclusive")
    assert (story.state.rejected_in_a_row, story.state.debug_in_a_row) == (3, 0)
    story.bring("c006", "debug")
    story.bring("c007", "debug")
    assert story.state.debug_in_a_row == 2
    story.bring("c008", "advanced")

    assert (story.state.rejected_in_a_row, story.state.debug_in_a_row) == (0, 0)
    for number in (9, 10, 11):
        story.bring(f"c0{number:02d}", "completed")
        story.decide(f"c0{number:02d}", "debug")
    assert story.state.debug_in_a_row == 3


def test_refusals_are_counted_and_the_last_one_kept() -> None:
    story = Story()
    for code in ("SCOPE", "PLAN"):
        story.tell("refused", action="launch", candidate="c001", reasons=[{"code": code, "says": ""}])

    assert story.state.refusals == 2
    assert story.state.last_refusal is story.events[-1]


def test_a_lawful_ledger_writes_no_row_that_is_no_legal_move(tmp_path: Path) -> None:
    ledger = lawful(tmp_path / "ledger.jsonl")
    ledger.append("created", contract="c")
    before = ledger.path.read_bytes()
    with pytest.raises(Refused, match="`ended` cannot be written into the ledger: the job j was never launched"):
        ledger.append("ended", job="j", outcome="lost", spent={"seeds": 0, "seconds": 0.0})
    with ledger.held() as held, pytest.raises(Refused, match="there is no such event"):
        held.append("invented")

    assert ledger.path.read_bytes() == before
    ledger.append("stopped", rule="enough")
    assert replay(ledger.events()).violations == ()


def test_a_lawful_ledger_that_was_tampered_with_still_takes_legal_rows(tmp_path: Path) -> None:
    from rlx.study.ledger.ledger import Ledger

    path = tmp_path / "ledger.jsonl"
    lawful(path).append("created", contract="c")
    Ledger(path).append("invented")
    lawful(path).append("refused", action="launch", reasons=[])

    assert [violation.row for violation in replay(lawful(path).events()).violations] == [2]


def test_seeds_of_a_claim_are_drawn_at_random_and_those_cut_off_come_first() -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.job("claim", "c001", "confirmation", (5000, 6000), outcome="lost", states={"5000": "lost"})
    assert story.state.cut_off("c001", "confirmation") == {5000}
    places = iter((4000, 4000, 7, 7, 9))  # 6000 is used; a place that is drawn twice counts once
    drawn = draw_seeds(story.state, "c001", "confirmation", 3, random_below=lambda _: next(places))
    assert drawn == (5000, 2007, 2009)

    several = {draw_seeds(story.state, "baseline", "promotion", 4, random_below=secrets.randbelow) for _ in range(5)}
    assert len(several) == 5
    assert all(seed in DRAWN_SEEDS for seeds in several for seed in seeds)
