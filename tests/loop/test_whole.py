"""A study with one candidate that advances, one that harms what is guarded and one that fails; real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlx.loop.study.verify import _decision_problem
from rlx.study.ledger.ledger import Event
from tests.loop.mill import Mill

pytestmark = pytest.mark.slow
GUARD = 'guardrails=[{"expression": "-heat", "margin": 2}]'


@pytest.fixture
def mill(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Mill:
    """Return a mill that guards its heat, whose pool is full."""
    return Mill.ready(tmp_path / "mill", tmp_path_factory, GUARD, "budget.seeds=200", "metric.seeds=10")


def test_what_harms_a_guarded_figure_does_not_advance_and_what_leans_to_it_is_told(mill: Mill) -> None:
    identity = mill.proposes(gain=5, heat=9)
    mill.trains(identity)
    first = mill.types("decide", identity)
    assert (first["decision"], first["answer"]) == ("inconclusive", "more")
    assert first["guardrails"]["-heat"]["answer"] == "harm"
    mill.trains(identity)
    judged = mill.types("verdict", identity)
    assert (judged["answer"], judged["verdict"], judged["guardrails"]["-heat"]["change"]) == (
        "harmful",
        "harmful",
        -9.0,
    )
    assert "p = 0.0011 ≤ 0.17 at 6 seeds, but it harms -heat (worse by more than 2: p = " in judged["reason"]
    assert "guard: -heat: harm: −9 (worse by more than 2" in mill.prints("verdict", identity)
    decided = mill.types("decide", identity)
    assert (decided["decision"], mill.study.state().head) == ("rejected", "baseline")
    for command in ("next --full", "status", "study log", "study report"):
        assert "rejected (-heat: harm)" in mill.prints(*command.split()), command
    assert "metric: maximize success; guarded: -heat" in mill.prints("next", "--full")
    (*_, event) = mill.study.state().decisions
    assert event["guardrails"]["-heat"]["answer"] == "harm"
    assert mill.types("study", "verify")["problems"] == []
    told = {"-heat": {**event["guardrails"]["-heat"], "answer": "passes"}}
    assert "`-heat` was recorded as passes; its figures give harm" in _decision_problem(
        mill.study, mill.study.state(), Event("e", 0.0, "decided", {**event.fields, "guardrails": told}, "")
    )


def test_a_failed_run_of_a_study_goes_on_through_the_study_alone(mill: Mill) -> None:
    run = mill.trains(mill.proposes(how="crash"), code=5)
    assert mill.types("info", run)["next"] == "rlx next"
    refused = mill.types("resume", run, code=4)
    assert refused["error"] == f"{run} is a job of the study more: only that trains its seeds"
    assert refused["hint"] == "rlx next"


def test_candidates_that_were_checked_before_the_head_moved_wait_for_its_fresh_seeds(mill: Mill) -> None:
    first, second = mill.proposes(gain=5), mill.proposes(gain=6)
    for _ in range(2):
        mill.trains(first)
        mill.types("decide", first)
    assert mill.study.state().head == first
    told = mill.types("next", "--full")
    assert told["command"].startswith(f"rlx launch {first} --phase promotion")
    note = f"{second} builds on baseline: it is raced against the head {first} without the change of {first}"
    assert mill.types("check", "candidate", second)["notes"] == [note]
    printed = mill.prints("study", "loop")
    assert "somebody must propose" in printed
    assert f"{second}: inconclusive v {first} (promising: +" in printed
    assert f"{second}: advanced v {first} (better: +" in printed
    decisions = mill.study.state().decisions
    assert [one["candidate"] for one in decisions] == [first, first, second, second]
    assert decisions[-1]["notes"] == [note]
    assert note in mill.prints("verdict", second)


def test_seeds_that_took_far_longer_are_told_beside_what_they_show(mill: Mill) -> None:
    identity = mill.proposes(gain=5, how="slow")
    mill.trains(identity)
    judged = mill.types("decide", identity)
    ours, theirs = judged["seconds_a_seed"]
    assert theirs > ours + 3
    (note,) = judged["notes"]
    assert note.startswith(
        f"its seeds took {theirs:.3g} s each, {theirs / ours:.2g} times the {ours:.3g} s of baseline: "
    )
    printed = mill.prints("verdict", identity)
    assert f"note: {note}" in printed
    assert "s per seed\n" in printed
    assert mill.study.state().decisions[-1]["notes"] == [note]
