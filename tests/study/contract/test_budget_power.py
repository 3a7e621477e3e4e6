"""What a budget affords: the sums add up, the claim is kept aside, and no budget is overspent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlx.compare.power import detectable_effect
from rlx.study.contract.budget_power import SeedTime, budget_power
from rlx.study.contract.contract import ContractBudget, Metric
from rlx.study.ledger.state import replay
from rlx.study.situation import Facts, Situation
from tests.study.test_moves import contract


def budget(seeds: int = 80, hours: float = 8, minutes: float = 6, **more: float) -> ContractBudget:
    return ContractBudget.model_validate({"seeds": seeds, "hours": hours, "per_seed_minutes": minutes, **more})


METRIC = Metric(name="success_rate")


def test_the_claim_and_the_pool_come_first() -> None:
    found = budget_power(budget(), METRIC, seed_time=SeedTime(360))
    assert (found.seeds, found.limit, found.baseline, found.confirmation, found.left) == (80, "seeds", 10, 20, 50)
    assert found.candidates == (4, 14)
    assert found.candidates[0] <= found.expected <= found.candidates[1]
    assert found.hint == ""


def test_hours_can_be_the_shorter_limit() -> None:
    found = budget_power(budget(hours=4), METRIC, seed_time=SeedTime(360))
    assert (found.seeds, found.limit, found.left) == (40, "hours", 10)


def test_the_robots_evening_needs_shorter_trials() -> None:
    evening = budget(seeds=200, hours=40, minutes=120)
    found = budget_power(evening, METRIC, seed_time=SeedTime(1.3 * 3600))
    assert (found.seeds, found.left, found.candidates) == (30, 0, (0, 0))
    assert "budget.trial_steps: 0.5 pays for about" in found.hint
    assert "leaves 0 for the search" in " ".join(found.lines("success"))
    shorter = budget_power(
        budget(seeds=200, hours=40, minutes=120, trial_steps=0.3), METRIC, seed_time=SeedTime(1.3 * 3600)
    )
    assert shorter.left == 25
    assert shorter.expected >= 4
    assert shorter.hint == ""


def test_where_seeds_are_too_few_the_hint_says_how_many() -> None:
    found = budget_power(budget(seeds=31, hours=100), METRIC, seed_time=SeedTime(360))
    assert found.hint == "a study with one candidate needs 39 seeds, 3.9 h at 360 s per seed"


@pytest.mark.parametrize("seeds", [33, 38, 39, 41, 42, 51, 80])
def test_as_many_candidates_are_promised_as_the_agenda_then_lets_begin(seeds: int) -> None:
    few, most = budget_power(budget(seeds=seeds, hours=100), METRIC, seed_time=SeedTime(360)).candidates
    assert (few, most) == (begun(seeds - 10, each=12), begun(seeds - 10, each=3))


def begun(left: int, *, each: int) -> int:
    """Return how often `rlx next` says propose where every candidate takes so many seeds."""
    tried = 0
    while left > 0:
        rest = contract(budget={"seeds": left, "hours": 1000, "per_seed_minutes": 6, "candidates": 100})
        if not Situation(replay(()), rest, Facts(0.0, "")).affords_trial:
            break
        tried += 1
        left -= each
    return tried


def test_what_the_claim_finds_is_in_sd_and_in_the_metrics_unit() -> None:
    found = budget_power(budget(), METRIC, seed_time=SeedTime(360), baseline_sd=0.05)
    assert found.effect == detectable_effect(10)
    assert found.effect_in_unit == pytest.approx(0.05 * found.effect)
    assert "sd, 0.05" in " ".join(found.lines("success_rate"))
    more = budget_power(budget(), Metric(name="x", claims=3), seed_time=SeedTime(360))
    assert more.effect > found.effect
    assert more.effect_in_unit is None


def test_a_cost_that_was_not_measured_is_the_limit_and_says_so() -> None:
    seed_time = SeedTime.of(budget())
    assert seed_time.seconds == 360
    assert "not measured yet" in budget_power(budget(), METRIC, seed_time=seed_time).lines("x")[0]
    assert SeedTime.of(budget(), 100.0) == SeedTime(100.0)


def test_the_contracts_own_limit_of_candidates_counts() -> None:
    assert budget_power(budget(candidates=3), METRIC, seed_time=SeedTime(360)).candidates == (3, 3)


@given(
    st.integers(1, 500), st.floats(0.1, 100), st.floats(1, 20_000), st.floats(0.05, 1.0), st.integers(2, 30),
)  # fmt: skip
def test_no_budget_is_overspent(seeds: int, hours: float, seconds: float, share: float, a_side: int) -> None:
    given_budget = budget(seeds=seeds, hours=hours, minutes=1, trial_steps=share, candidates=10**6)
    found = budget_power(given_budget, Metric(name="x", seeds=a_side), seed_time=SeedTime(seconds))
    few, most = found.candidates
    assert 0 <= few <= found.expected <= most
    if most:
        used = found.baseline + found.confirmation + 3 * most
        time = (found.baseline + 3 * most) * seconds * share + found.confirmation * seconds
        assert used <= seeds
        assert time <= hours * 3600 * (1 + 1e-6)
    else:
        assert found.hint
