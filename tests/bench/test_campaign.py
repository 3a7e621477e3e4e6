"""The simulated campaigns follow the code that studies use."""

from __future__ import annotations

import numpy as np
import pytest
from campaign import CANDIDATES, RULES, Cell, confirm_all, race_all, raced, ratchet

from rlx.compare.race import confirm, race
from rlx.compare.race_thresholds import RULE

NULL = Cell("null", ((1.0, 0.0),))


def test_a_simulated_race_is_the_race() -> None:
    generator = np.random.default_rng(0)
    head, candidate = generator.normal(size=(60, 6)), generator.normal(0.5, 1, (60, 6))
    going, is_moved = race_all(head, candidate, RULE)
    for row in range(60):
        ours, theirs = head[row].tolist(), candidate[row].tolist()
        assert (race(ours, theirs[:3]).step == "more") == going[row]
        assert (race(ours, theirs).step == "advance") == is_moved[row]
    assert 0 < is_moved.sum() < going.sum() < 60


def test_a_simulated_claim_is_the_confirmation() -> None:
    generator = np.random.default_rng(1)
    baseline, head = generator.normal(size=(40, 10)), generator.normal(0.8, 1, (40, 10))
    claimed = confirm_all(baseline, head)
    for row in range(40):
        assert (confirm(baseline[row].tolist(), head[row].tolist()).answer == "confirmed") == claimed[row]
    assert 0 < claimed.sum() < 40


def test_every_seed_is_counted() -> None:
    found = raced(NULL, 50, np.random.default_rng(2))
    least = RULE.head + CANDIDATES * RULE.first
    assert found.seeds.min() >= least
    still = found.moves == 0
    assert not found.is_claimed[still].any()
    assert (found.seeds[~still] >= least + 3 + RULE.head + 20).all()


def test_a_budget_is_never_overspent() -> None:
    assert raced(NULL, 200, np.random.default_rng(3), budget=120).seeds.max() <= 120


def test_a_ratchet_keeps_what_is_lucky() -> None:
    found = ratchet(NULL, 200, np.random.default_rng(4), seeds=1)
    assert found.seeds[0] == CANDIDATES + 1
    assert found.claimed.mean() > 1.5
    assert found.true_gain == pytest.approx(0.0)
    assert len(RULES) == 4
