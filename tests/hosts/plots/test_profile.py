from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from rlx.hosts.plots.profile import draw, profile, thresholds
from rlx.hosts.plots.scores import Scores
from rlx.hosts.plots.style import COLOURS

FEW = Scores("few", {0: 1.0, 1: 3.0}, {0: [0.0, 2.0], 1: [2.0, 4.0]})
ONE = Scores("one", {0: 2.0}, {0: [1.0, 3.0]})


def test_a_profile_is_the_share_of_seeds_above() -> None:
    shares, band = profile(FEW, np.array([0.0, 2.0, 3.5]), over="seeds")

    assert shares.tolist() == [1.0, 0.5, 0.0]
    assert band is not None
    assert (band.low[1], band.high[1]) == (0.0, 1.0)


def test_episodes_are_counted_seed_by_seed() -> None:
    shares, band = profile(FEW, np.array([1.0, 3.0]), over="episodes")

    assert shares.tolist() == [0.75, 0.25]
    assert band is not None
    assert (band.low[1], band.high[1]) == (0.0, 0.5)


def test_one_seed_has_no_band() -> None:
    assert profile(ONE, np.array([1.0]), over="seeds")[1] is None
    assert profile(ONE, np.array([1.0]), over="episodes")[1] is None


def test_the_thresholds_reach_past_all_scores() -> None:
    levels = thresholds([FEW, ONE], over="episodes")
    assert levels[0] < 0.0 < 4.0 < levels[-1]
    same = thresholds([ONE], over="seeds")
    assert same[0] < 2.0 < same[-1]


def test_the_picture_falls_from_one_to_nothing(tmp_path: Path) -> None:
    draw([FEW], metric="score", over="seeds", out=tmp_path / "p.png")

    with Image.open(tmp_path / "p.png") as picture:
        pixels = np.asarray(picture.convert("RGB")).astype(int)[60:]
    wanted = [int(COLOURS[0][at : at + 2], 16) for at in (1, 3, 5)]
    rows, columns = np.nonzero((np.abs(pixels - wanted) <= 6).all(axis=2))
    starts, ends = rows[columns <= columns.min() + 3], rows[columns >= columns.max() - 3]
    assert starts.mean() < 100
    assert ends.mean() > 500
