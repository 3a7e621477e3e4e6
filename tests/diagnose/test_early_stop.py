"""Stop rules end what is stuck, exploding or too dear, and never touch what learns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rlx.config.schema import Budget, Plateau, Stop
from rlx.diagnose.curve_shape import Floats
from rlx.diagnose.early_stop import alarms, no_gain, over_budget, reason_to_stop, stop_problems
from rlx.diagnose.run_case import NOTHING, RunCase, SeedCase
from rlx.runs.metrics import Series
from rlx.runs.summary import SeedCost

ROWS, TOTAL = 200, 100_000
STEPS = np.linspace(TOTAL / ROWS, TOTAL, ROWS)
PLATEAU = Plateau(steps=30_000)
T = STEPS / TOTAL
GROWTH = {
    "steady": T,
    "early, then at its best": 1 - np.exp(-12 * T),
    "late": 1 / (1 + np.exp(-(T - 0.2) / 0.03)),
    "in two stairs": 0.5 / (1 + np.exp(-(T - 0.15) / 0.02)) + 0.5 / (1 + np.exp(-(T - 0.75) / 0.02)),
    "slow": np.sqrt(T),
    "with a dip": 1 - np.exp(-12 * T) - 0.3 * np.exp(-(((T - 0.6) / 0.05) ** 2)),
}
UNITS = {"returns": (1.0, 0.0), "costs": (1200.0, -1500.0), "shares": (1e-3, 0.2)}


def running_mean(values: Floats, width: int = 5) -> Floats:
    padded = np.concatenate([np.full(width - 1, values[0]), values])
    return np.convolve(padded, np.ones(width) / width, mode="valid")


def noisy(shape: Floats, seed: int, share: float = 0.12) -> Floats:
    return shape + running_mean(share * np.random.default_rng(seed).normal(size=ROWS))


def first_stop(values: Floats, plateau: Plateau = PLATEAU) -> int | None:
    """Look fifty times, as training does; return the step of the first stop."""
    for count in range(4, ROWS + 1, 4):
        if no_gain(plateau, Series(STEPS[:count], values[:count])):
            return int(STEPS[count - 1])
    return None


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("growth", GROWTH)
@pytest.mark.parametrize("seed", range(5))
def test_a_run_that_learns_is_never_touched(growth: str, unit: str, seed: int) -> None:
    factor, shift = UNITS[unit]
    assert first_stop(shift + factor * noisy(GROWTH[growth], seed)) is None


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_is_stuck_is_ended_as_soon_as_the_rule_allows(unit: str, seed: int) -> None:
    factor, shift = UNITS[unit]
    stopped = first_stop(shift + factor * noisy(np.zeros(ROWS), seed))
    assert stopped is not None
    assert stopped < TOTAL


def test_a_run_that_lost_all_it_had_learned_is_ended() -> None:
    lost = np.where(T < 0.4, 1 - np.exp(-12 * T), 0.0)
    assert first_stop(noisy(lost, 0)) is not None


def test_with_a_return_that_is_good_enough_what_settles_below_it_is_ended() -> None:
    settled = noisy(1 - np.exp(-12 * T), 0)
    assert first_stop(settled, Plateau(steps=30_000, below=0.8)) is None
    stopped = first_stop(settled, Plateau(steps=30_000, below=1.5))
    assert stopped is not None
    assert stopped > 30_000


def test_a_curve_that_is_too_short_says_nothing() -> None:
    assert no_gain(PLATEAU, NOTHING) is None
    assert no_gain(PLATEAU, Series(STEPS[:50], np.zeros(50))) is None
    assert no_gain(PLATEAU, Series(np.array([0.0, 90_000.0]), np.zeros(2))) is None


def test_a_budget_is_judged_in_both_currencies_and_names_the_figures() -> None:
    cost = SeedCost(seconds=60.0, cpu_seconds=50.0)
    assert over_budget(Budget(seconds=61, cpu_seconds=51), cost) is None
    assert over_budget(Budget(seconds=60), cost) == "budget: 60 of 60 seconds are used"
    assert over_budget(Budget(cpu_seconds=40), cost) == "budget: 50 of 40 CPU-seconds are used"
    assert over_budget(Budget(cpu_seconds=40), SeedCost(1.0, None)) is None


def exploding(rows: int = 60) -> RunCase:
    steps = np.linspace(TOTAL / 60, TOTAL, 60)[:rows]
    series = {
        "rollout/return_mean": Series(steps, np.linspace(20, 21, rows)),
        "train/q_mean": Series(steps, np.full(rows, 1e5)),
        "reward/max_abs": Series(steps, np.ones(rows)),
    }
    seed = SeedCase(0, state="running", step=int(steps[-1]), series=series)
    return RunCase("x", "dqn", {"algo": {"gamma": 0.99}}, planned_steps=TOTAL, seeds=(seed,))


def test_a_finding_ends_a_run_where_the_config_says_so() -> None:
    stop, free = Stop(findings=("value_explosion",)), SeedCost(0.0, 0.0)
    reason = reason_to_stop(stop, exploding(), free)
    assert reason is not None
    assert reason.startswith("value_explosion: ")
    assert reason_to_stop(Stop(findings=("not_finite",)), exploding(), free) is None
    assert reason_to_stop(Stop(), exploding(), free) is None


def test_nothing_is_found_in_the_first_twentieth_of_a_run() -> None:
    early = exploding(rows=2)
    assert reason_to_stop(Stop(findings=("value_explosion",)), early, SeedCost(0.0, 0.0)) is None
    assert alarms(early) == ()
    assert "value_explosion" in [one.rule for one in alarms(exploding())]


def test_a_seed_that_has_not_begun_raises_no_alarm() -> None:
    waiting = SeedCase(1, state="prepared", missing=("no metrics.jsonl",))
    assert alarms(replace(exploding(), seeds=(waiting,))) == ()


def test_an_unknown_finding_is_refused_with_the_one_that_was_meant() -> None:
    (problem,) = stop_problems(Stop(findings=("value_explosions", "not_finite")))
    assert problem.hint == "did you mean `value_explosion`?"
