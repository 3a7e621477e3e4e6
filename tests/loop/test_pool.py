"""What is said of the baseline's pool."""

from __future__ import annotations

from pathlib import Path

from rlx.figures import figure
from tests.loop.told import Told, typed


def test_the_smallest_difference_that_is_found_is_the_one_that_the_contract_says_of_its_claim(tmp_path: Path) -> None:
    told = Told(tmp_path / "lab")
    finds = typed(told.study.root, "rlx study baseline")["finds"]
    (line,) = [one for one in typed(told.study.root, "rlx study show")["affords"] if "4 times in 5" in one]
    assert list(finds) == ["2"]
    assert f"sd, {figure(finds['2'])} of return" in line
