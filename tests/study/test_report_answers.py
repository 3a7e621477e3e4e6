"""The answers that open a study's report, for somebody who has not seen rlx."""

from __future__ import annotations

from dataclasses import replace

from rlx.study.candidate.candidate import Candidate
from rlx.study.report import CandidateChange, rows
from rlx.study.report_answers import short_answers
from tests.study.story import Story
from tests.study.test_moves import contract
from tests.study.test_report import AROUND

IDEAS = {
    "c001": Candidate(id="c001", kind="hyperparameter", hypothesis="a larger step learns faster"),
    "c002": Candidate(id="c002", kind="hyperparameter", hypothesis="a short horizon is easier"),
    "c003": Candidate(id="c003", kind="hyperparameter", hypothesis="more noise explores"),
}
CHANGED = {
    name: CandidateChange((f"algo.{key}: 1 → 2",), whole=(f"algo.{key}: 1 → 2",))
    for name, key in (("c001", "rate"), ("c002", "gamma"), ("c003", "noise"))
}


def answers(story: Story, **around: object) -> dict[str, str]:
    assert story.state.violations == ()
    table = rows(story.state, IDEAS, CHANGED)
    given = replace(AROUND, mission="Keep the pole up.", **around)  # type: ignore[arg-type]
    return {one.question: one.text for one in short_answers(story.state, contract(), table, given)}


def claimed(decision: str) -> Story:
    """Tell of a head, a failed idea and the head's claim."""
    story = Story()
    story.bring("c001", "advanced")
    story.bring("c002", "completed")
    story.decide("c002", "rejected", test="race", effect=-2.0, against="c001", n=[6, 3], p=0.9)
    story.claim("c001")
    shown = {"effect": 3.0, "interval": [1.0, 5.0], "coverage": 0.9, "n": [2, 2], "test": "claim"}
    story.decide("c001", decision, **shown, against="baseline")
    return story


def test_a_stranger_reads_what_was_asked_changed_gained_how_sure_the_cost_and_what_failed() -> None:
    told = answers(claimed("confirmed"))
    assert told["What was asked?"] == "Keep the pole up. (maximize success_rate)"
    assert told["What changed?"] == "c001: algo.rate: 1 → 2 (the idea: a larger step learns faster)"
    assert "on fresh seeds, +3 [1, 5]" in told["How large is the gain?"]
    assert "at most 5% of the time" in told["How sure is it?"]
    assert "rlx's own evaluator" in told["How sure is it?"]
    assert told["What did it cost?"].endswith("2 candidates tried")
    assert "training seeds, 6m 30s of training" in told["What did it cost?"]
    assert told["What did not work?"] == "c002 (algo.gamma: 1 → 2): no gain: −2 on 3 seeds"
    assert told["What is open?"] == "nothing: the head is confirmed"


def test_a_claim_that_was_not_shown_did_not_work() -> None:
    told = answers(claimed("inconclusive"))
    assert "c001 (algo.rate: 1 → 2): not confirmed" in told["What did not work?"]
    assert "c002 (algo.gamma: 1 → 2)" in told["What did not work?"]


def test_an_undecided_candidate_is_open_and_no_candidate_at_all_is_said() -> None:
    story = Story()
    assert answers(story)["What did not work?"] == "nothing was tried"
    story.bring("c001", "inconclusive")
    told = answers(story)
    assert told["What did not work?"] == "nothing that was tried failed"
    assert told["What is open?"] == "no change has won a race yet; c001 is not decided"


def test_many_failures_are_counted() -> None:
    story = Story()
    for number in range(1, 13):
        story.bring(f"c{number:03d}", "debug")
    assert answers(story)["What did not work?"].endswith("; and 4 more, listed below")


def test_the_weakest_evidence_is_explained() -> None:
    pinned = answers(claimed("confirmed"), level="pinned")["How sure is it?"]
    assert "the project's own evaluation" in pinned
