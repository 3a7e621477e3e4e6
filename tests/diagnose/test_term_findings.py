from __future__ import annotations

from dataclasses import replace

import numpy as np

from rlx.diagnose.term_findings import findings
from tests.diagnose.test_terms import RISE_AND_FALL, X, noisy, terms

RATE = "success_rate"


def rules(*seeds: object, metric: str = RATE) -> list[str]:
    return [one.rule for one in findings(seeds, metric)]  # type: ignore[arg-type]


def test_a_healthy_reward_has_no_finding() -> None:
    assert rules(terms(X, goal=noisy(2 * X), time=noisy(X - 1))) == []


def test_hacking_is_one_finding_with_its_seeds() -> None:
    one = terms(noisy(RISE_AND_FALL), coin=noisy(10 * X), goal=RISE_AND_FALL)
    clean = replace(terms(X, coin=noisy(X), goal=noisy(X)), seed=7)
    (found,) = [found for found in findings([one, replace(one, seed=3), clean], RATE) if found.rule == "reward_hacking"]
    assert found.severity == "high"
    assert "`coin` is farmed from step" in found.claim
    assert "2 of 3 seeds" in found.claim
    assert all(evidence.seeds == (0, 3) for evidence in found.evidence)


def test_domination_matters_only_against_the_task() -> None:
    against = terms(noisy(0.5 - 0.3 * X), returns=noisy(np.ones(20)), big=noisy(50 + 5 * X), small=np.full(20, 1.0))
    assert "term_domination" in rules(against)
    assert rules(terms(noisy(X * 0.8), big=noisy(50 * X), small=noisy(X))) == []
    assert rules(terms(None, big=noisy(50 * X), small=noisy(X)), metric="") == []
    assert rules(terms(noisy(0.5 - 0.3 * X), returns=noisy(np.ones(20)), only=noisy(50 + 5 * X))) == []


def test_a_saturated_term_is_a_finding_where_the_task_stands_still_with_it() -> None:
    bound = np.minimum(1.0, 3 * X)
    stuck = terms(np.minimum(0.5, 1.5 * X), returns=bound, tracking=bound, goal=0.3 * noisy(np.minimum(0.5, 1.5 * X)))
    assert rules(stuck) == ["term_saturation"]
    assert rules(terms(np.minimum(1.0, 3 * X), tracking=bound, goal=noisy(X))) == []


def test_a_term_that_was_always_zero_is_named() -> None:
    assert rules(terms(0.5 * X, goal=np.zeros(20), move=noisy(X))) == ["term_zero"]
    assert rules(terms(np.minimum(1.0, 3 * X), goal=np.zeros(20), move=noisy(X))) == []


def test_a_term_that_is_not_finite_comes_first() -> None:
    values = noisy(X)
    values[5] = np.nan
    (found,) = findings([terms(X, goal=noisy(X), broken=values)], RATE)
    assert (found.rule, found.severity) == ("term_not_finite", "high")
    assert "step 3,000" in found.claim
