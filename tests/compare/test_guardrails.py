"""Guardrails on literal scores, in both directions and in any unit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlx.compare.guardrails import Guard, Tail, block_on_harm, require_safety, tail_check

TEN = np.array([310.0, 280, 355, 402, 298, 340, 366, 275, 330, 345])


def test_harm_blocks_only_where_it_is_shown_beyond_the_margin() -> None:
    assert block_on_harm(TEN, TEN - 100).answer == "harm"
    assert block_on_harm(TEN, TEN - 100, margin=120).answer == "passes"
    assert block_on_harm(TEN, TEN - 5).answer == "passes"
    assert block_on_harm(TEN, TEN + 100).answer == "passes"


def test_safety_has_to_be_shown_and_more_seeds_show_it() -> None:
    assert require_safety(TEN, TEN + 5, margin=10).answer == "unproven"
    assert require_safety(TEN, TEN + 5, margin=60).answer == "passes"
    assert require_safety(TEN, TEN - 200, margin=60).answer == "harm"
    assert require_safety(TEN, TEN, margin=60).reason == "at worst −31, allowed −60"


def test_lower_may_be_better() -> None:
    assert block_on_harm(TEN, TEN + 100, better="lower").answer == "harm"
    assert block_on_harm(TEN, TEN - 100, better="lower").answer == "passes"
    assert require_safety(TEN, TEN - 100, margin=10, better="lower").answer == "passes"
    up = block_on_harm(TEN, TEN - 100)
    down = block_on_harm(-TEN, -(TEN - 100), better="lower")
    assert (up.answer, up.change, up.bound) == (down.answer, -down.change, -down.bound)


@pytest.mark.parametrize(("scale", "shift"), [(1000.0, 0.0), (1.0, -500.0)])
def test_units_change_no_answer(scale: float, shift: float) -> None:
    generator = np.random.default_rng(0)
    for _ in range(10):
        baseline, candidate = generator.normal(300, 50, 8), generator.normal(280, 50, 8)
        for guard in (block_on_harm, require_safety):
            plain = guard(baseline, candidate, margin=20.0)
            moved = guard(baseline * scale + shift, candidate * scale + shift, margin=20.0 * scale)
            assert plain.answer == moved.answer
            assert moved.change == pytest.approx(plain.change * scale)


@pytest.mark.parametrize(("below", "p"), [(3, 0.105), (4, 0.043), (5, 0.016)])
def test_the_tail_check_flags_failing_seeds_at_ten_against_ten(below: int, p: float) -> None:
    tail = tail_check(np.arange(10), [-1.0] * below + [20.0] * (10 - below))
    assert (tail.below, round(tail.p, 3), tail.is_flagged) == (below, p, True)
    assert not tail_check(np.arange(10), [-1.0, -2.0] + [20.0] * 8).is_flagged
    assert tail_check([1.0, 2.0], [1.0, 3.0]) == Tail(0, 1.0)


def test_a_few_seeds_below_the_worst_are_no_flag_however_unlikely() -> None:
    assert tail_check(np.arange(40), [-1.0, -2.0]).p < 0.01
    assert not tail_check(np.arange(40), [-1.0, -2.0]).is_flagged


def test_a_guard_counts_crashed_seeds_as_the_worst_and_knows_which_way_is_better() -> None:
    base, same = [5.0, 6.0, 7.0, 5.5, 6.5, 6.0], [5.0, 6.0, 7.0, 5.5, 6.5, math.nan]
    assert Guard("length").test(base, same).answer == "passes"
    assert Guard("length").test(base, [1.0, math.nan, 1.5, 1.0, 1.2, 1.1]).answer == "harm"
    assert Guard("energy", better="lower").test(base, [1.0, 1.4, 1.5, 1.0, 1.2, 1.1]).answer == "passes"
    assert Guard("energy", better="lower").test(base, [9.0, math.nan, 9.5, 9.0, 9.2, 9.1]).answer == "harm"
    assert Guard("length", 0.1, must_be_shown=True).test(base, same).answer == "unproven"
    assert Guard("length", 9.0, must_be_shown=True).test(base, same).answer == "passes"


@pytest.mark.parametrize("must_be_shown", [False, True])
def test_seeds_without_a_value_never_stop_a_guard_and_are_told(must_be_shown: bool) -> None:
    guard = Guard("length", 1.0, must_be_shown=must_be_shown)
    base, gone = [5.0, 6.0, 7.0, 5.5, 6.5, 6.0], [math.nan, math.inf]
    whole, gapped = guard.test(base, base), guard.test([*base, *gone], base)
    assert (gapped.answer, gapped.change, gapped.bound) == (whole.answer, whole.change, whole.bound)
    assert gapped.reason == f"{whole.reason}; 2 seeds of the baseline without a value left out"
    worst = guard.test(base, [*base[:5], -math.inf])
    assert worst.change == pytest.approx(-1 / 6)
    assert worst.reason.endswith("; 1 seed of the candidate without a value counted as the worst")
    for sides, says in (((gone, base), "baseline"), ((base, gone), "candidate"), ((gone, gone), "baseline")):
        found = guard.test(*sides)
        assert (found.answer, found.reason) == ("unproven", f"no seed of the {says} has a value")
        assert found.document()["change"] is None


def test_a_change_beyond_the_margin_that_is_not_shown_leans_to_harm() -> None:
    base = [5.0, 6.0, 7.0, 5.5, 6.5, 6.0]
    for better, sign in (("higher", 1.0), ("lower", -1.0)):
        for must_be_shown in (False, True):
            guard = Guard("energy", 0.5, better, must_be_shown)  # type: ignore[arg-type]
            answers = [guard.test(base, [sign * shift + one for one in base[:3]]) for shift in (1.0, -0.7, -9.0)]
            assert [one.leans_to_harm for one in answers] == [False, True, False]
            assert answers[2].answer == "harm"
