"""When a contract's stop rules hold, from stories told row by row."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from rlx.study.contract.contract import Contract
from rlx.study.stop_rules import StopRule, deadline, holding_rule
from tests.study.story import NOW, Story
from tests.study.test_moves import DOCUMENT


def contract(*stop: str, **sections: Any) -> Contract:
    return Contract.model_validate({**DOCUMENT, "automation": {"stop": list(stop)}, **sections})


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ("spent >= 0.1", True),
        ("spent > 0.1", False),
        ("hours > 0.02", True),
        ("rejected_in_a_row >= 1", False),
        ("gain > 0", False),
    ],
)
def test_the_first_rule_that_holds_is_named(rule: str, holds: bool) -> None:
    story = Story()  # three of thirty seeds
    held = holding_rule(story.state, contract("candidates >= 9", rule))
    assert held == (StopRule(rule, counts_streak=False) if holds else None)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_gain_is_positive_whichever_way_the_metric_counts(direction: str) -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.claim("c001")
    story.decide("c001", "confirmed", effect=3.0 if direction == "maximize" else -3.0)
    assert story.state.violations == ()
    metric = {"name": "length", "direction": direction}
    assert holding_rule(story.state, contract("gain >= 3", metric=metric)) == StopRule("gain >= 3", counts_streak=False)


def test_a_rule_that_cannot_be_read_never_holds() -> None:
    held = holding_rule(Story().state, contract("nonsense > 2", "candidates >= 0"))
    assert held == StopRule("candidates >= 0", counts_streak=False)


@pytest.mark.parametrize("rule", ["rejected_in_a_row >= 0", "spent > 2 or debug_in_a_row >= 0"])
def test_a_rule_that_counts_a_streak_says_so(rule: str) -> None:
    assert holding_rule(Story().state, contract(rule)) == StopRule(rule, counts_streak=True)


def test_a_contract_without_automation_has_no_rules() -> None:
    assert holding_rule(Story().state, contract("candidates >= 0").model_copy(update={"automation": None})) is None


@pytest.mark.parametrize(
    ("until", "end"),
    [
        ("07:00", datetime(2026, 11, 17, 7, 0)),
        ("23:30", datetime(2026, 11, 16, 23, 30)),
        ("22:00", datetime(2026, 11, 17, 22, 0)),
        ("2026-11-20", datetime(2026, 11, 21)),
        ("2026-11-20T06:30", datetime(2026, 11, 20, 6, 30)),
        ("2026-11-20T06:30+00:00", datetime.fromisoformat("2026-11-20T06:30+00:00")),
    ],
)
def test_a_deadline_is_the_first_such_moment_after_the_approval(until: str, end: datetime) -> None:
    since = datetime(2026, 11, 16, 22, 0).timestamp()

    assert deadline(until, since=since) == end.timestamp()


@pytest.mark.parametrize("until", ["", "soon", "25:00", "2026-13-01"])
def test_what_is_no_time_is_no_deadline(until: str) -> None:
    assert deadline(until, since=NOW) is None
