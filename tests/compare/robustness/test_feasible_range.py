"""The feasible range of a parameter, on literal sweeps."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rlx.compare.robustness.feasible_range import Feasibility, feasible
from rlx.evaluate.robustness.conditions import ConditionScores
from rlx.evaluate.robustness.env_parameter import Value, parse_parameter
from rlx.evaluate.robustness.parameter_sweep import ParameterSweep


def at(score: float, *, random: float = 0.0) -> ConditionScores:
    return ConditionScores({0: score - 1, 1: score, 2: score + 1}, random)


def judged(
    scores: Mapping[Value, float | str], *, nominal: Value | None = 10, random: float = 0.0, share: float = 0.8
) -> Feasibility:
    as_it_is = at(100.0, random=random)
    outcomes = tuple(
        (
            value,
            ConditionScores(refused=score) if isinstance(score, str) else as_it_is if value == nominal else at(score),
        )
        for value, score in scores.items()
    )
    values = ",".join(str(value) for value in scores)
    return feasible(
        ParameterSweep(parse_parameter(f"wind={values}"), nominal, nominal, as_it_is, outcomes), share=share
    )


def test_the_range_is_the_stretch_around_the_nominal_value() -> None:
    found = judged({0: 20.0, 5: 85.0, 10: 100.0, 15: 90.0, 20: 70.0, 25: 95.0})
    assert (found.low, found.high) == (5, 15)
    assert [point.is_feasible for point in found.points] == [False, True, True, True, False, True]
    assert "feasible again at 25, beyond a gap" in found.notes


def test_the_nominal_value_is_a_point_even_where_it_was_not_asked_for() -> None:
    found = judged({5: 85.0, 15: 10.0})
    assert [(point.value, point.is_nominal) for point in found.points] == [(5, False), (10, True), (15, False)]
    assert (found.low, found.high) == (5, 10)


def test_a_refused_value_ends_the_range() -> None:
    found = judged({5: "too windy", 10: 100.0, 15: 99.0})
    assert (found.low, found.high) == (10, 15)
    assert found.points[0].refused == "too windy"


def test_a_value_where_the_random_policy_does_as_well_is_not_feasible() -> None:
    as_it_is = at(100.0)
    easy = ConditionScores({0: 99.0, 1: 100.0, 2: 101.0}, random=120.0)
    found = feasible(ParameterSweep(parse_parameter("wind=5,10"), 10, 10, as_it_is, ((5, easy), (10, as_it_is))))
    assert [point.is_feasible for point in found.points] == [False, True]


def test_what_the_interval_leaves_open_is_not_sure() -> None:
    as_it_is = at(100.0)
    split = ConditionScores({0: 20.0, 1: 110.0, 2: 120.0}, random=0.0)
    found = feasible(ParameterSweep(parse_parameter("wind=5,10"), 10, 10, as_it_is, ((5, split), (10, as_it_is))))
    assert (found.points[0].is_feasible, found.points[0].is_sure) == (True, False)
    assert "the interval leaves it open at 5" in found.notes


def test_what_was_not_tested_is_always_said() -> None:
    notes = judged({5: 85.0, 10: 100.0, 15: 90.0}).notes
    assert notes[0] == "only wind was varied: combinations with other parameters were not tested"
    assert "trained at 10 only: every other value is extrapolation" in notes
    assert "feasible down to the lowest value tried (5): the range may continue" in notes
    assert "feasible up to the highest value tried (15): the range may continue" in notes
    assert "rlx does not know which value training had" in judged({5: 85.0, 10: 100.0}, nominal=None).notes


def test_a_fall_below_the_random_policy_is_told_as_nothing_kept() -> None:
    notes = judged({10: 100.0, 20: -82.0}).notes
    assert "a cliff between 10 and 20: 20 keeps nothing of the gain, 10 100%" in notes
    assert not any("182%" in note for note in notes)


def test_cliffs_and_scores_that_go_up_and_down_are_named() -> None:
    cliff = judged({10: 100.0, 15: 95.0, 20: 10.0}).notes
    assert "a cliff between 15 and 20: 20 keeps 85% less of the gain than 15" in cliff
    assert not any("up and down" in note for note in cliff)
    assert not any("up and down" in note for note in judged({5: 60.0, 10: 100.0, 15: 70.0}).notes)
    assert any("up and down" in note for note in judged({5: 90.0, 10: 100.0, 15: 60.0, 20: 90.0}).notes)


def test_a_parameter_that_changes_nothing_is_named() -> None:
    assert any("no value changed any score" in note for note in judged({5: 100.0, 10: 100.0, 15: 100.0}).notes)
    assert not any("no value changed" in note for note in judged({5: 100.0, 10: 100.0, 15: 99.0}).notes)


def test_without_a_gain_over_the_random_policy_nothing_is_feasible() -> None:
    found = judged({5: 100.0, 10: 100.0}, random=150.0)
    assert (found.low, found.high) == (None, None)
    assert any("do not beat the random one" in note for note in found.notes)


def test_words_have_no_range() -> None:
    as_it_is = at(100.0)
    outcomes = (("euler", as_it_is), ("other", at(90.0)), ("third", at(10.0)))
    found = feasible(ParameterSweep(parse_parameter("mode=euler,other,third"), "euler", "euler", as_it_is, outcomes))
    assert (found.low, found.high) == (None, None)
    assert [point.is_feasible for point in found.points] == [True, True, False]


def test_where_the_nominal_value_is_unknown_the_longest_stretch_counts() -> None:
    found = judged({1: 90.0, 2: 10.0, 3: 90.0, 4: 95.0}, nominal=None)
    assert (found.low, found.high) == (3, 4)
    assert found.points[0].value is None


@pytest.mark.parametrize(("count", "is_noted"), [(1, True), (2, True), (3, False)])
def test_few_seeds_are_noted(count: int, is_noted: bool) -> None:
    as_it_is = ConditionScores(dict.fromkeys(range(count), 100.0), 0.0)
    found = feasible(
        ParameterSweep(
            parse_parameter("wind=5"), 10, 10, as_it_is, ((5, ConditionScores(dict.fromkeys(range(count), 90.0), 0.0)),)
        )
    )
    assert any("training seed" in note for note in found.notes) == is_noted
