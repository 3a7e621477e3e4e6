"""The benchmark's counting, on literal runs."""

from __future__ import annotations

import numpy as np
import pytest
from labelled import earlier
from labelled.cases import Case
from labelled.judge import Judged, effects, figures

from rlx.diagnose.run_case import RETURN, RunCase, SeedCase
from rlx.runs.metrics import Series


def healthy(score: float, *found: str, place: int = 0) -> Judged:
    return Judged(Case("cartpole_ppo", "", "tuned", place), score, 20.0, found)


def faulty(score: float, *found: str, operator: str = "actor_frozen", place: int = 0) -> Judged:
    return Judged(Case("cartpole_ppo", operator, "tuned", place), score, 20.0, found)


GOOD = [healthy(480.0 + place, place=place) for place in range(8)]


def test_a_fault_counts_only_where_it_lowers_the_return() -> None:
    harmed = [faulty(20.0 + place, place=place) for place in range(5)]
    spared = [faulty(480.5 + place, operator="slow", place=place) for place in range(5)]
    found = effects([*GOOD, *harmed, *spared])
    assert found["actor_frozen", "cartpole_ppo"] < 0.05 < found["slow", "cartpole_ppo"]
    counted = figures([*GOOD, *harmed, *spared], found)
    assert (counted.faults, counted.ineffective) == (5, 5)


def test_what_is_flagged_right_missed_and_falsely_alarmed_is_counted() -> None:
    runs = [
        *GOOD,
        healthy(500.0, "instability", place=9),
        healthy(30.0, "no_learning", place=10),
        faulty(20.0, "policy_frozen", "no_learning", place=0),
        faulty(21.0, "no_learning", "policy_frozen", place=1),
        *(faulty(20.0, "policy_frozen", place=place) for place in (2, 3)),
        faulty(22.0, place=4),
    ]
    got = figures(runs, effects(runs))
    assert (got.faults, got.flagged, got.right) == (5, 4, 3)
    assert (got.healthy, got.alarms, got.unlucky) == (9, 1, 1)
    assert (got.precision, got.recall, got.top_one, got.right_of_all) == (0.8, 0.8, 0.75, 0.6)
    assert got.false_alarms == pytest.approx(1 / 9)


def test_nothing_to_count_is_no_figure() -> None:
    got = figures([], {})
    assert (got.precision, got.recall, got.top_one, got.false_alarms) == (None, None, None, None)


def curve(*values: float, algorithm: str = "ppo", **metrics: float) -> RunCase:
    steps = np.arange(len(values), dtype=float)
    series = {RETURN: Series(steps, np.array(values))}
    series |= {f"train/{name}": Series(np.array([0.0]), np.array([value])) for name, value in metrics.items()}
    return RunCase("run", algorithm, seeds=(SeedCase(0, series=series),))


def test_the_earlier_rules_call_seven_points_of_progress_declining_and_a_lost_success_flat() -> None:
    assert earlier.findings(curve(*np.linspace(0, 9, 30))) == ["getting_worse"]
    assert earlier.findings(curve(*np.linspace(0.9, 0, 30))) == ["no_learning"]
    assert earlier.findings(curve(*np.linspace(0, 400, 30))) == []


def test_the_earlier_rules_look_at_the_last_metrics() -> None:
    rising = np.linspace(0, 400, 30)
    assert earlier.findings(curve(*rising, approx_kl=0.2)) == ["update_too_large"]
    assert earlier.findings(curve(*rising, explained_variance=-0.1)) == ["critic_uninformative"]
