"""The learning gate passes equals and stops what learns worse, in the mean or in its tail."""

from __future__ import annotations

import numpy as np
import pytest
from rig.gate import MEAN, STRICT, Gate, judge


def scores(seed: int, count: int, *, mean: float = 100.0, fails: int = 0) -> list[float]:
    drawn = np.random.default_rng(seed).normal(mean, 20.0, count)
    drawn[:fails] = 0.0
    return drawn.tolist()


@pytest.mark.parametrize("gate", [MEAN, STRICT], ids=lambda gate: gate.name)
def test_equals_pass(gate: Gate) -> None:
    look = gate.looks[-1]
    seen = [
        judge(scores(2 * each, look.seeds), scores(2 * each + 1, look.seeds), gate=gate, level=look.level)
        for each in range(5)
    ]
    assert sum(one.passed for one in seen) >= 4


@pytest.mark.parametrize("gate", [MEAN, STRICT], ids=lambda gate: gate.name)
def test_one_that_scores_a_spread_less_is_stopped(gate: Gate) -> None:
    look = gate.looks[0]
    seen = judge(scores(0, look.seeds), scores(1, look.seeds, mean=80.0), gate=gate, level=look.level)
    assert not seen.passed
    assert seen.bound < -seen.margin


def test_the_strict_gate_stops_one_that_fails_on_a_third_of_its_seeds_and_makes_up_for_it() -> None:
    look = STRICT.looks[0]
    candidate = scores(1, look.seeds, mean=180.0, fails=look.seeds // 3)
    seen = judge(scores(0, look.seeds), candidate, gate=STRICT, level=look.level)
    assert seen.bound > -seen.margin, "the mean alone would pass"
    assert not seen.passed
    assert judge(scores(0, look.seeds), candidate, gate=MEAN, level=look.level).passed


def test_the_margin_is_never_below_a_hundredth_of_the_mean() -> None:
    same = [100.0, 100.0 + 1e-9] * 15
    assert judge(same, same, gate=MEAN, level=0.05).margin == pytest.approx(1.0)
