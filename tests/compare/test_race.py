"""The race for the head and the confirmation of a claim: which evidence moves what."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rlx.compare.guardrails import Guard
from rlx.compare.permutation import permutation_p
from rlx.compare.race import ERRORS, Claim, Complexity, ScoreScale, _spell_p, confirm, race
from rlx.compare.race_thresholds import RULE
from rlx.evaluate.protocol import episode_seeds

HEAD = [310.0, 280.0, 355.0, 402.0, 298.0, 340.0]
TEN = [*HEAD, 366.0, 275.0, 330.0, 345.0]


def up(scores: list[float], by: float) -> list[float]:
    return [score + by for score in scores]


def test_a_candidate_that_is_far_ahead_gets_its_second_look_and_then_the_head() -> None:
    ahead = up(HEAD, 200)
    first = race(HEAD, ahead[:3])
    assert (first.step, first.need, first.n) == ("more", 3, (6, 3))
    assert race(HEAD, ahead[:5]).need == 1
    last = race(HEAD, ahead)
    assert (last.step, last.need, last.n) == ("advance", 0, (6, 6))
    assert last.effect == pytest.approx(200)
    assert last.interval.low < 200 < last.interval.high
    assert "p = 0.0011 ≤ 0.17 at 6 seeds" in last.reason


def test_a_reason_has_digits_enough_to_be_true() -> None:
    assert _spell_p(0.349, 0.35) == ("0.349", "0.35")
    assert _spell_p(0.1712, 0.17) == ("0.171", "0.17")
    assert _spell_p(0.01664, 0.05 / 3) == ("0.0166", "0.0167")
    assert _spell_p(0.05 / 3, 0.05 / 3) == ("0.0167", "0.0167")
    assert _spell_p(0.0011, 0.17) == ("0.0011", "0.17")


@given(st.floats(0.0, 1.0), st.sampled_from([0.35, 0.17, 0.05, 0.05 / 3, 0.05 / 7]))
def test_a_p_value_is_spelt_on_its_own_side_of_the_limit(p: float, limit: float) -> None:
    assume(abs(p - limit) > 1e-9)
    spelled, against = (float(one) for one in _spell_p(p, limit))
    assert (spelled < against) == (p < limit)


def test_a_candidate_that_is_behind_is_dropped_at_three_seeds_and_stays_dropped() -> None:
    behind = up(HEAD[:3], -30)
    dropped = race(HEAD, behind)
    assert (dropped.step, dropped.need) == ("drop", 0)
    assert race(HEAD, [*behind, 9000.0, 9000.0, 9000.0]) == dropped


def test_promising_at_three_and_ordinary_at_six_is_dropped() -> None:
    found = race(HEAD, [390.0, 380.0, 370.0, 290.0, 280.0, 300.0])
    assert (found.step, found.n) == ("drop", (6, 6))
    assert RULE.move < found.p


def test_the_p_value_is_that_of_the_one_sided_permutation_test() -> None:
    candidate = up(HEAD[::-1], 40)
    assert race(HEAD, candidate).p == permutation_p(HEAD, candidate, alternative="greater")


def test_the_first_look_waits_for_the_seeds_of_both_sides() -> None:
    waiting = race(HEAD[:4], HEAD[:1])
    assert (waiting.step, waiting.need, waiting.need_head) == ("more", 2, 2)
    assert waiting.reason.endswith("2 of the head and 2 of the candidate to come")
    assert math.isnan(waiting.p)
    assert race([], []).need_head == 6


def test_seeds_beyond_the_looks_change_nothing() -> None:
    candidate = up(HEAD, 60)
    assert race([*HEAD, 1.0, 2.0], [*candidate, -500.0, 5000.0]) == race(HEAD, candidate)


def test_a_crashed_candidate_seed_scores_the_worst_seen_and_never_drops_out() -> None:
    ahead: list[float | None] = [*up(HEAD, 100)]
    assert race(HEAD, ahead).step == "advance"
    crashed = race(HEAD, [None, None, *ahead[2:]])
    assert (crashed.step, crashed.crashed) == ("drop", 2)
    assert "2 crashed" in crashed.reason
    assert race(HEAD, [None, *ahead[1:]], scale=ScoreScale(floor=-1e6)).effect < race(HEAD, [None, *ahead[1:]]).effect


def test_crashing_a_bad_seed_scores_no_better_than_finishing_it() -> None:
    bad = [*up(TEN[:8], 150), 0.0, 0.0]
    honest = confirm(TEN, bad)
    crashing = confirm(TEN, [*bad[:8], None, None])
    assert honest.answer == "not shown"
    assert (crashing.answer, crashing.crashed) == ("not shown", 2)
    ended = confirm(TEN, [*bad[:8], None, None], scale=ScoreScale(floor=0.0))
    assert (ended.p, ended.effect) == (honest.p, honest.effect), "a metric that ends at 0"


def test_a_candidate_that_only_crashes_was_not_tried() -> None:
    found = race(HEAD, [None, None, None])
    assert (found.step, found.reason) == ("invalid", "none of the candidate's 3 seeds has a score")
    assert race(HEAD, [None, None, 1.0]).step == "drop"


def test_a_crashed_seed_of_the_head_must_be_replaced() -> None:
    assert race([None, *HEAD[1:]], up(HEAD, 100)).need_head == 1
    found, whole = race([None, *HEAD], up(HEAD, 100)), race(HEAD, up(HEAD, 100))
    assert (found.step, found.p, found.effect, found.replaced) == (whole.step, whole.p, whole.effect, 1)
    assert "1 crashed seed of the other side" in found.reason


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_no_number_makes_it_invalid(bad: float) -> None:
    for head, candidate in ((HEAD, [bad, *HEAD]), ([*HEAD, bad], HEAD)):
        assert race(head, candidate).step == "invalid"
        assert confirm(head, candidate).answer == "invalid"


def test_ties_go_to_the_simpler() -> None:
    plain, long = Complexity(lines=2, parameters=100), Complexity(lines=80, parameters=100)
    slightly = up(HEAD, 60)
    assert race(HEAD, slightly, scale=ScoreScale(min_effect=100), complexity=(plain, long)).step == "drop"
    assert (
        "the head is simpler" in race(HEAD, slightly, scale=ScoreScale(min_effect=100), complexity=(plain, long)).reason
    )
    for complexity in ((long, plain), (plain, plain)):
        assert race(HEAD, slightly, scale=ScoreScale(min_effect=100), complexity=complexity).step == "advance"
    assert race(HEAD, slightly, scale=ScoreScale(min_effect=50), complexity=(plain, long)).step == "advance"


def test_a_simpler_candidate_that_is_not_shown_better_is_named_and_does_not_move_the_head() -> None:
    plain, long = Complexity(lines=2), Complexity(lines=80)
    same = [390.0, 380.0, 370.0, 290.0, 280.0, 300.0]
    found = race(HEAD, same, complexity=(long, plain))
    assert (found.step, found.prefers_candidate) == ("drop", True)
    assert not race(HEAD, same, complexity=(plain, long)).prefers_candidate


def test_simpler_is_less_of_one_and_no_more_of_the_other() -> None:
    assert Complexity(1, 5).is_simpler_than(Complexity(2, 5))
    assert not Complexity(1, 6).is_simpler_than(Complexity(2, 5))
    assert not Complexity(1, 5).is_simpler_than(Complexity(1, 5))


scores = st.lists(st.integers(-50, 50).map(float), min_size=6, max_size=6)


@settings(deadline=None)
@given(head=scores, candidate=scores, scale=st.floats(1e-3, 1e3), shift=st.floats(-1e3, 1e3))
def test_scaling_and_shifting_changes_no_answer(
    head: list[float], candidate: list[float], scale: float, shift: float
) -> None:
    def moved(values: list[float]) -> list[float]:
        return [scale * value + shift for value in values]

    before, after = race(head, candidate), race(moved(head), moved(candidate))
    assert (after.step, after.p, after.need) == (before.step, before.p, before.need)
    assert after.effect == pytest.approx(scale * before.effect, abs=1e-6 * scale)


@settings(deadline=None)
@given(head=scores, candidate=scores)
def test_lower_is_better_is_the_mirror_image(head: list[float], candidate: list[float]) -> None:
    upwards = race(head, candidate)
    turned = race([-value for value in head], [-value for value in candidate], scale=ScoreScale(better="lower"))
    assert (turned.step, turned.p, turned.effect) == (upwards.step, upwards.p, pytest.approx(-upwards.effect))
    assert (turned.interval.low, turned.interval.high) == (-upwards.interval.high, -upwards.interval.low)


@settings(deadline=None)
@given(head=scores, candidate=scores, at=st.integers(0, 5), by=st.integers(0, 100))
def test_a_better_score_never_loses_a_place(head: list[float], candidate: list[float], at: int, by: int) -> None:
    order = {"drop": 0, "more": 1, "advance": 2}
    improved = [score + by * (index == at) for index, score in enumerate(candidate)]
    assert order[race(head, improved).step] >= order[race(head, candidate).step]


def test_everything_can_be_written_as_json() -> None:
    for found in (race(HEAD, HEAD), race([], []), race(HEAD, [math.nan])):
        assert json.loads(json.dumps(found.document()))["step"] == found.step
    for one in (confirm(TEN, up(TEN, 100)), confirm(TEN, [math.nan]), confirm(TEN[:2], TEN[:2])):
        assert json.loads(json.dumps(one.document()))["answer"] == one.answer


# The confirmation


def test_ten_fresh_seeds_per_side_confirm_a_gain() -> None:
    found = confirm(TEN, up(TEN, 100))
    assert (found.answer, found.n, found.level, found.error) == ("confirmed", (10, 10), 0.05, None)
    assert found.effect == pytest.approx(100)
    assert found.interval.low > 0


def test_several_claims_share_the_level() -> None:
    gain = up(TEN, 35)
    p = confirm(TEN, gain).p
    assert 0.01 < p <= 0.05
    assert confirm(TEN, gain).answer == "confirmed"
    shared = confirm(TEN, gain, claim=Claim(claims=5))
    assert (shared.answer, shared.level) == ("not shown", 0.01)
    assert shared.interval.low < 0


def test_a_gain_below_the_smallest_that_counts_is_not_shown() -> None:
    assert confirm(TEN, up(TEN, 100), scale=ScoreScale(min_effect=100)).answer == "confirmed"
    assert confirm(TEN, up(TEN, 100), scale=ScoreScale(min_effect=101)).answer == "not shown"
    lower = confirm(TEN, up(TEN, -100), scale=ScoreScale(min_effect=101, better="lower"))
    assert (lower.answer, lower.effect) == ("not shown", pytest.approx(-100))
    assert confirm(TEN, up(TEN, -100), scale=ScoreScale(min_effect=99, better="lower")).answer == "confirmed"


def test_a_head_that_is_shown_worse_is_harmful() -> None:
    found = confirm(TEN, up(TEN, -100))
    assert found.answer == "harmful"
    assert "it is worse" in found.reason
    left_out = confirm([*TEN, None], up(TEN, -100))
    assert left_out.answer == "not shown", "crashed baseline seeds were left out, which flatters it"


def test_a_harmed_guardrail_is_harmful_and_an_unproven_one_is_not_shown() -> None:
    gain = up(TEN, 100)
    harmed = Guard("success_rate").test(np.linspace(0.8, 1, 10), np.linspace(0.1, 0.3, 10))
    unproven = Guard("success_rate", margin=0.01, must_be_shown=True).test([0.1, 0.9] * 5, [0.9, 0.1] * 5)
    fine = Guard("success_rate", margin=0.05).test([0.9] * 10, [0.9] * 10)
    assert confirm(TEN, gain, guardrails={"success": fine}).answer == "confirmed"
    assert confirm(TEN, gain, guardrails={"success": harmed, "other": fine}).answer == "harmful"
    held = confirm(TEN, gain, guardrails={"success": unproven})
    assert (held.answer, "safe for success" in held.reason) == ("not shown", True)
    assert confirm(TEN, TEN, guardrails={"success": harmed}).answer == "harmful"


@pytest.mark.parametrize("seeds", [1, 2, 3, 5, 9])
def test_fewer_than_ten_seeds_per_side_are_provisional_with_the_measured_error(seeds: int) -> None:
    found = confirm(TEN[:seeds], up(TEN, 1000))
    assert found.answer == "provisional"
    assert found.error == ERRORS.get(seeds, 0.5)
    assert f"passes a risky change {found.error:.0%} of the time" in found.reason


def test_a_contract_may_ask_for_more_seeds_and_not_for_fewer() -> None:
    many = [*TEN, *TEN]
    assert confirm(many, up(many, 100), claim=Claim(seeds=16)).n == (16, 16)
    assert confirm(TEN, up(TEN, 100), claim=Claim(seeds=16)).answer == "provisional"
    assert confirm(TEN[:5], up(TEN, 100)[:5], claim=Claim(seeds=5)).answer == "provisional"
    assert confirm(many, up(many, 100)).n == (10, 10)


def test_a_crashed_head_seed_counts_as_the_worst_and_a_crashed_baseline_seed_is_replaced() -> None:
    crashed = confirm(TEN, [None, None, None, *up(TEN, 40)[3:]])
    assert (crashed.answer, crashed.crashed) == ("not shown", 3)
    short = confirm([None, *TEN[1:]], up(TEN, 100))
    assert (short.answer, short.n) == ("provisional", (9, 10))
    assert "1 crashed seed of the other side" in short.reason
    found = confirm([None, *TEN], up(TEN, 100))
    assert (found.answer, found.replaced) == ("confirmed", 1)
    assert "1 crashed seed of the other side" in found.reason


def test_failing_seeds_are_flagged_beside_a_claim() -> None:
    risky = [*up(TEN[:7], 400), 1.0, 2.0, 3.0]
    found = confirm(TEN, risky)
    assert found.tail is not None
    assert found.tail.is_flagged
    assert "3 of its seeds are below the baseline's worst" in found.reason


def test_nothing_to_compare_is_invalid() -> None:
    assert confirm([], TEN).answer == "invalid"
    assert confirm([None], TEN).reason == "the baseline has no scores"
    assert confirm(TEN, []).answer == "invalid"
    assert confirm(TEN, [None] * 10).answer == "harmful"


tens = st.lists(st.integers(-20, 20).map(float), min_size=10, max_size=10)


@settings(deadline=None, max_examples=25)
@given(baseline=tens, head=tens, scale=st.floats(1e-3, 1e3), shift=st.floats(-1e3, 1e3), smallest=st.integers(0, 20))
def test_scaling_and_shifting_changes_no_confirmation(
    baseline: list[float], head: list[float], scale: float, shift: float, smallest: int
) -> None:
    assume(abs(abs(np.mean(head) - np.mean(baseline)) - smallest) > 1e-6)

    def moved(values: list[float]) -> list[float]:
        return [scale * value + shift for value in values]

    before = confirm(baseline, head, scale=ScoreScale(min_effect=smallest))
    after = confirm(moved(baseline), moved(head), scale=ScoreScale(min_effect=scale * smallest))
    assert (after.answer, after.p) == (before.answer, before.p)


def test_the_interval_excludes_zero_exactly_where_it_is_confirmed() -> None:
    generator = np.random.default_rng(3)
    for _ in range(40):
        baseline, head = generator.normal(size=10).tolist(), generator.normal(0.8, 1, 10).tolist()
        found = confirm(baseline, head)
        assert (found.answer == "confirmed") == (found.interval.low > 0)


def test_a_claim_that_is_not_shown_says_what_would_settle_it() -> None:
    spread = float(np.std(TEN, ddof=1))
    leaning = confirm(TEN, up(TEN, 0.5 * spread))
    assert leaning.answer == "not shown"
    assert leaning.reason.endswith("a new study would need about 50 seeds per side to show it")
    assert "seeds per side" not in confirm(TEN, up(TEN, -0.1 * spread)).reason
    assert "seeds per side" not in confirm(TEN, up(TEN, 0.0)).reason


def rate(coin: int, episodes: Sequence[int]) -> float:
    """Return how often a policy that always tosses the same fair coin succeeds: all its seeds alike."""
    tosses = (hashlib.blake2b(f"{seed}:{coin}".encode(), digest_size=1).digest()[0] for seed in episodes)
    return sum(toss % 2 for toss in tosses) / len(episodes)


def test_policies_that_are_equal_but_for_the_luck_of_their_episodes_are_seldom_called_better() -> None:
    claims = 150
    own = shared = 0
    for number in range(claims):
        first = 100_000 * number
        blocks = [episode_seeds("confirm", first, 50, seed=seed) for seed in range(1000, 1010)]
        mine, theirs = ([rate(coin, block) for block in blocks] for coin in (1, 2))
        own += confirm(mine, theirs).answer == "confirmed"
        alike = [[rate(coin, blocks[0])] * 10 for coin in (1, 2)]
        shared += confirm(*alike).answer == "confirmed"
    assert own / claims <= 0.08  # the level is .05
    assert shared / claims > 0.3, "on shared episodes luck would be an effect"
