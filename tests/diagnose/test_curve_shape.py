"""A curve's shape does not depend on its unit, and noise has none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rlx.diagnose.curve_shape import CurveShape, Floats, classify_curve, steadiness
from rlx.diagnose.run_case import RETURN, SeedCase
from rlx.runs.metrics import Series

UNITS = [(1.0, 0.0), (1000.0, 0.0), (1.0, -500.0), (1000.0, -500.0), (0.001, 0.25)]


def judged(values: Floats | list[float], **known: float) -> CurveShape:
    points = np.asarray(values, dtype=np.float64)
    return classify_curve(np.arange(1, len(points) + 1) * 100.0, points, **known)


def noisy(values: Floats, share: float = 0.03, seed: int = 0) -> Floats:
    return values + share * np.ptp(values) * np.random.default_rng(seed).normal(size=len(values))


def sigmoid(count: int, *, at: float = 0.4, width: float = 0.08) -> Floats:
    return np.asarray(1 / (1 + np.exp(-(np.linspace(0, 1, count) - at) / width)))


PENDULUM = np.concatenate([-1400 + 1250 * sigmoid(60, at=0.3), np.linspace(-150, -200, 20)])
UP_AND_DOWN = np.concatenate([np.linspace(0, 1, 40), np.linspace(1, 0.05, 20), np.full(40, 0.05)])

CURVES: dict[str, tuple[Floats, str]] = {
    "0 to 7": (np.linspace(0, 7, 50), "still rising"),
    "0 to 7, noisy": (noisy(np.linspace(0, 7, 50), 0.1), "still rising"),
    "0 to 7 in eight points": (np.arange(8.0), "still rising"),
    "−1400 to −200 in six points": (np.array([-1400.0, -1000, -600, -300, -150, -200]), "levelled off"),
    "−1400 to −200 in eight points": (np.array([-1370.0, -1125, -425, -175, -152, -150, -150, -200]), "levelled off"),
    "success 0 to 0.9 in six points": (np.array([0, 0, 0.1, 0.4, 0.8, 0.9]), "still rising"),
    "success 0.9 to 0 in five points": (np.array([0.9, 0.7, 0.5, 0.2, 0.0]), "declining"),
    "six points to and fro": (np.array([1.0, 2.0, 1.0, 2.0, 1.0, 2.0]), "flat"),
    "success 0 to 0.9": (0.9 * sigmoid(100), "levelled off"),
    "success 0 to 0.9, noisy": (noisy(0.9 * sigmoid(100)), "levelled off"),
    "success 0.9 to 0": (np.linspace(0.9, 0, 60), "declining"),
    "success 0.9, then 0": (noisy(0.9 * (1 - sigmoid(60))), "collapsed"),
    "−1400 to −200, best −150": (PENDULUM, "levelled off"),
    "−1400 to −200, noisy": (noisy(PENDULUM), "levelled off"),
    "learns in a tenth": (noisy(sigmoid(200, at=0.08, width=0.01)), "levelled off"),
    "learns in the last tenth": (noisy(sigmoid(200, at=0.85, width=0.01)), "still rising"),
    "up and down": (noisy(UP_AND_DOWN), "collapsed"),
    "constant": (np.full(50, 3.5), "flat"),
    "a swing that begins halfway up": (noisy(np.sin(np.linspace(0, 8 * np.pi, 120)), 0.06), "unstable"),
    "falls and recovers": (noisy(np.abs(np.linspace(-1, 1, 80))), "still rising"),
    "falls, recovers and stays": (noisy(np.interp(np.arange(80), [0, 20, 45, 80], [1, 0, 1, 1])), "levelled off"),
    "a plateau with a dip": (
        noisy(np.interp(np.arange(60), [0, 10, 35, 45, 55, 60], [0, 1, 1, 0.7, 1, 1])),
        "levelled off",
    ),
    "learns and loses it over most of the run": (
        noisy(np.interp(np.arange(80), [0, 16, 80], [0, 1, 0.35])),
        "declining",
    ),
    "swings": (noisy(0.5 - 0.5 * np.cos(np.linspace(0, 6 * np.pi, 160)), 0.02), "unstable"),
}


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("name", CURVES)
def test_the_answer_is_right_in_every_unit(name: str, unit: tuple[float, float]) -> None:
    values, answer = CURVES[name]
    factor, shift = unit
    assert judged(factor * values + shift).answer == answer


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_shares_and_moments_are_the_same_in_every_unit(unit: tuple[float, float]) -> None:
    factor, shift = unit
    plain, changed = judged(noisy(UP_AND_DOWN)), judged(factor * noisy(UP_AND_DOWN) + shift)
    for name in ("peak_step", "changed", "settled", "swings"):
        assert getattr(plain, name) == getattr(changed, name)
    for name in ("gain", "loss", "sure"):
        assert getattr(plain, name) == pytest.approx(getattr(changed, name), abs=1e-6)


def autocorrelated(count: int, phi: float, rng: np.random.Generator) -> Floats:
    shocks = rng.normal(size=count + 100)
    values = np.zeros(count + 100)
    for index in range(1, len(values)):
        values[index] = phi * values[index - 1] + shocks[index]
    return values[100:]


@pytest.mark.parametrize(
    ("phi", "length"),
    [(0, 6), (0, 10), (0, 30), (0, 200), (0, 3000), (0.5, 30), (0.5, 200), (0.8, 100), (0.9, 200), (0.9, 2000)],
)
def test_noise_is_flat(phi: float, length: int) -> None:
    rng = np.random.default_rng(length)
    answers = [judged(autocorrelated(length, phi, rng)).answer for _ in range(300)]
    assert sum(answer != "flat" for answer in answers) <= 0.03 * len(answers)


def test_a_curve_with_a_jump_says_when() -> None:
    values = noisy(np.where(np.arange(400) < 100, 0.0, 1.0))
    assert judged(values).changed == pytest.approx(10_000, abs=300)


def test_a_plateau_is_below_what_is_known_to_be_reachable() -> None:
    values = noisy(200 * sigmoid(200, at=0.1, width=0.02))
    assert judged(values, floor=0, best=500).is_plateau
    assert not judged(values, floor=0, best=205).is_plateau
    assert judged(values).answer == "levelled off"


def test_a_change_that_is_small_against_the_known_range_is_flat() -> None:
    assert judged(np.linspace(20, 25, 50), floor=20, best=500).answer == "flat"


def test_below_what_no_training_scores_is_declining_not_a_collapse() -> None:
    assert judged(noisy(-150 - 300 * sigmoid(100)), floor=-150, best=200).answer == "declining"


def test_a_small_loss_after_the_peak_is_no_collapse() -> None:
    values = np.concatenate([np.linspace(0, 1, 50), np.linspace(1, 0.7, 50)])
    assert judged(noisy(values, 0.01)).answer == "declining"


def test_too_few_points_are_unknown_and_infinities_are_left_out() -> None:
    assert judged([1.0, 2.0, 3.0]).answer == "unknown"
    assert judged([]).answer == "unknown"
    ramp = list(np.linspace(0, 7, 50))
    assert judged([*ramp, float("nan"), float("inf")]).answer == "still rising"


def test_ten_thousand_points_are_judged_by_their_neighbourhoods() -> None:
    assert judged(noisy(np.linspace(0, 1, 10_000), 0.3)).answer == "still rising"


def test_slope_and_steadiness_do_not_mind_outliers() -> None:
    values = np.arange(50.0)
    values[10] = 1e6
    tau, chance = steadiness(values)
    assert tau > 0.9
    assert chance < 1e-6


def test_a_learned_policy_that_comes_and_goes_is_unstable() -> None:
    rng = np.random.default_rng(3)
    values = np.concatenate([np.linspace(20, 200, 20), 200 + 150 * np.sign(np.sin(np.arange(80) / 3))])
    assert judged(values + 10 * rng.normal(size=100), floor=20).answer == "unstable"


def test_what_was_learned_and_is_lost_slowly_declines() -> None:
    steps = np.linspace(1000, 100_000, 80)
    time = steps / 100_000
    noise = 0.03 * np.random.default_rng(3).normal(size=80)
    slow = np.minimum(1, time / 0.1) - 0.8 * time
    sudden = np.where(time < 0.6, np.minimum(1, time / 0.1), 0.1)
    assert classify_curve(steps, slow + noise).answer == "declining"
    assert classify_curve(steps, sudden + noise).answer == "collapsed"


def test_the_mean_of_a_first_lucky_episode_is_not_a_peak() -> None:
    steps = np.linspace(50, 1600, 31)
    level = -6 + steps / 1600 + 0.1 * np.random.default_rng(4).normal(size=31)
    level[:4] = [-2.5, -4.0, -4.6, -5.0]
    lucky = SeedCase(0, step=1600, series={RETURN: Series(steps, level)})
    assert classify_curve(lucky.curve.steps, lucky.curve.values).answer in ("collapsed", "declining")
    counted = replace(lucky, series={**lucky.series, "rollout/episodes": Series(steps, np.floor(steps / 40))})
    assert classify_curve(counted.curve.steps, counted.curve.values).answer == "still rising"


@pytest.mark.parametrize("count", [30, 120, 400])
def test_a_curve_that_climbs_to_its_last_point_rises(count: int) -> None:
    time = np.linspace(1 / count, 1, count)
    noise = 0.02 * np.random.default_rng(8).normal(size=count)
    late = np.maximum(0, time - 0.85) / 0.15
    exponential = np.exp(6 * time) / np.exp(6)
    assert classify_curve(1000 * time, late + noise).answer == "still rising"
    assert classify_curve(1000 * time, exponential + noise).answer == "still rising"


@pytest.mark.parametrize("count", [60, 200])
def test_an_unstable_curve_has_the_levels_that_it_reaches(count: int) -> None:
    time = np.linspace(0, 1, count)
    saw = 100 * ((5 * time) % 1) + 2 * np.random.default_rng(1).normal(size=count)
    shape = judged(saw)
    assert shape.answer == "unstable"
    assert shape.peak > 70
