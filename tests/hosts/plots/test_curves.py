from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from rlx.hosts.plots.curves import Curve, Curves, curves, draw, pooled
from rlx.hosts.plots.style import COLOURS
from rlx.runs.run import Run

MakeRun = Callable[..., Run]


def lines(*seeds: tuple[list[float], list[float]], name: str = "r") -> Curves:
    return Curves(name, tuple(Curve(number, np.array(x), np.array(y)) for number, (x, y) in enumerate(seeds)))


def test_the_mean_is_over_all_seeds_at_every_point_between() -> None:
    mean = lines(([0.0, 10.0], [0.0, 10.0]), ([0.0, 5.0, 10.0], [2.0, 2.0, 2.0])).mean

    assert mean.x.tolist() == [0.0, 5.0, 10.0]
    assert mean.y.tolist() == [1.0, 3.5, 6.0]
    assert mean.n.tolist() == [2, 2, 2]


def test_where_seeds_have_ended_the_mean_is_of_the_others_as_long_as_there_are_two() -> None:
    some = lines(([0.0, 8.0], [0.0, 0.0]), ([0.0, 4.0, 6.0], [3.0, 3.0, 3.0]), ([0.0, 4.0], [6.0, 6.0]))

    assert some.mean.x.tolist() == [0.0, 4.0, 6.0]
    assert some.mean.y.tolist() == [3.0, 3.0, 1.5]
    assert some.whole.tolist() == [True, True, False]


def test_a_mean_of_most_seeds_is_not_a_mean_of_all() -> None:
    some = lines(([0.0, 4.0], [0.0, 0.0]), ([0.0, 4.0], [3.0, 3.0]), ([6.0, 9.0], [6.0, 6.0]))

    assert some.mean.n.tolist() == [2, 2]
    assert not some.whole.any()


def test_one_seed_is_its_own_mean_and_has_no_band() -> None:
    only = lines(([0.0, 1.0], [4.0, 5.0]))

    assert only.mean.y.tolist() == [4.0, 5.0]
    assert np.isnan(only.mean.low).all()


def test_the_band_is_of_the_seeds_that_are_there() -> None:
    mean = lines(([0.0, 8.0], [0.0, 0.0]), ([0.0, 6.0], [3.0, 3.0]), ([0.0, 4.0], [6.0, 6.0])).mean

    assert mean.low.tolist() == [0.0, 0.0, 0.0]
    assert mean.high.tolist() == [6.0, 6.0, 3.0]


def test_seeds_that_share_no_stretch_have_no_mean() -> None:
    mean = lines(([0.0, 1.0], [0.0, 0.0]), ([5.0, 6.0], [0.0, 0.0])).mean

    assert len(mean.x) == len(mean.y) == 0


def test_non_finite_values_are_bridged_in_the_mean_and_counted() -> None:
    some = lines(([0.0, 1.0, 2.0], [1.0, np.nan, 3.0]), ([0.0, 1.0, 2.0], [1.0, np.inf, 3.0]))

    assert some.mean.y.tolist() == [1.0, 3.0]
    assert some.non_finite() == 2


def test_nothing_but_nan_is_an_empty_mean() -> None:
    assert len(lines(([0.0, 1.0], [np.nan, np.nan])).mean.x) == 0


def test_smoothing_looks_back_only_and_leaves_gaps() -> None:
    curve = Curve(0, np.arange(5.0), np.array([2.0, 4.0, np.nan, 9.0, 5.0]))

    assert curve.smoothed(2).y.tolist()[:2] == [2.0, 3.0]
    assert np.isnan(curve.smoothed(2).y[2])
    assert curve.smoothed(2).y.tolist()[3:] == [6.5, 7.0]
    assert np.array_equal(curve.smoothed(1).y, curve.y, equal_nan=True)


def test_runs_of_one_config_are_pooled_and_a_repeated_seed_counts_once() -> None:
    first = lines(([0.0], [1.0]), ([0.0], [2.0]), name="a")
    second = Curves("b", (Curve(1, np.array([0.0]), np.array([9.0])), Curve(7, np.array([0.0]), np.array([3.0]))))

    both = pooled([first, second])

    assert (both.name, both.repeated) == ("a + b", 1)
    assert [(curve.seed, curve.y[0]) for curve in both.seeds] == [(0, 1.0), (1, 2.0), (7, 3.0)]


