"""`rlx study log`: beside every score the seeds that it is of, and a claim told apart."""

from __future__ import annotations

from typing import Any

import pytest

from rlx.hosts.cli.study.log import render
from rlx.study.report import rows
from tests.study.story import Story


@pytest.fixture
def told() -> dict[str, Any]:
    """Return the log of a study whose only candidate was raced, promoted and confirmed."""
    story = Story()
    story.bring("c001", "advanced")
    story.job("p", "c001", "promotion", (7, 8), scores=(50.0, 60.0))
    story.claim("c001")
    shown = {"effect": 3.0, "interval": [1.0, 5.0], "coverage": 0.9, "n": [2, 2], "test": "claim"}
    story.decide("c001", "confirmed", **shown, against="baseline")
    lines = [{"commit": "abc", "budget": "1.0 min", **row.document()} for row in rows(story.state, {})]
    return {"study": "trot", "rows": lines}


def test_the_columns_keep_their_order_and_a_claim_is_the_last(told: dict[str, Any]) -> None:
    head, baseline, candidate = (line.split("\t") for line in render({**told, "is_tsv": True}).splitlines())
    assert head == ["commit", "candidate", "budget", "seeds", "score", "status", "description", "claim"]
    assert (baseline[1], baseline[3], baseline[4], baseline[-1]) == ("baseline", "3", "2", "–")
    assert (candidate[1], candidate[3], candidate[4]) == ("c001", "3", "5")
    assert candidate[-1] == "+3 [1, 5] (90 % interval) v baseline"


def test_people_see_a_claim_before_the_description(told: dict[str, Any]) -> None:
    head, *_ = render({**told, "is_tsv": False}).splitlines()
    assert head.split()[-2:] == ["claim", "description"]
