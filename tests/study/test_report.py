"""A study's report, from stories told row by row."""

from __future__ import annotations

import math
from dataclasses import replace

from rlx.study.candidate.candidate import Candidate
from rlx.study.report import CandidateChange, ReportContext, markdown, outcome, rows
from rlx.study.report_answers import short_answers
from tests.study.story import Story
from tests.study.test_moves import contract

AROUND = ReportContext("trot", "signed by ada", "sealed", "landlock", "abc", "report.png", ("sudo",),
                      ("metric: maximize success",), "begun on Monday")  # fmt: skip


def told(story: Story) -> str:
    assert story.state.violations == ()
    table = rows(story.state, {})
    around = replace(AROUND, answers=tuple(short_answers(story.state, contract(), table, AROUND)))
    return markdown(story.state, contract(), table, around)


def test_it_opens_with_what_is_shown_and_a_picture_and_says_how_strong_it_is() -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.claim("c001")
    shown = {"effect": 3.0, "interval": [1.0, 5.0], "coverage": 0.9, "n": [2, 2], "test": "claim"}
    story.decide("c001", "confirmed", **shown, against="baseline")
    lines = told(story).splitlines()
    assert lines[0] == "# trot: c001: success_rate 5 → 5, confirmed: +3 [1, 5] (90 % interval)"
    assert lines[2] == "Integrity: the ledger is sound and every score agrees with its file."
    text = "\n".join(lines)
    assert "**How large is the gain?** success_rate 5 → 5 on fresh seeds, +3 [1, 5] (90 % interval) v baseline" in text
    assert "**How sure is it?** confirmed: +3 [1, 5] on 2 v 2 fresh seeds; a study like this claims" in text
    assert "**What did not work?** nothing that was tried failed" in text
    begin = lines.index("- metric: maximize success")
    assert lines[begin : begin + 3] == [
        "- metric: maximize success",
        "- begun on Monday",
        "- head: c001; incumbent: c001",
    ]
    assert lines[begin - 2].startswith("![")
    assert "- not ruled out: sudo" in lines
    assert "- evidence: sealed; approval: signed by ada; enforced: landlock" in lines


def test_what_failed_is_told_as_what_went_well_and_a_race_is_no_claim() -> None:
    story = Story()
    story.bring("c001", "completed")
    story.decide("c001", "rejected", test="race", against="baseline", n=[6, 3], says="p = 0.7 | <b>")
    story.bring("c002", "debug")
    text = told(story)
    assert "- race: c001 v baseline, 3 v 6 seeds: **rejected** (p = 0.7 \\| &lt;b>)" in text
    assert "claim, on fresh seeds" not in text
    assert "| c002 | – | failed |" in text
    assert "- c002 (failed): run_c002-t: failed" in text
    assert outcome(story.state, contract()) == "nothing is shown to be better than the baseline (2 tried)"


def test_every_score_is_linked_to_its_file_those_of_a_claim_too() -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.claim("c001")
    story.decide("c001", "confirmed", effect=1.0)
    text, state = told(story), story.state
    files = [score.file for scores in state.evaluations.values() for score in scores.values()]
    assert len(files) == 3 + 3 + 2 + 2
    assert all(f"]({name})" in text for name in files)
    assert "[5](#c001)" in text


def test_a_policy_without_a_score_does_not_spoil_the_mean_and_lines_and_parameters_stand_in_the_table() -> None:
    story = Story()
    story.bring("c001", "inconclusive")
    story.job("more", "c001", "trial", (7, 8))
    story.evaluate("c001", "trial", 7, math.nan)
    story.evaluate("c001", "trial", 8, 5.0, parameters=4610)
    story.decide("c001", "rejected", lines=12, parameters=4610)
    (_, row) = rows(story.state, {})
    assert (row.scores, row.score) == ((4.0, 5.0, 6.0, 5.0), 5.0)
    assert (row.lines, row.parameters) == (12, 4610)
    assert "| 12 | 4,610 |" in told(story)


def guard(answer: str, *, leans: bool = False) -> dict[str, object]:
    return {"answer": answer, "change": -1.0, "bound": 0.0, "reason": "p", "leans_to_harm": leans}


def test_a_claim_stands_apart_from_the_search_with_its_guardrails_its_time_and_its_notes() -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.claim("c001")
    story.decide(
        "c001", "confirmed", effect=3.0, interval=[1.0, 5.0], coverage=0.9, p=0.01, n=[2, 2], test="claim",
        against="baseline", guardrails={"-energy": guard("passes", leans=True)}, seconds=[2.0, 6.0],
        notes=["its seeds took 6 s"], means=[5.0, 8.0], seeds=[[0, 1], [2, 3]],
    )  # fmt: skip
    text = told(story)
    effect = "+3 [1, 5] (90 % interval): c001 8 on 2 seeds v baseline 5 on 2 seeds"
    guarded = "-energy: leans to harm (change −1, bound +0, p)"
    shown = f"| {effect} | 0.01 | 2 v 2 | {guarded} | 2 v 6 | **confirmed** |"
    claim = f"| c001 | baseline | [5](#baseline) | [8](#c001) {shown}"
    claimed, tried = text.index("## Claims"), text.index("## Candidates")
    assert claimed < text.index(claim) < text.index("- c001: its seeds took 6 s") < tried
    assert "cannot be compared with a score of the search" in text[claimed:tried]
    assert "| c001 | – | confirmed (-energy: leans to harm) |" in text
    (row,) = [line for line in text[tried:].splitlines() if line.startswith("| c001 |")]
    assert f"| [5](#c001) | 3 | – | – | – | {effect} | 5 |" in row, "of 3 seeds; 5 were trained"
    document = rows(story.state, {})[1].document()
    assert (document["test"], document["effect"], document["guards"]) == ("claim", 3.0, {"-energy": "leans to harm"})


