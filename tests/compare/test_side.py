"""What becomes of each training seed, on plain values."""

from __future__ import annotations

import math

import pytest

from rlx.compare.side import Side, Training


def completed(seed: int, score: float | None = 1.0, *, started: float = 0.0) -> Training:
    return Training(seed, "completed", score=score, started=started, step=100)


@pytest.mark.parametrize(
    ("training", "fate"),
    [
        (completed(0), "scored"),
        (completed(0, math.nan), "crashed"),
        (completed(0, math.inf), "crashed"),
        (completed(0, None), "pending"),
        (Training(0, "failed", error="Diverged"), "crashed"),
        (Training(0, "failed", error="ZeroDivisionError", score=3.0), "crashed"),
        (Training(0, "failed", error="OSError"), "pending"),
        (Training(0, "failed", error="MissingExtra"), "pending"),
        (Training(0, "interrupted"), "pending"),
        (Training(0, "lost", score=3.0), "pending"),
        (Training(0, "running"), "pending"),
        (Training(0, "prepared"), "pending"),
    ],
)
def test_a_seed_counts_as_a_failure_only_where_the_learner_failed(training: Training, fate: str) -> None:
    assert training.fate == fate


@pytest.mark.parametrize(
    ("state", "command"),
    [("completed", "rlx eval b"), ("running", "rlx wait b"), ("lost", "rlx resume b"), ("prepared", "rlx resume b")],
)
def test_what_is_pending_has_a_command_that_finishes_it(state: str, command: str) -> None:
    assert Training(0, state).mend("b", evaluate="rlx eval b") == command


def test_trainings_are_in_the_order_they_began_and_a_pending_one_holds_up_those_behind_it() -> None:
    trainings = (
        completed(0, 10.0, started=5.0), completed(7, 11.0, started=1.0), completed(3, 12.0, started=1.0),
        Training(4, "interrupted", started=3.0), Training(5, "prepared"),
    )  # fmt: skip
    side = Side("a", trainings)
    assert [one.seed for one in side.ordered] == [3, 7, 4, 0, 5]
    assert side.as_baseline() == {3: 12.0, 7: 11.0}
    assert side.scores.tolist() == [12.0, 11.0, 10.0]


def test_a_crashed_seed_counts_for_a_candidate_and_is_left_out_of_a_baseline() -> None:
    side = Side("a", (completed(0, 10.0), Training(1, "failed", started=1.0), completed(2, 12.0, started=2.0)))
    assert side.as_baseline() == {0: 10.0, 2: 12.0}
    assert list(side.as_candidate()) == [0, 1, 2]
    assert math.isnan(side.as_candidate()[1])


def test_the_document_names_crashed_and_pending_seeds_and_invents_no_figures() -> None:
    side = Side("a", (completed(0, 10.0), completed(1, math.nan, started=1.0), Training(2, "lost")))
    document = side.document()
    assert (document["n"], document["mean"], document["sd"]) == (1, 10.0, None)
    assert (document["crashed"], document["pending"]) == ([1], {"2": "lost"})
    assert Side("a", ()).document()["mean"] is None
