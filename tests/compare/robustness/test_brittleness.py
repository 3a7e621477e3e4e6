"""Which disturbances are called brittle, on literal scores."""

from __future__ import annotations

from rlx.compare.robustness.brittleness import drops
from rlx.evaluate.robustness.conditions import ConditionScores
from rlx.evaluate.robustness.stress import StressCondition, StressResults

NOMINAL = ConditionScores({0: 99.0, 1: 100.0, 2: 101.0}, random=0.0)


def under(name: str, strength: float, *scores: float) -> StressCondition:
    return StressCondition(name, strength, ConditionScores(dict(enumerate(scores))))


def test_the_worst_comes_first_and_what_was_refused_last() -> None:
    refused = StressCondition("wind", 60, ConditionScores(refused="too windy"))
    found = drops(StressResults(NOMINAL, (refused, under("noise", 0.1, 95, 96, 97), under("delay", 2, 10, 11, 12)), {}))
    assert [one.name for one in found] == ["delay", "noise", "wind"]
    assert [one.unit for one in found] == ["steps", "sd", ""]
    assert found[2].document()["refused"] == "too windy"


def test_more_than_a_fifth_lost_is_brittle_and_sure_where_the_interval_agrees() -> None:
    surely, perhaps, hardly = drops(
        StressResults(
            NOMINAL, (under("noise", 1, 40, 41, 42), under("noise", 2, 60, 78, 96), under("delay", 1, 81, 82, 83)), {}
        )
    )
    assert (surely.is_brittle, surely.is_sure) == (True, True)
    assert (perhaps.is_brittle, perhaps.is_sure) == (True, False)
    assert (hardly.is_brittle, hardly.is_sure) == (False, True)
    assert surely.drop is not None
    assert abs(surely.drop - 0.59) < 1e-9


def test_the_limit_can_be_another() -> None:
    battery = StressResults(NOMINAL, (under("noise", 1, 81, 82, 83),), {})
    assert drops(battery, limit=0.1)[0].is_brittle


def test_without_a_gain_there_is_no_drop() -> None:
    nominal = ConditionScores({0: 10.0, 1: 10.0}, random=20.0)
    (found,) = drops(StressResults(nominal, (under("noise", 1, 5, 5),), {}))
    assert (found.drop, found.interval, found.is_brittle) == (None, None, False)


def test_one_step_is_no_steps() -> None:
    found = drops(StressResults(NOMINAL, (under("delay", 1, 10, 11, 12), under("noise", 1, 95, 96, 97)), {}))
    assert [one.unit for one in found] == ["step", "sd"]