def test_what_each_candidate_changed_stands_in_the_table_and_nothing_it_wrote_becomes_a_link() -> None:
    story = Story()
    story.bring("c001", "rejected")
    changed = {"c001": CandidateChange(("rate: 0.1 → [![x](http://y)]\x1b[2J",), "candidates/c001.patch", 12)}
    text = markdown(story.state, contract(), rows(story.state, {}, changed), AROUND)
    assert "[12 lines of code](candidates/c001.patch)" in text
    assert "](http" not in text.replace("\\]", "")
    assert "\x1b" not in text


def test_a_candidate_whose_check_was_refused_is_told_with_the_reason() -> None:
    story = Story()
    story.propose("c001")
    story.tell(
        "refused", action="check", candidate="c001", reasons=[{"code": "SCOPE", "says": "train.py is not in scope"}]
    )
    assert "- c001 (refused): train.py is not in scope" in told(story)


def test_texts_of_others_stay_text_in_the_table() -> None:
    hypothesis = "\x1b[2J\n# big | a \\| b <img src=x> ![x](http://evil/x.png) [go](javascript:alert(1)) `rm`"
    found = Candidate(id="c001", kind="code", hypothesis=hypothesis)
    story = Story()
    story.propose("c001")
    page = markdown(story.state, contract(), rows(story.state, {"c001": found}), AROUND)
    (line,) = [line for line in page.splitlines() if "big" in line]
    (header,) = [line for line in page.splitlines() if line.startswith("| candidate | kind ")]
    assert line.count(" | ") == header.count(" | ")
    assert not any(bad in page for bad in ("\x1b", "<img", "](http", "](javascript"))


def test_a_head_whose_claim_was_not_shown_is_not_only_called_advanced() -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.claim("c001")
    story.decide("c001", "inconclusive", test="claim", against="baseline", n=[2, 2], says="p = 0.3 > 0.05")
    assert "| c001 | – | advanced (its claim was not shown) |" in told(story)


def test_a_claim_that_was_not_shown_is_said_to_have_been_made() -> None:
    story = Story()
    story.bring("c001", "advanced")
    assert "nothing is claimed" in outcome(story.state, contract())
    story.claim("c001")
    story.decide("c001", "inconclusive", effect=3.0, interval=[-1.0, 5.0], n=[2, 2], test="claim", against="baseline")
    says = "nothing is shown to be better than the baseline: the claim of c001 was not shown"
    assert outcome(story.state, contract()) == says


def test_a_claim_of_which_one_side_is_trained_is_said_to_be_begun() -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.job("b-c", "baseline", "confirmation", (1000, 1001))
    wanted = contract().metric.seeds  # type: ignore[union-attr]
    begun = f"its claim has started, with 2 of {wanted} seeds of baseline, 0 of {wanted} seeds of c001 trained"
    says = f"the search is at c001, which is not confirmed: {begun}; nothing is claimed (1 tried)"
    assert outcome(story.state, contract()) == says


def test_the_score_of_a_candidate_is_of_the_seeds_it_raced_with() -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.job("p", "c001", "promotion", (7, 8), scores=(50.0, 60.0))
    row = rows(story.state, {})[1].document()
    assert (row["score"], row["seeds"], row["trained"]) == (5.0, 3, 5)


def test_what_was_confirmed_and_taken_back_is_said_so_with_the_reason() -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.claim("c001")
    story.decide("c001", "confirmed", effect=3.0, interval=[1.0, 5.0], n=[2, 2], test="claim", against="baseline")
    story.tell("moved", candidate="c001", before="confirmed", after="reverted", why="it limps")
    text = told(story)
    assert text.startswith("# trot: nothing stands as better than the baseline: c001 was confirmed and taken back\n")
    assert "- c001 (reverted): it limps" in text


def test_a_claim_shows_the_contract_that_it_was_made_under_and_what_was_amended_after_it() -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.claim("c001")
    terms = {"contract": "a" * 64, "approval": "asserted by ada", "terms": ["metric: maximize success on 2 seeds"]}
    story.decide("c001", "confirmed", effect=1.0, test="claim", **terms)
    (decided,) = [event for event in story.state.decisions if event["decision"] == "confirmed"]
    same = told(story)
    assert "- c001 was claimed under contract aaaaaaaaaaaa; approval: asserted by ada" in same
    assert "At the claim it said" not in same
    around = replace(AROUND, amendments={decided.id: ("2026-11-18 08:00 to bbbb",)})
    later = markdown(story.state, contract(), rows(story.state, {}), around)
    assert "- c001: the contract was amended later (2026-11-18 08:00 to bbbb). At the claim it said:" in later
    assert "  - metric: maximize success on 2 seeds" in later


def test_a_report_over_changed_evidence_claims_nothing() -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.claim("c001")
    story.decide("c001", "confirmed", effect=1.0)
    text = markdown(story.state, contract(), rows(story.state, {}), replace(AROUND, problems=("a file is gone",)))
    assert text.splitlines()[0].startswith("# trot: nothing is shown")
    assert "**Integrity: NOT sound, 1 problem:**\n\n- a file is gone" in text
    assert "is shown to be better" not in text
