from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from rlx.hosts.plots.intervals import draw, estimates
from rlx.hosts.plots.scores import Scores


def test_each_statistic_lies_in_its_interval() -> None:
    found = estimates(Scores("r", {seed: float(value) for seed, value in enumerate([1, 2, 3, 4, 50])}))

    assert {name: estimate.value for name, estimate in found.items()} == {"mean": 12.0, "IQM": 3.0, "median": 3.0}
    for estimate in found.values():
        assert estimate.interval is not None
        assert 1.0 <= estimate.interval.low <= estimate.value <= estimate.interval.high <= 50.0


def test_one_seed_has_no_interval() -> None:
    assert all(estimate.interval is None for estimate in estimates(Scores("r", {3: 7.0})).values())


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_the_picture_names_every_run_and_statistic(tmp_path: Path, ending: str) -> None:
    every = [Scores("first", {0: 1.0, 1: 2.0}), Scores("second", {0: 3.0})]
    out = tmp_path / f"i.{ending}"
    draw(every, [estimates(one) for one in every], metric="score", out=out)

    if ending == "svg":
        texts = {text.text for text in ElementTree.parse(out).iter() if text.tag.endswith("}text")}
        assert {"first (n = 2 seeds)", "second (n = 1 seed)", "mean", "IQM", "median", "score"} <= texts
    assert out.stat().st_size > 2000