def test_long_curves_are_thinned_to_a_grid() -> None:
    long = [float(number) for number in range(5000)]

    assert len(lines((long, long), (long, long)).mean.x) == 1000


def test_the_mean_of_one_seed_keeps_its_spikes() -> None:
    steps = [float(number) for number in range(5000)]
    values = [0.0] * 5000
    values[1234] = 9.0
    assert lines((steps, values)).mean.y.max() == 9.0


def test_a_run_is_read_seed_by_seed_and_seeds_without_the_metric_are_left_out(make_run: MakeRun) -> None:
    found = curves(make_run(seeds={0: [1.0, 2.0], 5: []}), "rollout/return_mean", axis="steps")

    assert [curve.seed for curve in found.seeds] == [0]
    assert found.seeds[0].x.tolist() == [100.0, 200.0]


def pixels(path: Path) -> np.ndarray:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB")).astype(int)


def is_like(picture: np.ndarray, colour: str, tolerance: int = 6) -> np.ndarray:
    wanted = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
    return np.asarray((np.abs(picture - wanted) <= tolerance).all(axis=2))


def test_the_picture_holds_the_colours_of_its_runs_and_rises_as_they_do(tmp_path: Path) -> None:
    out = tmp_path / "p.png"
    two = [lines(([0.0, 1.0], [0.0, 1.0])), lines(([0.0, 1.0], [1.0, 0.0]))]
    draw(two, metric="m", axis="steps", out=out, with_seeds=True, with_band=True)

    picture = pixels(out)[150:, :]  # below the legend
    for colour, is_rising in zip(COLOURS[:2], (True, False), strict=True):
        rows, columns = np.nonzero(is_like(picture, colour))
        left, right = rows[columns < 400].mean(), rows[columns > 900].mean()
        assert (left > right) == is_rising


def test_the_band_fills_the_space_between_the_seeds(tmp_path: Path) -> None:
    some = lines(([0.0, 1.0], [0.0, 0.0]), ([0.0, 1.0], [1.0, 1.0]))
    for name, with_band in (("with", True), ("without", False)):
        draw([some], metric="m", axis="steps", out=tmp_path / f"{name}.png", with_seeds=True, with_band=with_band)

    tinted = [int((pixels(tmp_path / f"{name}.png").sum(axis=2) < 750).sum()) for name in ("with", "without")]
    assert tinted[0] > 5 * tinted[1]


def test_nothing_is_drawn_over_the_legend(tmp_path: Path) -> None:
    many = [lines(([0.0, 1.0], [float(number), 9.0]), name=f"run_{number}") for number in range(12)]
    draw(many, metric="m", axis="steps", out=tmp_path / "p.svg", with_seeds=True, with_band=True)

    root = ElementTree.parse(tmp_path / "p.svg").getroot()
    legend = next(group for group in root.iter() if group.get("id") == "legend_1")
    assert [text.text for text in legend.iter() if text.tag.endswith("}text")] == [
        f"run_{number} (n = 1 seed)" for number in range(12)
    ]
    lowest = max(float(word) for text in legend.iter() for word in _heights(text))
    frame = next(group for group in root.iter() if group.get("id") == "patch_2")
    top = min(float(y) for y in re.findall(r"[ML] \S+ (\S+)", next(p.get("d", "") for p in frame.iter() if p.get("d"))))
    assert lowest < top


def _heights(text: ElementTree.Element) -> list[str]:
    if not text.tag.endswith("}text"):
        return []
    return [text.get("y") or re.findall(r"translate\(\S+ (\S+?)\)", text.get("transform", ""))[0]]


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_same_curves_give_the_same_bytes(tmp_path: Path, ending: str) -> None:
    some = lines(([0.0, 1.0], [0.0, 1.0]), ([0.0, 1.0], [1.0, 3.0]))
    for name in ("a", "b"):
        draw([some], metric="m", axis="steps", out=tmp_path / f"{name}.{ending}", with_seeds=True, with_band=True)

    content = (tmp_path / f"a.{ending}").read_bytes()
    assert content == (tmp_path / f"b.{ending}").read_bytes()
    assert b"CreationDate" not in content
    assert b"<dc:date>" not in content
