"""What `rlx verdict` and `rlx decide` print."""

from __future__ import annotations

from typing import Any

from rlx.hosts.cli import decide, verdict

DATA: dict[str, Any] = {
    "candidate": "c001", "against": "baseline", "test": "race", "verdict": "undecided", "metric": "return",
    "effect": 1.0, "interval": [0.0, 2.0], "p": 0.1, "n": [6, 3], "crashed": 0, "reason": "p = 0.1",
    "words": "promising: +1 on 3 seeds, 3 more decide", "guardrails": {},
    "objections": [], "notes": [], "seconds_a_seed": [60.0, 30.0], "complexity": {"lines": 1, "parameters": 10},
    "level": "sealed", "approval": "asserted by me", "enforced": "landlock",
}  # fmt: skip


def test_the_candidate_comes_first_on_every_line() -> None:
    lines = verdict.render({**DATA, "command": "rlx next"}).splitlines()
    assert lines[0] == "candidate: c001 against baseline (race)"
    assert "seeds: 3 v 6" in lines
    assert "why: promising: +1 on 3 seeds, 3 more decide" in lines
    assert "p = " not in "\n".join(lines)
    assert "time: 30 v 60 s per seed" in lines


def test_a_decision_after_which_a_stop_rule_holds_says_that_the_search_ends() -> None:
    decided = {**DATA, "decision": "rejected", "study_decision": "continue", "recorded": "", "command": "rlx next"}
    text = decide.render({**decided, "stop_rule": "rejected_in_a_row >= 2"})
    assert "study: the search ends by rejected_in_a_row >= 2\n" in text
    assert "study: continue\n" in decide.render({**decided, "stop_rule": ""})
