"""Where a study stands, from values."""

from __future__ import annotations

from typing import Any

import pytest

from rlx.loop.proceed import findings, mends, seeds_left
from rlx.study.budget import Amount
from tests.study.story import Story
from tests.study.test_gates import contract


@pytest.mark.parametrize(
    ("seeds", "seconds", "left"), [(30, 3600.0, 12), (3, 3600.0, 3), (30, 299.0, 0), (30, 300.0, 1)]
)
def test_a_seed_that_there_is_no_time_for_is_not_left(seeds: int, seconds: float, left: int) -> None:
    assert seeds_left(Amount(seeds, seconds), contract()) == left


def test_a_refusal_is_a_finding_until_something_was_done() -> None:
    story = Story()
    story.tell("refused", action="launch", candidate="c001", reasons=[{"code": "PLAN", "says": "another"}])
    assert findings(story.state) == ["last refusal: c001: PLAN"]
    story.approve()
    assert findings(story.state) == []


def test_why_a_check_was_refused_is_kept_with_the_draft_until_it_moves() -> None:
    story = Story()
    story.propose("c001")
    refusal = story.tell("refused", action="check", candidate="c001", reasons=[{"code": "SCOPE", "says": "outside"}])
    assert story.state.candidates["c001"].refusal is refusal
    story.validate("c001")
    assert story.state.candidates["c001"].refusal is None


@pytest.mark.parametrize(
    ("failed", "command"),
    [
        (
            {"hint": "rlx task refresh arm -s adapter.metrics.step=iteration"},
            "rlx task refresh arm -s adapter.metrics.step=iteration",
        ),
        ({"hint": "rlx task refresh arm -s adapter.metrics.path=WHERE"}, "rlx logs r_001"),
        ({"hint": "does the eval command write {result}?"}, "rlx logs r_001"),
        ({}, "rlx logs r_001"),
    ],
)
def test_the_command_that_mends_comes_first_and_else_the_log(failed: dict[str, Any], command: str) -> None:
    assert mends(failed, "rlx logs r_001") == command
