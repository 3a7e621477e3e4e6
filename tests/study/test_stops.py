"""When a contract's stop rules hold, from stories told row by row."""

from __future__ import annotations

from typing import Any

import pytest

from rlx.study.contract import Contract
from rlx.study.stops import holding
from tests.study.story import Story
from tests.study.test_gates import DOCUMENT


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
    assert holding(story.state, contract("candidates >= 9", rule)) == (rule if holds else "")


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_gain_is_positive_whichever_way_the_metric_counts(direction: str) -> None:
    story = Story()
    story.bring("c001", "advanced")
    story.claim("c001")
    story.decide("c001", "confirmed", effect=3.0 if direction == "maximize" else -3.0)
    assert story.state.violations == ()
    metric = {"name": "length", "direction": direction}
    assert holding(story.state, contract("gain >= 3", metric=metric)) == "gain >= 3"


def test_a_rule_that_cannot_be_read_never_holds() -> None:
    assert holding(Story().state, contract("nonsense > 2", "candidates >= 0")) == "candidates >= 0"


def test_a_contract_without_automation_has_no_rules() -> None:
    assert holding(Story().state, contract("candidates >= 0").model_copy(update={"automation": None})) == ""
