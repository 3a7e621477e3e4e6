"""What is done next while a pair is being settled."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from rlx.compare.stats import Interval
from rlx.compare.verdict import Verdict
from rlx.loop.settle.plan import (
    ArmProgress,
    Evaluate,
    Finish,
    Look,
    PairState,
    Resume,
    Train,
    Wait,
    cap,
    next_action,
    next_for_pool,
    next_stage,
)

NOTHING = Interval(-math.inf, math.inf, 0.0)
OPEN = Verdict("inconclusive", math.nan, NOTHING, math.nan, (0, 0), "nothing has been scored yet")


def state(ours: int, theirs: int, verdict: Verdict | None = OPEN, **changes: object) -> PairState:
    return replace(PairState(ArmProgress(ours), ArmProgress(theirs), verdict), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ours", "theirs", "train"),
    [
        (0, 0, Train(10, 3)),
        (4, 0, Train(6, 3)),
        (10, 3, Train(0, 3)),
        (10, 6, Train(0, 4)),
        (10, 10, Train(6, 6)),
        (16, 10, Train(0, 6)),
        (16, 16, Train(8, 8)),
        (3, 20, Train(7, 0)),
        (30, 0, Train(0, 3)),
        (10, 30, Train(6, 0)),
    ],
)
def test_both_sides_get_what_the_next_look_needs(ours: int, theirs: int, train: Train) -> None:
    assert next_action(state(ours, theirs)) == train


def test_it_looks_before_anything_else() -> None:
    assert next_action(state(10, 3, None)) == Look()
    assert next_action(state(0, 0, None, is_time_up=True)) == Look()


@pytest.mark.parametrize(
    ("verdict", "why"),
    [
        (replace(OPEN, verdict="better"), "decided"),
        (replace(OPEN, verdict="worse"), "decided"),
        (replace(OPEN, verdict="invalid"), "invalid"),
        (replace(OPEN, is_futile=True), "futile"),
    ],
)
def test_it_stops_where_there_is_an_answer(verdict: Verdict, why: str) -> None:
    assert next_action(state(10, 6, verdict)) == Finish(why)  # type: ignore[arg-type]
    assert next_action(state(10, 6, verdict, is_time_up=True)) == Finish(why)  # type: ignore[arg-type]


def test_it_stops_when_the_plan_or_the_time_is_spent() -> None:
    assert next_action(state(24, 24)) == Finish("spent")
    assert next_action(state(10, 10, max_seeds=10)) == Finish("spent")
    assert next_action(state(10, 6, max_seeds=10)) == Train(0, 4)
    assert next_action(state(3, 3, is_time_up=True)) == Finish("deadline")


def test_seeds_that_were_begun_come_before_new_ones_and_scores_before_seeds() -> None:
    begun = ArmProgress(4, unfinished=(4, 5), unscored=(1,))
    assert next_action(PairState(begun, ArmProgress(0, unfinished=(0,)), OPEN)) == Resume((4, 5), (0,))
    assert next_action(PairState(replace(begun, unfinished=()), ArmProgress(3), OPEN)) == Evaluate((1,), ())
    assert next_action(PairState(replace(begun, is_running=True), ArmProgress(), OPEN)) == Wait()


def test_it_gives_up_on_seeds_that_end_again_and_again_and_on_a_baseline_that_crashes() -> None:
    assert next_action(PairState(ArmProgress(9, unfinished=(3,), stuck=(3,)), ArmProgress(3), OPEN)) == Finish("stuck")
    assert next_action(PairState(ArmProgress(2, crashed=3), ArmProgress(3), OPEN)) == Finish("crashing")
    assert next_action(PairState(ArmProgress(3, crashed=3), ArmProgress(3), OPEN)) == Train(7, 0)


@pytest.mark.parametrize(("asked", "most"), [(9, 0), (10, 10), (15, 10), (16, 16), (23, 16), (24, 24), (100, 24)])
def test_no_number_of_seeds_is_trained_at_which_nothing_can_be_decided(asked: int, most: int) -> None:
    assert cap(asked) == most


def test_the_next_look_is_named() -> None:
    stage = next_stage(state(10, 4))
    assert stage is not None
    assert stage.seeds == 6
    assert next_stage(state(24, 24)) is None


def test_a_pool_finishes_what_was_begun_and_trains_what_is_missing() -> None:
    assert next_for_pool(ArmProgress(4), 10) == Train(6)
    assert next_for_pool(ArmProgress(10, unfinished=(11,)), 10) == Finish("spent")
    assert next_for_pool(ArmProgress(4, unfinished=(4,)), 10) == Resume((4,))
    assert next_for_pool(ArmProgress(4, unscored=(4,)), 10) == Evaluate((4,))
    assert next_for_pool(ArmProgress(4, stuck=(4,)), 10) == Finish("stuck")
    assert next_for_pool(ArmProgress(1, crashed=3), 10) == Finish("crashing")
