"""Verdicts in words: no p-values, and the sign is the metric's."""

from __future__ import annotations

import pytest

from rlx.study.verdict_words import verdict_words

RACE = {"test": "race", "n": [6, 3], "effect": 0.47, "p": 0.012}
CLAIM = {"test": "claim", "n": [10, 10], "effect": 0.91, "interval": [0.8, 1.0], "p": 0.001}
HARM = {"-heat": {"answer": "harm"}}


@pytest.mark.parametrize(
    ("decision", "fields", "says"),
    [
        ("inconclusive", RACE, "promising: +0.47 on 3 seeds, 3 more decide"),
        (
            "advanced",
            {**RACE, "n": [6, 6]},
            "better: +0.47 on 6 seeds; it is the new head, to be confirmed on fresh seeds",
        ),
        ("rejected", {**RACE, "effect": -0.2, "p": 0.9}, "no gain: −0.2 on 3 seeds"),
        ("rejected", {**RACE, "n": [6, 6], "p": 0.3}, "not better: +0.47 on 6 seeds, which chance explains"),
        (
            "rejected",
            {**RACE, "guardrails": HARM},
            "not better: +0.47 on 3 seeds, which chance explains; it harms -heat",
        ),
        ("confirmed", CLAIM, "confirmed: +0.91 [0.8, 1] on 10 v 10 fresh seeds"),
        ("inconclusive", CLAIM, "not confirmed: +0.91 [0.8, 1] on 10 v 10 fresh seeds, which chance could explain"),
        ("debug", {"says": "no seed has a score"}, "no seed has a score"),
    ],
)
def test_a_decision_reads_as_a_sentence(decision: str, fields: dict[str, object], says: str) -> None:
    assert verdict_words(decision, fields) == says
