from __future__ import annotations

from typing import get_args

import pytest

from rlx.compare.comparability import SEED_RANGES
from rlx.study.ledger.lifecycle import (
    DECISIONS,
    LAUNCHES,
    MOVES,
    NULL_LAUNCHES,
    SEEDS,
    CandidateState,
    Phase,
    may_move,
    seeds_for,
)
from tests.study.story import Story

STATES: tuple[CandidateState, ...] = get_args(CandidateState)
LEGAL = {
    ("draft", "validated"),
    ("validated", "draft"),
    ("validated", "launched"),
    ("launched", "completed"),
    ("launched", "debug"),
    ("completed", "advanced"),
    ("completed", "rejected"),
    ("completed", "inconclusive"),
    ("completed", "debug"),
    ("inconclusive", "launched"),
    ("inconclusive", "rejected"),
    ("debug", "draft"),
    ("advanced", "confirmed"),
    ("advanced", "rejected"),
    ("advanced", "reverted"),
    ("confirmed", "reverted"),
    ("draft", "withdrawn"),
    ("validated", "withdrawn"),
}
PAIRS = [(before, after) for before in STATES for after in STATES]


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_only_the_moves_of_the_machine_exist(before: CandidateState, after: CandidateState) -> None:
    assert may_move(before, after) == ((before, after) in LEGAL)


def make_move(story: Story, before: CandidateState, after: CandidateState) -> None:
    """Tell the row that would make the move, by whoever makes such moves."""
    if after == "launched":
        story.intend("again", "c001", "trial", (7,))
        story.start("again")
    elif after == "completed":
        story.end("c001-t", (0, 1, 2))
    elif (before, after) == ("launched", "debug"):
        story.end("c001-t", (0, 1, 2), "oom")
    elif after in DECISIONS:
        if (before, after) == ("advanced", "confirmed"):
            story.claim("c001")
        story.decide("c001", after)
    else:
        story.tell("moved", candidate="c001", before=before, after=after, why="", plan="c001-plan")


@pytest.mark.parametrize("before", STATES)
def test_every_state_can_be_reached_by_rows_alone(before: CandidateState) -> None:
    story = Story()
    story.bring("c001", before)

    assert story.state.candidates["c001"].state == before
    assert story.state.violations == ()


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_a_row_makes_a_legal_move_and_an_illegal_one_is_only_noted(
    before: CandidateState, after: CandidateState
) -> None:
    story = Story()
    story.bring("c001", before)
    make_move(story, before, after)
    standing = story.state.candidates["c001"]

    if (before, after) in LEGAL:
        assert (standing.state, story.state.violations) == (after, ())
    elif (before, after) == ("launched", "launched"):
        assert (standing.state, story.state.violations) == (before, ())  # a second trial beside the first
    else:
        assert standing.state == before
        assert {violation.row for violation in story.state.violations} <= {
            len(story.events) - 1,
            len(story.events),
        } - {0}
        assert story.state.violations


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_a_moved_row_makes_no_move_that_belongs_to_a_job_or_a_decision(
    before: CandidateState, after: CandidateState
) -> None:
    story = Story()
    story.bring("c001", before)
    head = story.state.head
    story.tell("moved", candidate="c001", before=before, after=after, why="", plan="c001-plan")
    may = (before, after) in LEGAL and after in ("draft", "validated", "debug", "reverted", "withdrawn")
    may = may and before != "launched"  # its trial has not ended

    assert (story.state.violations == ()) == may
    assert story.state.candidates["c001"].state == (after if may else before)
    assert story.state.head == head or after == "reverted"


def test_the_ends_of_a_life_lead_nowhere() -> None:
    assert {state for state, moves in MOVES.items() if not moves} == {"rejected", "reverted", "withdrawn"}


def test_every_phase_says_from_which_states_it_launches() -> None:
    assert set(LAUNCHES) == set(get_args(Phase))
    assert all(states <= set(STATES) for states in LAUNCHES.values())
    assert set().union(*NULL_LAUNCHES.values()) == {"smoke", "baseline", "confirmation"}


def test_seeds_are_for_what_a_verdict_takes_them_for() -> None:
    assert list(SEEDS.values()) == list(SEED_RANGES.values())


def test_no_seed_serves_two_purposes() -> None:
    search, confirm = SEEDS.values()
    assert search.stop == confirm.start == 1000
    assert {phase: seeds_for(phase).start for phase in get_args(Phase)} == {
        "smoke": 0, "baseline": 0, "trial": 0, "promotion": 0, "confirmation": 1000,
    }  # fmt: skip
