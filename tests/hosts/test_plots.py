from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from rlx.hosts.plots import COLOURS, Curve, Curves, curves, draw
from rlx.runs.run import Run

MakeRun = Callable[..., Run]


def lines(*seeds: tuple[list[float], list[float]]) -> Curves:
    return Curves("r", tuple(Curve(number, np.array(x), np.array(y)) for number, (x, y) in enumerate(seeds)))


def test_the_mean_is_over_all_seeds_at_every_point_between() -> None:
    x, y = lines(([0.0, 10.0], [0.0, 10.0]), ([0.0, 5.0, 10.0], [2.0, 2.0, 2.0])).mean()

    assert x.tolist() == [0.0, 5.0, 10.0]
    assert y.tolist() == [1.0, 3.5, 6.0]


def test_the_mean_begins_and_ends_with_the_seed_that_knows_least() -> None:
    x, _ = lines(([1.0, 9.0], [0.0, 0.0]), ([0.0, 5.0, 7.0], [0.0, 0.0, 0.0])).mean()

    assert (x[0], x[-1]) == (1.0, 7.0)


def test_seeds_that_share_no_stretch_have_no_mean() -> None:
    x, y = lines(([0.0, 1.0], [0.0, 0.0]), ([5.0, 6.0], [0.0, 0.0])).mean()

    assert len(x) == len(y) == 0


def test_non_finite_values_are_bridged_in_the_mean_and_counted() -> None:
    some = lines(([0.0, 1.0, 2.0], [1.0, np.nan, 3.0]), ([0.0, 1.0, 2.0], [1.0, np.inf, 3.0]))

    assert some.mean()[1].tolist() == [1.0, 3.0]
    assert some.non_finite() == 2


def test_long_curves_are_thinned_to_a_grid() -> None:
    long = [float(number) for number in range(5000)]

    assert len(lines((long, long)).mean()[0]) == 1000


def test_a_run_is_read_seed_by_seed_and_seeds_without_the_metric_are_left_out(make_run: MakeRun) -> None:
    found = curves(make_run(seeds={0: [1.0, 2.0], 5: []}), "rollout/return_mean", axis="steps")

    assert [curve.seed for curve in found.seeds] == [0]
    assert found.seeds[0].x.tolist() == [100.0, 200.0]


def test_the_picture_holds_the_colours_of_its_runs(tmp_path: Path) -> None:
    out = tmp_path / "p.png"
    draw([lines(([0.0, 1.0], [0.0, 1.0])), lines(([0.0, 1.0], [1.0, 0.0]))], metric="m", axis="steps", out=out)

    with Image.open(out) as picture:
        seen = {f"#{r:02X}{g:02X}{b:02X}" for _, (r, g, b) in picture.convert("RGB").getcolors(10**6) or []}
    assert set(COLOURS[:2]) <= seen
