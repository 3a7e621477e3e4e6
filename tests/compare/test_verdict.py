"""Verdicts on literal scores."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from rlx.compare.guardrails import GuardrailResult, block_on_harm, require_safety
from rlx.compare.interim_plan import holm_shares, take
from rlx.compare.verdict import Verdict, VerdictRules, guarded, judge, strength

TEN = np.array([310.0, 280, 355, 402, 298, 340, 366, 275, 330, 345])


def draw(mean: float, count: int, *, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(mean, 50, count)


def judge_all(baseline: np.ndarray, candidates: list[np.ndarray]) -> list[Verdict]:
    """Judge several candidates together, as a comparison of runs does."""
    usable = [index for index, new in enumerate(candidates) if np.isfinite(new).any()]
    looks = {index: take(baseline, candidates[index]) for index in usable}
    shares = dict(zip(usable, holm_shares([strength(looks[index], VerdictRules()) for index in usable]), strict=True))
    return [judge(baseline, new, share=shares.get(index, 1.0)) for index, new in enumerate(candidates)]


def test_three_seeds_lean_and_never_decide() -> None:
    verdict = judge([100.0, 110, 120], [400.0, 410, 420])
    assert verdict.verdict == "inconclusive"
    assert verdict.line() == "inconclusive: leaning +300 [+280, +320], undecided at 3 v 3"
    assert verdict.settle == "the look at 10 seeds per side: 7 more for the baseline, 7 more for the candidate"
    assert (verdict.look, verdict.next_look) == (None, 10)


def test_a_leaning_shows_its_interval_in_matching_digits() -> None:
    assert (
        judge([90.0, 100, 110], [91.0, 111, 131]).line() == "inconclusive: leaning +11 [−19, +41], undecided at 3 v 3"
    )
    assert judge([0.1, 0.2, 0.3], [0.1, 0.2, 0.3]).effect() == "+0.00 [−0.20, +0.20]"
    assert judge([500.0, 500.0], [499.9, 500.0]).effect() == "−0.050 [−∞, +∞]"


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 2), (9, 10), (10, 9), (9, 30)])
def test_nothing_is_decided_below_ten_seeds_per_side(n: int, m: int) -> None:
    verdict = judge(np.arange(n), np.arange(m) + 1000)
    assert verdict.verdict == "inconclusive"
    assert verdict.settle.startswith("the look at 10 seeds per side: ")
    assert "0 more" not in verdict.settle
    assert verdict.reason == "no decision is made on fewer than 10 seeds per side"


def test_one_seed_a_side_has_no_interval_and_says_so() -> None:
    assert judge([1.0], [2.0]).effect() == "+1.0 [−∞, +∞]"


def test_a_clear_improvement_at_ten_seeds_is_better_and_its_mirror_worse() -> None:
    better, worse = judge(TEN, TEN + 100), judge(TEN + 100, TEN)
    assert (better.verdict, worse.verdict) == ("better", "worse")
    assert better.interval.low > 0 > worse.interval.high
    assert (better.settle, better.look, better.next_look) == ("", 10, None)
    assert better.line().startswith("better: +100 [")
    assert better.reason == "p = 3.2e-05 ≤ 0.033 at the look of 10"


@pytest.mark.parametrize("count", [11, 15, 16, 24, 30])
def test_a_decision_stands_whatever_is_trained_afterwards(count: int) -> None:
    ten = judge(TEN, TEN + 100)
    more = judge(np.append(TEN, draw(900, count - 10)), np.append(TEN + 100, draw(0, count - 10)))
    assert more == ten


def test_adding_seeds_one_by_one_is_decided_at_declared_sizes_only() -> None:
    generator = np.random.default_rng(5)
    for _ in range(3):
        baseline, candidate = generator.normal(size=30), generator.normal(0.8, 1, 30)
        seen = [judge(baseline[:count], candidate[:count]) for count in range(1, 31)]
        changes = [
            count for count, (before, after) in enumerate(pairwise(seen), start=2) if before.verdict != after.verdict
        ]
        assert set(changes) <= {10, 16, 24}
        assert len(changes) <= 1


def test_between_looks_the_next_size_that_decides_is_named() -> None:
    baseline, candidate = draw(300, 30, seed=1), draw(300, 30, seed=2)
    baseline, candidate = np.append(TEN, baseline), np.append(TEN + 22, candidate)
    named = {count: judge(baseline[:count], candidate[:count]).next_look for count in (9, 10, 13, 15)}
    assert named == {9: 10, 10: 16, 13: 16, 15: 16}
    verdict = judge(baseline[:13], candidate[:12])
    assert verdict.settle == "the look at 16 seeds per side: 3 more for the baseline, 4 more for the candidate"
    assert verdict.reason == "p = 0.12 > 0.033 at the look of 10"


def test_a_larger_pool_only_asks_for_the_seeds_that_are_missing() -> None:
    verdict = judge(np.append(TEN, TEN), TEN + 22)
    assert verdict.settle == "the look at 16 seeds per side: 6 more for the candidate"


def test_a_spent_plan_asks_for_fresh_runs_and_names_no_number_of_seeds() -> None:
    generator = np.random.default_rng(0)
    for _ in range(200):
        baseline, candidate = generator.normal(size=26), generator.normal(0.7, 1, 26)
        verdict = judge(baseline, candidate)
        if verdict.verdict == "inconclusive" and verdict.leaning > 0.8:
            break
    assert (
        verdict.settle == "the plan has no more looks for these seeds: only new runs of both on fresh seeds can decide"
    )
    assert verdict.next_look is None
    tiny = judge(np.tile(TEN, 3)[:24], np.tile(TEN, 3)[:24] + 3)
    assert tiny.settle == "nothing practical: 0.074 sd, as seen here, is too small for 24 seeds per side to find"
    assert judge([500.0] * 24, [500.0] * 24).settle.startswith("nothing practical: 0 sd")


def test_futile_is_said_as_such_and_asks_for_nothing() -> None:
    equal = judge(TEN, TEN[::-1])
    assert (equal.verdict, equal.is_futile) == ("inconclusive", True)
    assert equal.line().startswith("inconclusive, futile: leaning +0 [")
    assert equal.settle == (
        "nothing worth its cost: more seeds are unlikely to show an improvement (p = 0.5 > 0.2 at the look of 10)"
    )
    three = judge(TEN, TEN[:3] - 60)
    assert three.is_futile
    assert three.settle.endswith("> 0.5 at the look of 3)")


def test_futility_is_advice_and_going_on_may_still_decide() -> None:
    candidate = np.append([200.0, 210.0, 220.0], [900.0 + step for step in range(7)])
    assert judge(TEN, candidate[:3]).is_futile
    assert judge(TEN, candidate).verdict == "better"


def test_a_crashed_candidate_seed_scores_the_worst_seen_and_never_drops_out() -> None:
    crashed = np.append(TEN[:7] + 60, [math.nan] * 3)
    dropped = judge(TEN, TEN + 60)
    kept = judge(TEN, crashed)
    assert dropped.verdict == "better"
    assert kept.verdict == "inconclusive"
    assert kept.n == (10, 10)
    assert kept.leaning == pytest.approx(np.append(TEN[:7] + 60, [275.0] * 3).mean() - TEN.mean())
    assert judge(TEN, crashed, floor=9.0).leaning < kept.leaning


def test_a_crashed_baseline_seed_is_invalid_until_it_is_retrained() -> None:
    verdict = judge(np.append(TEN[:9], math.nan), TEN + 100)
    assert verdict.line() == (
        "invalid: 1 of the baseline's 10 seeds have no finite score: a baseline seed must be retrained"
    )


def test_nothing_is_invented_where_there_is_no_score_at_all() -> None:
    assert judge([], TEN).line() == "invalid: no baseline seeds"
    assert judge(TEN, []).line() == "invalid: no candidate seeds"
    assert judge(TEN, [math.nan] * 10).line() == "invalid: none of the candidate's 10 seeds has a finite score"


def test_an_improvement_below_the_smallest_that_counts_is_inconclusive() -> None:
    verdict = judge(TEN, TEN + 60, rules=VerdictRules(minimum_effect=80.0))
    assert verdict.verdict == "inconclusive"
    assert verdict.reason == "+60 is less than the required +80"
    assert judge(TEN, TEN + 60, rules=VerdictRules(minimum_effect=60.0)).verdict == "better"
    assert judge(TEN + 100, TEN, rules=VerdictRules(minimum_effect=80.0)).verdict == "worse"


def test_worse_is_not_said_where_crashed_baseline_seeds_were_left_out() -> None:
    verdict = judge(TEN + 100, TEN, rules=VerdictRules(can_be_worse=False))
    assert verdict.verdict == "inconclusive"
    assert "flatters the baseline" in verdict.reason
    assert judge(TEN, TEN + 100, rules=VerdictRules(can_be_worse=False)).verdict == "better"


@pytest.mark.parametrize(("scale", "shift"), [(1000.0, 0.0), (1.0, -500.0)])
@pytest.mark.parametrize("count", [3, 10, 12, 16, 24])
def test_scaling_and_shifting_changes_no_verdict(scale: float, shift: float, count: int) -> None:
    generator = np.random.default_rng(count)
    for _ in range(8):
        baseline, candidate = generator.normal(300, 50, count), generator.normal(345, 50, count)
        candidate[1] = math.nan
        plain = judge(baseline, candidate, floor=20.0, rules=VerdictRules(minimum_effect=5.0))
        moved = judge(
            baseline * scale + shift,
            candidate * scale + shift,
            floor=20.0 * scale + shift,
            rules=VerdictRules(minimum_effect=5.0 * scale),
        )
        assert (plain.verdict, plain.p, plain.is_futile, plain.look, plain.settle) == (
            moved.verdict, moved.p, moved.is_futile, moved.look, moved.settle,
        )  # fmt: skip
        assert moved.leaning == pytest.approx(plain.leaning * scale)


def test_the_interval_excludes_zero_exactly_where_a_look_decided() -> None:
    generator = np.random.default_rng(4)
    decided = 0
    for _ in range(60):
        baseline, candidate = generator.normal(size=10), generator.normal(0.9, 1, 10)
        verdict = judge(baseline, candidate)
        assert (verdict.interval.low > 0) == (verdict.verdict == "better")
        assert (verdict.interval.high < 0) == (verdict.verdict == "worse")
        decided += verdict.verdict == "better"
    assert 10 < decided < 55


def test_the_same_scores_give_the_same_verdict_also_beyond_enumeration() -> None:
    baseline, candidate = draw(0, 16, seed=1), draw(35, 16, seed=2)
    assert judge(baseline, candidate) == judge(baseline, candidate)


def test_several_candidates_share_the_error() -> None:
    generator = np.random.default_rng(6)
    while True:
        close = generator.normal(TEN.mean() + 45, 40, 10)
        if 0.018 < take(TEN, close)[-1].above < 0.032:
            break
    alone = judge_all(TEN, [close])[0]
    beside_nothing = judge_all(TEN, [close, TEN[::-1]])[0]
    beside_a_clear_one = judge_all(TEN, [close, TEN + 200])
    assert alone.verdict == "better"
    assert beside_nothing.verdict == "inconclusive"
    assert "(levels shared by 2 candidates)" in beside_nothing.reason
    assert [verdict.verdict for verdict in beside_a_clear_one] == ["better", "better"]


def test_a_candidate_without_scores_takes_no_share() -> None:
    verdicts = judge_all(TEN, [TEN + 100, np.full(10, math.nan)])
    assert [verdict.verdict for verdict in verdicts] == ["better", "invalid"]
    assert "shared" not in verdicts[0].reason


def test_equal_candidates_are_rarely_called_different_however_many_there_are() -> None:
    generator = np.random.default_rng(10)
    wrong = 0
    for _ in range(50):
        pools = generator.normal(size=(6, 10))
        wrong += any(verdict.verdict != "inconclusive" for verdict in judge_all(pools[0], list(pools[1:])))
    assert wrong / 50 <= 0.09


def test_a_guardrail_holds_an_improvement_back() -> None:
    better = judge(TEN, TEN + 100)
    harm = block_on_harm(TEN, TEN - 100)
    unproven = require_safety(TEN, TEN, margin=1.0)
    passes = GuardrailResult("passes", 0.0, 0.0, "fine")
    assert guarded(better, {"success": passes}) == better
    blocked = guarded(better, {"success": harm, "length": passes})
    assert (blocked.verdict, blocked.settle) == ("inconclusive", "")
    assert blocked.reason.startswith("better, but it harms success (worse by more than 0: p = ")
    assert guarded(better, {"length": unproven}).reason.startswith("better, but not shown to be safe for length (")
    worse = replace(better, verdict="worse")
    assert guarded(worse, {"success": harm}) == worse


def test_the_document_is_plain_data() -> None:
    document = judge(TEN, TEN + 100).document()
    assert document["verdict"] == "better"
    assert document["n"] == [10, 10]
    assert document["level"] == pytest.approx(0.961)
    assert (document["look"], document["next_look"], document["is_futile"]) == (10, None, False)


# Real trainings by rlx (bench/pools.json): CartPole, 40 seeds of a config and of the same with twice the epochs


def real(name: str) -> np.ndarray:
    path = Path(__file__).parents[2] / "bench" / "pools.json"
    return np.array(list(json.loads(path.read_text())["pools"][name]["scores"].values()))


def test_a_clearly_better_config_is_better_on_every_ten_of_its_real_seeds() -> None:
    base, epochs = real("base"), real("epochs")
    found = [judge(base[start : start + 10], epochs[start : start + 10]).verdict for start in (0, 10, 20, 30)]
    assert found == ["better"] * 4
    assert judge(epochs[:24], base[:24]).verdict == "worse"


@pytest.mark.parametrize("name", ["base", "epochs"])
def test_the_same_config_on_disjoint_real_seeds_is_not_better(name: str) -> None:
    pool = real(name)
    assert judge(pool[:20], pool[20:]).verdict == "inconclusive"
    assert judge(pool[20:], pool[:20]).verdict == "inconclusive"


def test_real_seeds_of_which_every_fourth_failed_are_not_better_at_the_same_mean() -> None:
    epochs = real("epochs")
    risky = np.where(np.arange(24) % 4 == 3, 9.0, epochs[:24])
    risky = risky + epochs[24:].mean() - risky.mean()
    assert judge(epochs[16:], risky).verdict == "inconclusive"


def test_large_differences_have_their_thousands_apart() -> None:
    line = judge([100_000.0 + seed for seed in range(3)], [59_259.0 + seed for seed in range(3)]).line()
    assert line == "inconclusive: leaning −40,741 [−40,743, −40,739], undecided at 3 v 3"
