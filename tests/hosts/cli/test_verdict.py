"""How a judgement reads."""

from __future__ import annotations

from typing import Any

from rlx.hosts.cli import decide
from rlx.hosts.cli.verdict import judged

DATA: dict[str, Any] = {
    "candidate": "c001", "against": "baseline", "test": "race", "verdict": "undecided", "metric": "return",
    "effect": 1.0, "interval": [0.0, 2.0], "p": 0.1, "n": [6, 3], "crashed": 0, "reason": "p = 0.1", "guardrails": {},
    "objections": [], "notes": [], "seconds_a_seed": [60.0, 30.0], "complexity": {"lines": 1, "parameters": 10},
    "level": "sealed", "approval": "asserted by me", "enforced": "landlock",
}  # fmt: skip


def test_what_is_said_of_both_sides_has_the_candidate_first_as_its_headline_has() -> None:
    lines = judged(DATA)
    assert lines[0] == "candidate: c001 against baseline (race)"
    assert "seeds: 3 v 6" in lines
    assert "time: 30 v 60 s a seed" in lines


def test_a_decision_after_which_a_stop_rule_holds_says_that_the_search_ends() -> None:
    decided = {**DATA, "decision": "rejected", "study_decision": "continue", "recorded": "", "command": "rlx next"}
    told = decide.render({**decided, "stop_rule": "rejected_in_a_row >= 2"})
    assert "study: the search ends by rejected_in_a_row >= 2\n" in told
    assert "study: continue\n" in decide.render({**decided, "stop_rule": ""})
