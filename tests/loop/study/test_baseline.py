"""What is said of the baseline's pool."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rlx.hosts.cli import next as next_command
from rlx.hosts.cli import status
from rlx.hosts.cli.study import report
from rlx.number_format import figure
from tests.loop.told import WISHES, Told, typed


def test_the_smallest_difference_that_is_found_is_the_one_that_the_contract_says_of_its_claim(tmp_path: Path) -> None:
    told = Told(tmp_path / "lab")
    finds = typed(told.study.root, "rlx study baseline")["finds"]
    (line,) = [one for one in typed(told.study.root, "rlx study show")["affords"] if "4 times in 5" in one]
    assert list(finds) == ["2"]
    assert f"sd, {figure(finds['2'])} of return" in line


SAME = (0.1 + 0.2, 0.3)
"""One number, added up in two ways."""


def test_a_pool_without_spread_is_said_wherever_somebody_looks(tmp_path: Path) -> None:
    root = Told(tmp_path / "lab", scores=SAME).study.root
    told = typed(root, "rlx study baseline")
    assert told["sd"] == 0
    (says,) = told["warnings"]
    assert says.startswith("the pool has no spread: every seed scores 0.3.")
    assert says in typed(root, "rlx next --full")["findings"]
    for command, render in (
        ("next --full", next_command.render),
        ("status", status.render),
        ("study report", report.render),
    ):
        assert says in render(typed(root, f"rlx {command}")), command
    assert says in (root / ".rlx" / "tasks" / "pole" / "studies" / "faster" / "report.md").read_text()


@pytest.mark.parametrize(("metric", "score"), [("success_rate", 1.0), ("terminated_rate:min", 0.0)])
def test_at_the_best_that_a_rate_can_be_nothing_can_be_gained(tmp_path: Path, metric: str, score: float) -> None:
    told = Told(tmp_path / "lab", replace(WISHES, metric=metric), scores=(score,))
    (says,) = typed(told.study.root, "rlx status")["warnings"]
    assert says.endswith("the best possible value: this metric cannot improve")


def test_a_pool_with_spread_is_no_finding(tmp_path: Path) -> None:
    told = Told(tmp_path / "lab")
    assert typed(told.study.root, "rlx next --full")["findings"] == []
